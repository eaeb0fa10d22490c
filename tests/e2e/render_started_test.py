#!/usr/bin/env python3
"""What stoker deploy renders is started here by the program that it is for: llama.cpp's server answers, Open MPI starts the ranks.

    python3 tests/e2e/render_started_test.py --stoker build/release/stoker [NAME...]

llama-server and Open MPI come from PyPI, pinned, into build/llama-venv and build/mpi-venv; where they cannot be had, the test is skipped
and says so. render_slurm_test.py has the torchrun script and the batch script."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

import harness
import render_test as plans
from bench_serve_test import random_gguf
from pythons import pinned_python
from harness import Skipped, check, main

HERE = pathlib.Path(__file__).resolve().parent
plans.targets = lambda t: ["llama-cpp", "horovod"]
plans.PLANS = {
    "small": "version: 1\nname: small\nkind: inference\nmodel: llama-3.2-1b\nframework: llama.cpp\n"
             "traffic: {concurrency: 2, prompt_tokens: 60, output_tokens: 24}\nobjective: {survive_one_replica_lost: false}\n"
             "where: {sizes: [Standard_D16s_v5], regions: [eastus]}\n",
    "ddp": plans.PLANS["ddp"],
}


def program(name, venv, requirements):
    python = pathlib.Path(pinned_python(HERE / requirements, venv))
    found = [path for path in python.parents[1].rglob(name) if path.is_file()]
    if not found:
        raise Skipped(f"the package of {requirements} has no {name} for this machine")
    first = min(found, key=lambda path: len(path.parts))
    first.chmod(0o755)  # not every wheel says so
    return first


def asked(url, body=None, key=None):
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body and json.dumps(body).encode(), headers), timeout=120) as answer:
            return answer.status, json.loads(answer.read() or "null")
    except urllib.error.HTTPError as answer:
        return answer.code, answer.read().decode()
    except OSError as why:
        return 0, str(why)


# An option that the server does not know, or a context that it divides otherwise, is seen when the first request comes.
def test_a_rendered_server_of_llama_cpp_answers(t):
    server = program("llama-server", "llama-venv", "requirements_llama.txt")
    work = plans.deployment(t, "small", "llama-cpp") if plans.rendered(t) else None
    script = pathlib.Path(plans.RENDERED["small", "llama-cpp"], "small.sh")
    programs = os.path.join(t.base, "programs")
    os.makedirs(programs)
    with open(os.path.join(programs, "llama-server"), "w") as file:  # its libraries lie beside it
        file.write(f'#!/bin/sh\nexec "{server}" "$@"\n')
    os.chmod(os.path.join(programs, "llama-server"), 0o755)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = os.path.join(t.base, "llama.log")
    with open(log, "w") as out:
        process = subprocess.Popen([script], stdout=out, stderr=out, env=dict(os.environ, PATH=programs + ":" + os.environ["PATH"], PORT=str(port),
                                                                           MODEL=random_gguf(t), LLAMA_API_KEY="secret"))
    url = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + harness.LIMIT_S
        while asked(url + "/health")[0] != 200:
            check(process.poll() is None and time.monotonic() < end, f"llama-server: {open(log).read()[-1500:]}")
            time.sleep(0.2)
        status, answer = asked(url + "/v1/models", key="secret")
        check(status == 200 and "llama-3.2-1b" in json.dumps(answer), answer)
        # The weights are by chance: what they say is kept to letters, and no template of a chat is asked.
        body = {"model": "llama-3.2-1b", "max_tokens": 4, "prompt": "hello", "grammar": "root ::= [a-z]+"}
        status, answer = asked(url + "/v1/completions", body)
        check(status == 401, f"who has no key is answered {status}: {str(answer)[:200]}")
        status, answer = asked(url + "/v1/completions", body, key="secret")
        check(status == 200 and answer["usage"]["completion_tokens"] > 0, f"{status}: {str(answer)[:400]}")
        status, answer = asked(url + "/props", key="secret")
        check(status == 200, answer)
        slots, context = answer["total_slots"], answer["default_generation_settings"]["n_ctx"]
        check(slots <= work["serving"]["max_sequences"] and context == work["serving"]["context_tokens"],
              f"{slots} slots of {context} tokens, planned {work['serving']}")
    finally:
        process.terminate()
        process.wait(timeout=60)


# A rank that is started without its environment trains with the defaults of its program.
def test_open_mpi_starts_the_ranks(t):
    mpirun = program("mpirun", "mpi-venv", "requirements_mpi.txt")
    script = pathlib.Path(plans.rendered(t)["ddp", "horovod"], "resnet.sh")
    ranks = plans.deployment(t, "ddp", "horovod")["ranks"]["count"]
    programs, said = os.path.join(t.base, "programs"), os.path.join(t.base, "said")
    os.makedirs(programs), os.makedirs(said)
    os.symlink(mpirun, os.path.join(programs, "mpirun"))
    with open(os.path.join(programs, "python3"), "w") as file:  # the program of a rank
        file.write(f'#!/bin/sh\necho "$OMPI_COMM_WORLD_SIZE $STOKER_DATA $STOKER_MICRO_BATCH $*" > {said}/$OMPI_COMM_WORLD_RANK\n')
    os.chmod(os.path.join(programs, "python3"), 0o755)
    # Its nodes are this machine: what would be told to them by ssh is run here.
    agent = os.path.join(programs, "ssh")
    with open(agent, "w") as file:
        file.write('#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nshift\nexec /bin/sh -c "$*"\n')
    os.chmod(agent, 0o755)
    if not os.path.exists("/sys/class/net/eth0"):
        return print("no eth0 here, which the script names: not tried")
    environment = dict(os.environ, PATH=f"{programs}:{mpirun.parent}:{os.environ['PATH']}", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       PRTE_MCA_plm_ssh_agent=agent, PRTE_MCA_plm_ssh_no_tree_spawn="1", TMPDIR=t.base, OPAL_PREFIX=str(mpirun.parents[1]))
    done = subprocess.run([script], capture_output=True, text=True, timeout=120, env=environment, cwd=t.base)
    check(done.returncode == 0, f"exit {done.returncode}: {done.stdout[-500:]}{done.stderr[-1500:]}")
    layout = plans.deployment(t, "ddp", "horovod")["training"]["layout"]
    each = {path.name: path.read_text() for path in pathlib.Path(said).iterdir()}
    check(set(each) == {str(rank) for rank in range(ranks)}, each)
    check(set(each.values()) == {f"{ranks} {layout['data']} {layout['micro_batch']} work.py --name it's $HOME\n"}, each)
    shutil.rmtree(said)


if __name__ == "__main__":
    main(globals())

#!/usr/bin/env python3
"""One queue over this machine, a real Slurm and a real Kubernetes: each run goes where it is told, all commands know it there, an API server
that is away holds up nobody, and a server that is killed again and again with runs on all three loses and doubles nothing. Pods are run by
tests/kube/pod_runner.py. Without Slurm the other two are tested; without `./dev kube`, or where pods cannot be run, it is skipped with its
reason.

    python3 tests/e2e/three_engines_test.py --stoker build/release/stoker [NAME...]
    STOKER_E2E_KILLS=50 STOKER_E2E_RESTARTS=20     how often the server is killed, and the API server restarted meanwhile"""

import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time

import harness
import slurm_cluster
from harness import Skipped, check, wait_for
from kubernetes_test import Cluster as Pods

PODS = SLURM = None
LIMIT_S = 240
KILLS = int(os.environ.get("STOKER_E2E_KILLS", "3"))
RESTARTS = int(os.environ.get("STOKER_E2E_RESTARTS", "1"))

SERVER = """nodes: [{{name: box, vcpus: 4, memory: 8GiB}}]
engines:
  - name: aks
    kind: kubernetes
    config: {kube}
    image: this-machine
    notice: 5s
    shared: [{{path: {work}}}]
{slurm}"""
SLURM_PART = """  - name: slurm-b
    kind: slurm
    partition: main
    config: {config}
"""


def engines():
    return ["local", "aks"] + (["slurm-b"] if SLURM else [])


def up(t):
    if SLURM:
        SLURM.resume_nodes()
    t.write("server.yaml", SERVER.format(kube=PODS.config, work=t.work, slurm=SLURM_PART.format(config=SLURM.config) if SLURM else ""))
    server = t.up("--config", os.path.join(t.work, "server.yaml"))
    wait_for("the nodes of all", lambda: len(t.json("nodes")) == (5 if SLURM else 3), LIMIT_S)
    return server


def submit(t, *words):
    return t.call("submit", *words).stdout.strip()


def shell(script):
    return ["--", "sh", "-c", script]


def nothing_is_left(t):
    wait_for("no Jobs and pods of ours", lambda: PODS.tell("quiet"), LIMIT_S)
    if SLURM:
        wait_for("an empty queue", SLURM.quiet, LIMIT_S)
    for folder in ("run", "engines/slurm-b/slurm", "engines/aks/kubernetes"):
        path = os.path.join(t.folder, folder)
        wait_for(f"an empty {folder}", lambda: not os.path.isdir(path) or os.listdir(path) == [], LIMIT_S)


def test_a_run_goes_where_it_is_told_and_looks_the_same_everywhere(t):
    up(t)
    nodes = t.call("nodes").stdout
    for word in ("box", "k1@aks", "k2@aks") + (("n1@slurm-b",) if SLURM else ()):
        check(word in nodes, nodes)
    runs = {}
    for engine in engines():
        runs[engine] = submit(t, "--engine", engine, "--ranks", "2", *shell(f"echo rank $RANK of $WORLD_SIZE on {engine}"))
    for engine, run in runs.items():
        view = t.wait_state(run, "succeeded", "failed", limit_s=LIMIT_S)
        check(view["run"]["state"] == "succeeded" and view["run"]["engine"] == engine, f"{engine}: {view}")
        check(f"rank 0 of 2 on {engine}" in t.call("logs", run).stdout, t.call("logs", run).stdout)
        check(f"rank 1 of 2 on {engine}" in t.call("logs", "--rank", "1", run).stdout, f"{engine}: no log of rank 1")
    check("k1@aks" in t.call("describe", runs["aks"]).stdout or "k2@aks" in t.call("describe", runs["aks"]).stdout, t.call("describe", runs["aks"]).stdout)
    usage = t.call("usage", "--by", "engine").stdout
    check(all(engine in usage for engine in engines()), usage)
    full = submit(t, "--cpus", "4", *shell(f"while [ ! -e {t.work}/go ]; do sleep 0.1; done"))
    t.wait_state(full, "running")
    told = t.call("whatif", "--cpus", "4", "--", "true").stdout
    check("sent to aks: local has 0 of 4 CPUs free" in told, told)
    on = submit(t, "--cpus", "4", *shell("while :; do sleep 0.1; done"))
    t.wait_state(on, "running", limit_s=LIMIT_S)
    check(t.describe(on)["run"]["engine"] == "aks", "it did not go on where there was room")
    beside = t.call("exec", on, "--", "true", exit=None)
    check(beside.returncode != 0 and "kubectl exec" in beside.stderr, beside.stderr)
    t.call("cancel", on)
    t.wait_state(on, "cancelled", limit_s=LIMIT_S)
    open(os.path.join(t.work, "go"), "w").close()
    t.wait_state(full, "succeeded", limit_s=LIMIT_S)
    nothing_is_left(t)


SAME = """version: 1
name: same
run:
  command: [sh, -c, 'echo $ALPHA, $BETA, $RANK of $WORLD_SIZE, $STOKER_RUN $STOKER_ATTEMPT $PYTHONUNBUFFERED; echo end; sleep 1; [ $RANK != $FAILS ] || exit 3']
  folder: {work}
  ranks: 2
  environment: {{ALPHA: "1", BETA: two words, FAILS: "{fails}"}}
"""


def what_became_of_it(t, engine, file):
    """On a server whose only engine it is: what was asked for and its digest, the moves of its run, the facts that the engine told, and what
    its ranks found in their environment. When a wait at an engine is told, and how often, is the engine's."""
    own = harness.Stoker(t.binary)
    shutil.rmtree(own.work)
    own.work = t.work
    try:
        kinds = {"local": "{kind: local}", "aks": f"{{kind: kubernetes, config: {PODS.config}, image: this-machine, shared: [{{path: {t.work}}}]}}",
                 "slurm-b": f"{{kind: slurm, partition: main, config: {SLURM.config if SLURM else ''}}}"}
        own.up("--config", t.write(f"{engine}.yaml", f"engine: {kinds[engine]}\n"))
        wait_for("nodes", lambda: own.json("nodes"), LIMIT_S)
        run = submit(own, file)
        view = own.wait_state(run, "succeeded", "failed", limit_s=LIMIT_S)
        logs = [wait_for(f"the log of rank {rank}", lambda: (lambda said: said if said.endswith("end\n") else "")(
            own.call("logs", "--rank", str(rank), run).stdout), LIMIT_S) for rank in (0, 1)]
        rows = [dict(row, body=json.loads(row["body"])) for row in own.json("journal", "show")["items"] if row["object"] == f"run/{run}"]
        moves = [(row["kind"], row["body"]["event"], row["cause"]) for row in rows if row["kind"] in ("run.moved", "attempt.moved")]
        facts = [row["body"]["fact"]["kind"] for row in rows if row["kind"] == "fact.seen"]
        nothing_is_left(own)
        return {"spec": view["spec"], "digest": view["digest"], "moves": moves, "facts": [each for each in facts if each != "waits"], "environment": logs}
    finally:
        own.close()


def test_one_spec_is_the_same_on_all(t):
    """What people build on a run's events does not have to know where it ran."""
    for fails in ("9", "1"):
        file = t.write("same.yaml", SAME.format(work=t.work, fails=fails))
        seen = {engine: what_became_of_it(t, engine, file) for engine in engines()}
        here = seen["local"]
        check(len(here["digest"]) == 64 and here["moves"] and here["facts"], str(seen))
        for engine, became in seen.items():
            for what, value in became.items():
                check(value == here[what], f"{what} on {engine}: {value}\nand here: {here[what]}")
        print(f"   digest {here['digest'][:12]}, {len(here['moves'])} moves and {len(here['facts'])} facts, the same on {', '.join(seen)}")


def test_an_api_server_that_is_away_loses_nothing_and_holds_up_nobody(t):
    up(t)
    there = submit(t, "--engine", "aks", *shell(f"echo here >> {t.work}/there; while [ ! -e {t.work}/go ]; do sleep 0.1; done"))
    t.wait_state(there, "running", limit_s=LIMIT_S)
    PODS.tell("shut")
    try:
        wait_for("the word that it is away", lambda: "the engine aks does not answer" in t.call("nodes").stdout, LIMIT_S)
        named = submit(t, "--engine", "aks", *shell(f"echo here >> {t.work}/named"))
        here = submit(t, *shell("true"))
        t.wait_state(here, "succeeded", limit_s=LIMIT_S)
        check("aks does not answer" in t.call("describe", named).stdout, t.call("describe", named).stdout)
        check(t.describe(there)["run"]["state"] == "running", "what runs there is not known any more")
    finally:
        PODS.tell("open")
    open(os.path.join(t.work, "go"), "w").close()
    for run in (there, named):
        t.wait_state(run, "succeeded", limit_s=LIMIT_S)
    for name in ("there", "named"):
        check(open(f"{t.work}/{name}").read() == "here\n", f"{name} ran more than once")
    nothing_is_left(t)


def test_a_server_killed_again_and_again_with_runs_on_all(t):
    server = up(t)
    chance, runs = random.Random(7), {}
    restart_after = {round((i + 1) * KILLS / (RESTARTS + 1)) for i in range(RESTARTS)}
    restarts = 0
    for i in range(KILLS):
        for engine in [*engines(), "any"]:
            name = f"{i}-{engine}"
            run = submit(t, "--cpus", "0.5", "--engine", engine, "--name", name,
                         *shell(f"echo $STOKER_OP >> {t.work}/ran-{name}; sleep {0.2 + chance.random()}"))
            runs[run] = (name, engine)
        time.sleep(chance.random())
        server.send_signal(signal.SIGKILL)
        server.wait()
        if i in restart_after:
            PODS.tell("restart")
            restarts += 1
        server = t.up()  # the journal says which engines there are
    lost = doubled = 0
    where = {}
    for run, (name, engine) in runs.items():
        view = t.wait_state(run, "succeeded", "failed", limit_s=LIMIT_S)
        check(view["run"]["state"] == "succeeded", f"{run}: {view['run']}")
        check(engine in ("any", view["run"]["engine"]), f"{run} ran on {view['run']['engine']}, not on {engine}")
        where[view["run"]["engine"]] = where.get(view["run"]["engine"], 0) + 1
        path = f"{t.work}/ran-{name}"
        lines = open(path).read().splitlines() if os.path.exists(path) else []
        lost += not lines
        doubled += len(lines) > 1
    check(set(where) == set(engines()), f"only on {where}")
    check(lost == 0 and doubled == 0, f"{lost} lost, {doubled} ran twice")
    nothing_is_left(t)
    print(f"   killed {KILLS} times, API server restarted {restarts} times, runs {where}: 0 lost, 0 doubled, 0 left")


if __name__ == "__main__":
    try:
        PODS = Pods()
    except Skipped as why:
        print(f"skipped: {why}\n0 passed, 0 failed")
        sys.exit(0)
    base = tempfile.mkdtemp(prefix="stoker-three-")
    os.chmod(base, 0o755)
    if why := slurm_cluster.why_not():
        print(f"without Slurm: {why}")
    else:
        SLURM = slurm_cluster.Cluster(base)
    try:
        harness.main(globals())
    finally:
        PODS.close()
        if SLURM:
            SLURM.close()
        shutil.rmtree(base, ignore_errors=True)

#!/usr/bin/env python3
"""The shell blocks of docs/guides/targets.md, each section in an empty folder, from its first line to its last.

    python3 tests/e2e/render_guide_test.py --stoker build/release/stoker [NAME...]

stoker and the scripts that it renders are really run. What is not here (kubectl, az, sbatch, torchrun, ...) has a stand-in that answers
nothing and fails on a file that is not there: so a path that no rendering has, a variable that a script wants, or a step in the wrong
order is found. What the programs themselves say is for the other tests (render*_test.py)."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import harness
from harness import check, main

HERE = pathlib.Path(__file__).resolve().parent
GUIDE = HERE.parents[1] / "docs" / "guides" / "targets.md"
PROGRAMS = ["accelerate", "curl", "cyclecloud", "deepspeed", "git", "helm", "kubectl", "llama-server", "mpirun", "python3", "qstat", "qsub", "ray",
            "sbatch", "serve", "sleep", "squeue", "sudo", "tail", "terraform", "text-generation-launcher", "torchrun", "tritonserver", "trtllm-serve",
            "vi", "vllm"]
STAND_IN = r"""#!/bin/bash
before=
for word in "$@"; do
    path=${word#-chdir=}
    case $before in -k | --working-dir) path=$path/. ;; --) break ;; esac
    case $path in
        /* | *://* | *=*) ;;
        */. | *.yaml | *.json | *.sh | *.sbatch | *.pbs | *.sge | *.bicep | *.py | "${word#-chdir=}"/*)
            [ -e "$path" ] || { echo "${0##*/}: there is no $path" >&2; exit 9; } ;;
    esac
    [ "$path" = "$word" ] || [ -e "$path" ] || { echo "${0##*/}: there is no $path" >&2; exit 9; }
    before=$word
done
"""
BLOCK = re.compile(r"^```(\w*) ?([^\n]*)\n(.*?)^```$", re.S | re.M)


def sections():
    """[(heading, [(kind, name, text)])], and the files that all of them begin with."""
    head, *rest = re.split(r"^## ", GUIDE.read_text(), flags=re.M)
    files = [(name, text) for kind, name, text in BLOCK.findall(head) if kind == "yaml" and name]
    return files, [(each.split("\n", 1)[0], BLOCK.findall(each)) for each in rest]


def stand_ins(folder):
    os.makedirs(folder)
    for name in PROGRAMS:
        path = os.path.join(folder, name)
        with open(path, "w") as file:
            file.write(STAND_IN)
        os.chmod(path, 0o755)
    shutil.copy(HERE / "render" / "recorded_az.sh", os.path.join(folder, "az"))
    os.chmod(os.path.join(folder, "az"), 0o755)


# A guide whose third command does not run is a guide that was never tried.
def test_each_section_runs_from_an_empty_folder(t):
    programs = os.path.join(t.base, "programs")
    stand_ins(programs)
    os.symlink(os.path.abspath(t.binary), os.path.join(programs, "stoker"))
    home = os.path.join(t.base, "home")
    os.makedirs(os.path.join(home, ".ssh"))
    pathlib.Path(home, ".ssh", "id_ed25519.pub").write_text("ssh-ed25519 AAAA someone\n")
    environment = dict(t.environment, PATH=programs + ":" + os.environ["PATH"], HOME=home, RECORD=os.path.join(t.base, "az.txt"))
    files, parts = sections()
    run, targets = 0, set()
    for number, (heading, blocks) in enumerate(parts):
        folder = os.path.join(t.base, f"section-{number}")
        os.makedirs(folder)
        for name, text in files:
            pathlib.Path(folder, name).write_text(text)
        for name in ("sft.py", "embed.py", "resnet.py"):  # what the files above say that people have
            pathlib.Path(folder, name).write_text("")
        for kind, name, text in blocks:
            if kind == "yaml" and name:
                pathlib.Path(folder, name).write_text(text)
                continue
            if kind == "":
                for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
                    command, printed = part.split("\n", 1)
                    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                          timeout=harness.LIMIT_S)
                    check(done.returncode == 0 and done.stdout == printed, f"{heading}: {command}: exit {done.returncode}, and not what the guide "
                          f"has:\n{done.stdout}{done.stderr}")
                    targets.update(re.findall(r"--target ([\w,-]+)", command)[0].split(","))
                    run += 1
                continue
            if kind != "sh":
                continue
            targets.update(re.findall(r"stoker deploy .*--target (\w+)", text))
            text = text.replace(" && ", "\n")  # in a list the first that fails ends nothing
            done = subprocess.run(["bash", "-eu", "-c", text], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=harness.LIMIT_S)
            check(done.returncode == 0, f"{heading}: exit {done.returncode} of\n{text}{done.stdout[-400:]}{done.stderr[-600:]}")
            run += text.count("\n")
    check(run > 60, f"{run} lines")
    missing = {row["name"] for row in json.loads(t.call("deploy", "--list", "-o", "json").stdout)} - targets
    check(not missing, f"no section of the guide renders {sorted(missing)}")


if __name__ == "__main__":
    main(globals())

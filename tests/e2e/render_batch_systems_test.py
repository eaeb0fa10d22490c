#!/usr/bin/env python3
"""Scripts for PBS and Grid Engine, started as those systems start them.

    python3 tests/e2e/render_batch_systems_test.py --stoker build/release/stoker [NAME...]

A real Grid Engine is in render_gridengine_test.py, where it can be had; here pbsdsh and qrsh are small programs of the test, which start a command for each node as the manuals have it (OpenPBS
User's Guide, 2024: pbsdsh's programs have PBS's environment only; qrsh(1): -inherit starts a task of a parallel job, -V exports what
there is). What stands behind #PBS and #$ is held against the options of qsub and the forms of their values."""

import os
import pathlib
import re
import subprocess

import render_test as plans
from harness import check, main
from render_test import deployment, files, rendered

plans.targets = lambda t: ["pbs", "sge"]
plans.PLANS["gang-rank"] = plans.PLANS["gang-run"].replace("[python3, work.py, --name, \"it's $HOME\"]", "[python3, work.py]")
PBS = {"-N": r"[A-Za-z0-9_.+-]{1,230}", "-J": r"0-\d+", "-r": "y", "-j": "oe",
       "-l": r"(select=\d+(:(ncpus|ngpus|mpiprocs)=\d+|:mem=\d+(mb|gb))+|place=scatter:exclhost|walltime=\d+:\d\d:\d\d)"}
SGE = {"-N": r"[A-Za-z][\w.-]*", "-cwd": "", "-j": "y", "-S": "/bin/bash", "-t": r"1-\d+", "-pe": r"mpi \d+", "-l": r"(gpu=\d+|h_rt=\d+:\d\d:\d\d)", "-r": "y"}
TORCHRUN = '#!/bin/sh\necho "$NODE|$MASTER_ADDR|$MASTER_PORT|$STOKER_TENSOR|$STOKER_DATA|$*" >> {said}\n'


def test_what_is_asked_has_the_form_that_qsub_takes(t):
    seen = 0
    for _, target, path in files(t, ".pbs", ".sge"):
        for line in path.read_text().splitlines():
            found = re.match(r"#(?:PBS|\$) (-\w+) ?(.*)", line)
            if found:
                seen += 1
                form = (PBS if target == "pbs" else SGE).get(found[1])
                check(form is not None and re.fullmatch(form, found[2]), f"{path}: {line}")
    check(seen > 60, f"{seen} lines")


def programs_of(t, name, **more):
    folder, said = os.path.join(t.base, name), os.path.join(t.base, name + ".txt")
    os.makedirs(folder)
    for program, text in {"torchrun": TORCHRUN, **more}.items():
        with open(os.path.join(folder, program), "w") as file:
            file.write(text.replace("{said}", said).replace("{folder}", folder))
        os.chmod(os.path.join(folder, program), 0o755)
    return folder, said


def read(t, plan, target, said, nodes):
    """Each node has started its torchrun, all of them with the same place to meet."""
    d = deployment(t, plan, target)
    rows = [line.split("|") for line in pathlib.Path(said).read_text().splitlines()]
    check(sorted(row[0] for row in rows) == sorted(nodes), f"{target}: {rows}")
    check({row[1] for row in rows} == {nodes[0]} and len({row[2] for row in rows}) == 1 and rows[0][2].isdigit(), rows)
    layout = d["training"]["layout"]
    check({(row[3], row[4]) for row in rows} == {(str(layout["tensor"]), str(layout["data"]))}, rows)
    for row in rows:
        check(f"--nnodes {len(nodes)} --nproc_per_node {d['ranks']['per_node']} " in row[5] and f"{row[1]}:{row[2]}" in row[5], row)


# A gang whose ranks wait at different doors waits until its walltime, and is paid for.
def test_pbs_starts_a_gang_on_each_node(t):
    folder, said = programs_of(
        t, "pbs", pbsdsh='#!/bin/sh\n[ "$1" != -- ] || shift\nfor node in node-7 node-9; do env -i PATH={folder}:/usr/bin:/bin NODE=$node "$@" || exit; done\n')
    nodes = os.path.join(t.base, "nodefile")
    with open(nodes, "w") as file:
        file.write("node-7\nnode-9\n")
    script = rendered(t)["gang-rank", "pbs"]
    done = subprocess.run(["bash", os.path.join(script, "train.pbs")], capture_output=True, text=True, timeout=60, cwd=t.base,
                          env=dict(os.environ, PATH=folder + ":" + os.environ["PATH"], PBS_NODEFILE=nodes, PBS_O_WORKDIR=script, PBS_JOBID="4711.head"))
    check(done.returncode == 0, done.stderr)
    read(t, "gang-rank", "pbs", said, ["node-7", "node-9"])


def test_grid_engine_starts_a_gang_on_each_node(t):
    folder, said = programs_of(t, "sge", qrsh='#!/bin/sh\n[ "$1" = -inherit ] && [ "$2" = -V ] || exit 9\nnode=$3; shift 3\nNODE=$node exec "$@"\n')
    hosts = os.path.join(t.base, "pe")
    with open(hosts, "w") as file:
        file.write("node-7 1 all.q@node-7 UNDEFINED\nnode-9 1 all.q@node-9 UNDEFINED\n")
    script = rendered(t)["gang-rank", "sge"]
    environment = dict(os.environ, PATH=folder + ":" + os.environ["PATH"], PE_HOSTFILE=hosts, JOB_ID="4711")
    done = subprocess.run(["bash", "train.sge"], capture_output=True, text=True, timeout=60, cwd=script, env=environment)
    check(done.returncode == 0, done.stderr)
    read(t, "gang-rank", "sge", said, ["node-7", "node-9"])
    # One node that fails fails the job.
    with open(os.path.join(folder, "torchrun"), "w") as file:
        file.write('#!/bin/sh\n[ "$NODE" != node-9 ] || exit 5\n')
    done = subprocess.run(["bash", "train.sge"], capture_output=True, text=True, timeout=60, cwd=script, env=environment)
    check(done.returncode == 5, f"exit {done.returncode}")


# Shares that all count from one, or two that are the same, leave a part of the work undone.
def test_shares_have_the_number_of_their_task(t):
    for target, name, first in (("pbs", "PBS_ARRAY_INDEX", 0), ("sge", "SGE_TASK_ID", 1)):
        folder, said = programs_of(t, target + "-array", python3='#!/bin/sh\necho "$STOKER_ARRAY_INDEX of $STOKER_ARRAY_COUNT $*" >> {said}\n')
        script = rendered(t)["files", target]
        count = deployment(t, "files", target)["ranks"]["count"]
        check(count > 1, count)
        for task in (first, first + count - 1):
            done = subprocess.run(["bash", os.path.join(script, "files." + target)], capture_output=True, text=True, timeout=60, cwd=script,
                                  env={**os.environ, "PATH": folder + ":" + os.environ["PATH"], name: str(task), "PBS_O_WORKDIR": script})
            check(done.returncode == 0, done.stderr)
        words = "work.py --name it's $HOME"
        check(pathlib.Path(said).read_text() == f"0 of {count} {words}\n{count - 1} of {count} {words}\n", pathlib.Path(said).read_text())


if __name__ == "__main__":
    main(globals())

#!/usr/bin/env python3
"""What stoker deploy renders for Grid Engine, on a real Grid Engine of two nodes: qsub takes every script, a gang trains with PyTorch
on both nodes, deleted and submitted again it goes on where it was, it fails where one of its ranks does; an array does each of its
shares once.

    python3 tests/e2e/render_gridengine_test.py --stoker build/release/stoker [NAME...]

Skipped, with the reason, where Grid Engine is not installed or networks of its own cannot be made; scripts for PBS, which no package of
Debian has, are in render_batch_systems_test.py."""

import pathlib
import re

import render_slurm_test as trainings
import render_test as plans
from gridengine import GridEngine, missing, until
from harness import Skipped, check, main
from render_slurm_test import PLAN, PYTHON, TRAIN, no_torch, render, weights, wrapped_torchrun
from render_test import deployment, files, rendered

plans.targets = lambda t: ["sge"]
trainings.NODE_FILE = trainings.NODE_FILE.replace("gpus: 2", "gpus: 1")  # a rank on each node
plans.PLANS["few"] = plans.PLANS["files"].replace("5000", "700")
LIMIT_S = 240
STEPS = 160


def cell(t, **more):
    if why := missing():
        raise Skipped(why)
    t.cell = GridEngine(**more)
    return t.cell


def one(test):
    """Each test has a cell of its own, and leaves none."""
    def run(t):
        t.cell = None
        try:
            test(t)
        finally:
            if t.cell:
                t.cell.close()
    run.__name__ = test.__name__
    return run


@one
def test_qsub_takes_every_script(t):
    sge = cell(t)
    seen = 0
    for plan, _, path in files(t, ".sge"):
        job = sge.submit("-h", path.name, cwd=path.parent)
        told = sge.run("qstat", "-j", job.split(".")[0]).stdout
        check(re.search(r"^job_name: +\S", told, re.M), f"{plan}: {told}")
        asked = re.search(r"h_rt=(\d+):(\d+):(\d+)", path.read_text())
        if asked:
            hours, minutes, seconds = map(int, asked.groups())
            check(f"h_rt={hours * 3600 + minutes * 60 + seconds}" in told, f"{plan}: {told}")
        nodes = deployment(t, plan, "sge")["nodes"]["count"]
        if "-pe mpi" in path.read_text():
            check(re.search(rf"^parallel environment: +mpi range: {nodes}$", told, re.M), f"{plan}: {told}")
        sge.run("qdel", job.split(".")[0])
        seen += 1
    check(seen >= 10, f"{seen} scripts")


def gang(t, name, steps):
    text = PLAN.format(gpus=2, python=PYTHON, train=TRAIN, steps=f"{steps}, --checkpoint-every, 20")
    text = text.replace("GLOO_SOCKET_IFNAME: lo", "GLOO_SOCKET_IFNAME: eth0")
    return render(t, text, "sge", name)


def output(folder, job):
    found = sorted(folder.glob(f"tiny.o{job}*"))
    return found[0].read_text() if found else ""


@one
def test_a_gang_trains_on_both_nodes_and_goes_on_where_it_was(t):
    sge = cell(t)
    if why := no_torch():
        raise Skipped(why)
    path = "PATH=" + wrapped_torchrun(t)
    alone = gang(t, "alone", STEPS)
    job = sge.submit("-v", path, "tiny.sge", cwd=alone)
    rows = sge.ended(job, LIMIT_S)
    through = weights(output(alone, job))
    check(len(through) == 1, f"{rows}\n{output(alone, job)[-3000:]}")
    check({row["exit_status"] for row in rows} == {"0"}, rows)
    check({row["hostname"] for row in rows} == {"node-0", "node-1"}, rows)

    stopped = gang(t, "stopped", STEPS)
    job = sge.submit("-v", path, "tiny.sge", cwd=stopped)
    checkpoints = stopped / "checkpoints"
    until("two checkpoints on the way", lambda: len(list(checkpoints.glob("step-*"))) > 1 or not sge.waits_or_runs(job), LIMIT_S)
    check(not (checkpoints / "done").exists(), "it ended before it could be stopped: more steps are needed here")
    sge.run("qdel", job)
    sge.ended(job, LIMIT_S)
    check(not (checkpoints / "done").exists(), "it ended before it could be stopped: more steps are needed here")
    job = sge.submit("-v", path, "tiny.sge", cwd=stopped)
    rows = sge.ended(job, LIMIT_S)
    check("resumed from step" in output(stopped, job), output(stopped, job)[:3000])
    check(weights(output(stopped, job)) == through, f"{rows}\n{weights(output(stopped, job))} and {through}\n{output(stopped, job)[-3000:]}")


@one
def test_a_rank_that_fails_fails_the_job(t):
    sge = cell(t)
    folder = gang(t, "broken", 20)
    programs = pathlib.Path(t.base) / "programs"
    programs.mkdir()
    torchrun = programs / "torchrun"
    torchrun.write_text('#!/bin/sh\necho "here is $(hostname)"\n[ "$(hostname)" != node-1 ] || exit 5\n')
    torchrun.chmod(0o755)
    job = sge.submit("-v", f"PATH={programs}:/usr/bin:/bin", "tiny.sge", cwd=folder)
    rows = sge.ended(job, LIMIT_S)
    said = output(folder, job)
    check("here is node-0" in said and "here is node-1" in said, said)
    check("5" in {row["exit_status"] for row in rows}, f"{rows}\n{said}")


@one
def test_an_array_does_each_share_once(t):
    sge = cell(t)
    folder = pathlib.Path(rendered(t)["few", "sge"])
    count = deployment(t, "few", "sge")["ranks"]["count"]
    programs, said = pathlib.Path(t.base) / "programs", pathlib.Path(t.base) / "said"
    programs.mkdir()
    said.mkdir()
    python = programs / "python3"
    python.write_text(f'#!/bin/sh\necho "$STOKER_ARRAY_INDEX of $STOKER_ARRAY_COUNT $*" >> {said}/$STOKER_ARRAY_INDEX\n')
    python.chmod(0o755)
    job = sge.submit("-v", f"PATH={programs}:/usr/bin:/bin", "files.sge", cwd=folder)
    sge.ended(job, LIMIT_S)
    got = {int(path.name): path.read_text() for path in said.iterdir()}
    check(got == {index: f"{index} of {count} work.py --name it's $HOME\n" for index in range(count)}, str(got)[:2000])


if __name__ == "__main__":
    main(dict(globals()))

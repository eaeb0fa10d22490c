#!/usr/bin/env python3
"""A controller of Slurm that dies right after it took a job, again and again. It saves its state only every few seconds, so it comes back
without jobs that it had confirmed and gives out their numbers again: nothing may be lost, run twice or be left. And clocks that disagree
by an hour: what runs, what is charged and what is told hang on none of them. Where the packages are missing it says so and passes.

    python3 tests/e2e/slurm_controller_test.py --stoker build/release/stoker [NAME...]
    STOKER_E2E_CONTROLLER_KILLS=100     how often the controller is killed (3)"""

import datetime
import os
import random
import time

import slurm_cluster
from harness import Skipped, check, wait_for
from slurm_cluster import SERVER

CLUSTER = None
LIMIT_S = 240
KILLS = int(os.environ.get("STOKER_E2E_CONTROLLER_KILLS", "3"))
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"


def up(t):
    CLUSTER.resume_nodes()
    t.write("server.yaml", SERVER.format(config=CLUSTER.config))
    t.up("--config", os.path.join(t.work, "server.yaml"))
    wait_for("the nodes of the cluster", lambda: len(t.json("nodes")) == 2, LIMIT_S)


def nothing_is_left(t):
    wait_for("an empty queue", CLUSTER.quiet, LIMIT_S)
    wait_for("an empty folder of the engine", lambda: os.listdir(os.path.join(t.folder, "slurm")) == [], LIMIT_S)


def test_a_controller_killed_within_three_seconds_of_a_submission(t):
    up(t)
    chance, runs = random.Random(11), {}
    for i in range(KILLS):
        name = f"run-{i}"
        runs[t.call("submit", "--cpus", "1", "--name", name, "--", "sh", "-c",
                    f"echo $STOKER_OP >> {t.work}/{name}; sleep {chance.uniform(0.1, 2):.2f}").stdout.strip()] = name
        time.sleep(chance.uniform(0, 3))
        CLUSTER.kill_controller()
        time.sleep(chance.choice((0, 0, 0.5)))
        CLUSTER.start_controller()
        CLUSTER.resume_nodes()
    lost, doubled = [], []
    for run, name in runs.items():
        def ended():
            CLUSTER.resume_nodes()  # what a killed controller gave out twice drains the node at any time
            return t.describe(run)["run"]["state"] in ("succeeded", "failed")
        wait_for(f"the end of {run}", ended, LIMIT_S)
        described = t.describe(run)
        view = described["run"]
        path = os.path.join(t.work, name)
        lines = open(path).read().splitlines() if os.path.exists(path) else []
        if view["state"] != "succeeded" or not lines:
            lost.append((run, view))
        # A controller that starts again ends what it forgot; that is begun again, as another operation.
        if len(set(lines)) < len(lines) or len(lines) > len(described["attempts"]):
            doubled.append((run, lines))
    check(not lost, f"{len(lost)} lost: {lost[:3]}")
    check(not doubled, f"{len(doubled)} ran twice: {doubled[:3]}")
    nothing_is_left(t)
    print(f"   controller killed {KILLS} times: {len(runs)} runs, 0 lost, 0 doubled, 0 left")


def a_server_with_a_clock_of_its_own(t, offset_s):
    """The controller's restart in the middle makes the server ask what it remembers, and when the controller began."""
    if not os.path.exists(FAKETIME):
        raise Skipped("libfaketime is not installed")
    t.environment.update(LD_PRELOAD=FAKETIME, FAKETIME=f"{offset_s:+d}s", FAKETIME_DONT_FAKE_MONOTONIC="1", FAKETIME_NO_CACHE="1")
    up(t)
    run = t.call("submit", "--name", "skewed", "--cpus", "1", "--", "sh", "-c", f"echo $STOKER_OP >> {t.work}/skewed; sleep 6").stdout.strip()
    t.wait_state(run, "running", limit_s=LIMIT_S)
    CLUSTER.end("run/slurmctld.pid")  # in order: it saves what it knows
    CLUSTER.start_controller()
    view = t.wait_state(run, "succeeded", "failed", limit_s=LIMIT_S)["run"]
    submitted = datetime.datetime.fromisoformat(view["submitted_at"].replace("Z", "+00:00")).timestamp()
    check(abs(submitted - time.time() - offset_s) < LIMIT_S, f"the clock is not {offset_s} s off: {view['submitted_at']}")
    check(view["state"] == "succeeded", f"{view}")
    check(open(os.path.join(t.work, "skewed")).read().count("\n") == 1, "it ran more than once")
    charged = t.json("usage", "--by", "run")["items"][0]["cpu_hours"] * 3600
    check(5 <= charged <= 60 and abs(charged - view["used_s"]) < 0.01, f"6 s of work are charged as {charged} s")
    told = t.call("describe", run).stdout
    check("1h" not in told and "59m" not in told, told)
    nothing_is_left(t)


def test_a_server_whose_clock_is_ahead(t):
    a_server_with_a_clock_of_its_own(t, 3600)


def test_a_server_whose_clock_is_behind(t):
    a_server_with_a_clock_of_its_own(t, -3600)


if __name__ == "__main__":
    slurm_cluster.main(globals())

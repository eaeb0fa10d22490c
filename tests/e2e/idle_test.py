"""Runs that hold a machine while nothing moves: told, parked, released and gone on from their checkpoint; what works and what
somebody keeps is left alone.

    python3 tests/e2e/idle_test.py --stoker build/release/stoker [NAME...]"""

import json
import os
import shutil

from gpu_test import DOUBLE, build_double
from harness import check, main, wait_for
from teams_test import Caller

RULES = """idle:
  - {kinds: [notebook], then: park, after: 4s, notice: 2s, parked_for: 30d, longest_hold: 1h}
  - {users: [nobody], then: stop}
notify: {idle: [platform@example.org], sendmail: SENDMAIL}
prices:
  source: ours
  prices: [{resource: cpu, usd_per_hour: 2, valid_from: 2026-01-01}]
"""
# Writes a checkpoint when it is told to; begins where that was.
LAB = """
import json, os, signal, time
was = os.environ.get("STOKER_RESUME_FROM")
print("resumed from", was and open(os.path.join(was, "cells.txt")).read(), flush=True)
def write(*_):
    folder = os.path.join(os.environ["STOKER_CHECKPOINT_DIR"], "step-000001")
    os.makedirs(folder + ".tmp", exist_ok=True)
    open(os.path.join(folder + ".tmp", "cells.txt"), "w").write("three cells")
    json.dump({"step": 1, "files": [{"name": "cells.txt", "size": 11}]}, open(os.path.join(folder + ".tmp", "manifest.json"), "w"))
    os.rename(folder + ".tmp", folder)
    os._exit(0)
signal.signal(signal.SIGUSR1, write)
while True:
    time.sleep(600)
"""


def lab(t, name, code, cpu_milli=500):
    t.write(name + ".py", code)
    return Caller(t).json("POST", "/api/v1/runs", {
        "name": name, "kind": "notebook", "command": ["python3", name + ".py"], "folder": t.work,
        "per_rank": {"cpu_milli": cpu_milli}, "checkpoint": {"folder": "checkpoints", "interval_s": 600}})["run"]


def test_an_idle_notebook_is_told_parked_and_goes_on(t):
    mails = os.path.join(t.base, "mails")
    program = t.write("sendmail", f"#!/bin/sh\n{{ echo \"args $*\"; cat; echo; echo ---; }} >> {mails}\n")
    os.chmod(program, 0o700)
    t.up("--config", t.write("server.yaml", RULES.replace("SENDMAIL", program)))
    check("nothing that runs is idle" in t.call("idle", "list").stdout, "at first")
    # A small share, so that a busy machine leaves it more than a twentieth of that.
    busy = lab(t, "busy", "while True: pass\n", cpu_milli=50)
    kept = lab(t, "kept", LAB)
    idle = lab(t, "idle", LAB)
    for run in (busy, kept, idle):
        t.wait_state(run, "running")
    t.call("idle", "keep", kept, "--for", "30m")
    refused = t.call("idle", "keep", kept, "--for", "2h", exit=2).stderr
    check("may be kept for 1 h at once" in refused, refused)
    told = wait_for("its owner is told", lambda: (lambda m: m if f"{idle} idle is idle" in m else None)(
        open(mails).read() if os.path.exists(mails) else ""))
    check("args -i -- platform@example.org" in told and "held 0.5 CPUs at $1.00 an hour: nothing moved for" in told
          and f"stoker idle keep {idle} --for 8h" in told and "In 2 s it may be parked" in told, told)
    view = wait_for("it is parked", lambda: (lambda v: v if v["run"]["state"] in ("queued", "requeued") else None)(t.describe(idle)))
    view = wait_for("it waits", lambda: (lambda v: v if (v.get("why") or {}).get("code") == "held" else None)(t.describe(idle)))
    check("it was parked at" in view["why"]["text"] and "it is ended at" in view["why"]["text"], view["why"])
    check(f"`stoker release {idle}`" in view["why"]["unblock"][0], view["why"])
    listed = {each["run"]: each for each in t.json("idle", "list")["items"]}
    check(listed[idle]["state"] == "parked" and listed[kept]["state"] == "kept" and busy not in listed, listed)
    gauges = Caller(t).ask("GET", "/metrics")[1]
    check('stoker_idle_runs{state="parked"} 1\n' in gauges and 'stoker_idle_runs{state="kept"} 1\n' in gauges, gauges)
    check(t.describe(busy)["run"]["state"] == "running" and t.describe(kept)["run"]["state"] == "running", "left alone")
    by = [line for line in t.call("journal", "show", "--object", f"run/{idle}").stdout.splitlines() if "run.held" in line]
    check(len(by) == 1 and "idle" in by[0], by)
    check("POST" in t.call("audit").stdout and "keep" in t.call("audit").stdout, "who keeps it stands in the audit trail")
    t.call("release", idle)
    wait_for("it goes on from there", lambda: "resumed from three cells" in t.call("logs", idle, exit=None).stdout)
    t.call("idle", "drop", kept)
    wait_for("what is not kept any more is parked, too",
             lambda: (t.describe(kept).get("why") or {}).get("code") == "held")
    check(t.call("journal", "verify").returncode == 0, "and the journal is whole")


RANK = """
import os, signal, sys, time
open(os.path.join(sys.argv[1], sys.argv[2]), "w").write(str(os.getpid()))
signal.signal(signal.SIGUSR1, lambda *_: os._exit(0))
while True:
    time.sleep(600)
"""


def test_an_idle_gpu_is_given_back_and_a_working_one_is_not(t):
    """Two runs that use no processor, on the double of NVML: the board of one works, that of the other does nothing."""
    library, script, pids = os.path.join(t.base, "libnvidia-ml.so.1"), os.path.join(t.base, "script"), os.path.join(t.base, "pids")
    os.mkdir(pids)
    shutil.copy(build_double(), library)

    def say(*more):
        lines = ["set * util 97", "set * sm_active 85", "set 1 util 0", "set 1 sm_active 0", "set 1 power_mw 71000", "set 1 reasons 1", *more]
        with open(script + ".new", "w") as file:
            file.write("\n".join(lines) + "\n")
        os.replace(script + ".new", script)
    say()
    t.environment.update(STOKER_NVML_PROFILE=os.path.join(DOUBLE, "profiles", "h100.profile"), STOKER_NVML_GPUS="2",
                         STOKER_NVML_LIBRARY=library, STOKER_NVML_SCRIPT=script)
    t.up("--health-gate", "off", "--config", t.write("server.yaml", json.dumps({
        "nodes": [{"name": "n", "vcpus": 2, "memory": "4GiB", "gpus": 2, "gpu": "H100"}],
        "prices": {"source": "ours", "prices": [{"resource": "gpu", "usd_per_hour": 2.5, "valid_from": "2026-01-01"}]},
        "idle": [{"then": "park", "after": "4s", "notice": "2s"}]})))
    t.write("rank.py", RANK)
    runs = [Caller(t).json("POST", "/api/v1/runs", {
        "name": f"board-{board}", "command": ["python3", "rank.py", pids, str(board)], "folder": t.work,
        "per_rank": {"cpu_milli": 100, "gpus": 1}, "checkpoint": {"folder": "checkpoints"}})["run"] for board in (0, 1)]
    wait_for("both ranks", lambda: len(os.listdir(pids)) == 2 and all(os.path.getsize(os.path.join(pids, n)) for n in os.listdir(pids)))
    say(*(f"process {board} {open(os.path.join(pids, str(board))).read()} 40000000000 {97 * (1 - board)}" for board in (0, 1)))
    wait_for("the idle one is parked", lambda: (t.describe(runs[1]).get("why") or {}).get("code") == "held")
    check(t.describe(runs[0])["run"]["state"] == "running", "the working one is left alone")
    listed = {each["run"]: each for each in t.json("idle", "list")["items"]}
    check(listed[runs[1]]["state"] == "parked" and runs[0] not in listed, listed)


def test_rules_are_read_strictly_and_hold_at_once(t):
    t.up()
    said = t.call("idle", "list").stdout
    check("runs that do nothing are left alone" in said, said)
    refused = t.call("config", "set", t.write("bad.yaml", "idle:\n  - {then: park}\n  - {kinds: [lab], then: kill}\n"), exit=2).stderr
    check("bad.yaml:3:" in refused and "kill" in refused, refused)
    said = t.call("config", "set", t.write("good.yaml", "idle: [{then: tell, after: 1h}]\n")).stdout
    check("in force now: idle" in said, said)
    check("all runs: told after 1 h" in t.call("idle", "list").stdout, "and it holds")
    run = t.call("submit", "--", "sleep", "600").stdout.split()[0]
    t.wait_state(run, "running")
    refused = t.call("idle", "keep", run, exit=2).stderr
    check("for how long?" in refused, refused)
    t.call("config", "set", t.write("none.yaml", "max_queued: 10\n"))
    check("no rule of `idle` is about it" in t.call("idle", "keep", run, "--for", "1h", exit=2).stderr, "without a rule")


if __name__ == "__main__":
    main(dict(globals()))

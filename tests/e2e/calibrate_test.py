#!/usr/bin/env python3
"""This machine as the planner sees it: PyTorch measured, runs added, and what is predicted next follows them."""

import json
import os
import pathlib

from harness import check, main

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PYTHON = "/usr/bin/python3"


def training(t, name, dim, layers, steps=12, command=None):
    wide = (dim * 8 // 3 + 31) // 32 * 32
    words = command or [PYTHON, str(SOURCE / "examples/train-tiny/train.py"), "--dim", dim, "--layers", layers, "--heads", 4,
                        "--ctx", 64, "--batch", 8, "--steps", steps]
    t.write(name + ".yaml", f"""version: 1
name: {name}
kind: training
model: {{layers: {layers}, hidden: {dim}, heads: 4, ffn: {wide}, vocab: 259, gated: true, norm: rmsnorm, tied_embeddings: false}}
data: {{tokens: {64 * 8 * steps}, sequence: 64}}
batch: {{global_examples: 8}}
precision: fp32
optimizer: adamw
framework: pytorch
where: {{cloud: this-machine}}
run:
  command: {json.dumps([str(word) for word in words])}
  ranks: 1
  cpus: 1
  environment: {{OMP_NUM_THREADS: 1, OPENBLAS_NUM_THREADS: 1, PYTHONDONTWRITEBYTECODE: 1}}
""")
    return name + ".yaml"


def has_torch(t):
    import subprocess
    return subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode == 0


def test_pytorch_is_measured_and_used(t):
    if not has_torch(t):
        raise AssertionError("PyTorch is missing; ./dev test installs it")
    card = json.loads(t.call("bench", "cpu", "--quick", "--framework", "-o", "json", limit_s=280).stdout)
    measured = card["framework"]
    check(measured["framework"].startswith("torch ") and measured["operator_s"] > 0, str(measured))
    kept = json.load(open(os.path.join(t.base, "cache/stoker/this-machine.json")))
    check(all({"hardware", "framework"} <= set(machine) for machine in kept.values()), str(kept.keys()))
    # A machine on which an operator takes a second is predicted to take that.
    plan = training(t, "small", 64, 2)
    before = t.json("plan", plan)["candidates"][0]["prediction"]["step_seconds"]["mid"]
    for machine in kept.values():
        machine["framework"]["operator_s"] = 1
    json.dump(kept, open(os.path.join(t.base, "cache/stoker/this-machine.json"), "w"))
    after = t.json("plan", plan)["candidates"][0]["prediction"]["step_seconds"]["mid"]
    check(after > before + 10, f"{before} s a step, then {after}")


def test_three_runs_correct_the_next_prediction_and_can_be_forgotten(t):
    t.call("bench", "cpu", "--quick")
    # Steps of exactly 3 s, as the program says: the machine is "measured" without depending on how busy it is.
    program = [PYTHON, "-c", "import json, os\n"
               "out = open(os.environ['STOKER_METRICS_FILE'], 'a')\n"
               "for step in range(1, 21): print(json.dumps({'step': step, 'step_s': 3.0, 'peak_rss_bytes': 10**9}), file=out)\n"]
    plans = [training(t, f"t{i}", dim, layers, command=program) for i, (dim, layers) in enumerate([(128, 2), (192, 3), (64, 4)])]
    published = t.json("plan", plans[0])["candidates"][0]["prediction"]["step_seconds"]
    for plan in plans:
        t.call("run", plan)
    out = t.call("calibrate", "add", "r-1", "r-2").stdout
    check("2 of 3 runs" in out, out)
    check(t.json("plan", plans[0])["candidates"][0]["prediction"]["step_seconds"] == published, "two runs teach nothing")
    t.call("calibrate", "add", "r-3")
    now = t.json("plan", plans[0])["candidates"][0]["prediction"]
    check(now["step_seconds"]["mid"] > 4 * published["mid"], f"{published} then {now['step_seconds']}")
    check(any("calibrated on 3 runs" in note for note in t.json("plan", plans[0])["candidates"][0]["notes"]), "told in the plan")
    t.call("run", plans[0])
    said = t.describe("r-4")["spec"]["prediction"]["published"]
    check(said["calibrated_on"] == 3, str(said))
    check(abs(said["compute_s"] + said["other_s"] + said["exchange_s"] - published["mid"]) < 1e-6,
          f"what the constants say is kept: {said}, {published}")
    t.call("calibrate", "forget", "r-2")
    check(len(t.json("calibrate", "show")["runs"]) == 2, "two are left")
    t.call("calibrate", "forget", "--all")
    check(t.json("plan", plans[0])["candidates"][0]["prediction"]["step_seconds"] == published, "as published again")


def test_what_teaches_nothing_is_refused(t):
    t.call("bench", "cpu", "--quick")
    t.call("run", "--", "true")
    done = t.call("calibrate", "add", "r-1", exit=2)
    check("r-1 teaches nothing: it was not predicted" in done.stderr, done.stderr)
    # Nine tenths of its steps wait for data: factors of that would be of the loader.
    starved = [PYTHON, "-c", "import json, os, time\n"
               "out = open(os.environ['STOKER_METRICS_FILE'], 'a', buffering=1)\n"
               "for step in range(1, 41):\n"
               "    time.sleep(0.1)\n"
               "    print(json.dumps({'step': step, 'step_s': 0.1, 'wait_s': 0.09, 'compute_s': 0.01}), file=out)\n"]
    t.call("run", training(t, "starved", 128, 2, command=starved))
    done = t.call("calibrate", "add", "r-2", exit=2)
    check("r-2 teaches nothing: it did not run as planned: starved-input" in done.stderr, done.stderr)
    check("which run" in t.call("calibrate", "add", exit=2).stderr, "no run named")
    check("r-9" in t.call("calibrate", "forget", "r-9", exit=None).stderr, "one that was never added")
    t.call("calibrate", "nonsense", exit=2)


if __name__ == "__main__":
    main(dict(globals()))

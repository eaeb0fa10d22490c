"""Work of several parts, as files say it: retries and timeouts of steps, arrays, resume, images, notebooks, money."""

import json
import os

from harness import check, main, wait_for


def steps_of(view):
    return {step["step"]: (step["state"], step.get("cause", "none")) for step in view["steps"]}


def test_a_step_is_tried_again_and_one_that_hangs_is_ended(t):
    t.write("graph.yaml", """version: 1
name: flow
run:
  steps:
    - {name: shaky, retries: 2, command: 'echo x >> tries; test $(wc -l < tries) -ge 3'}
    - {name: slow, after: [shaky], timeout: 1s, grace: 1s, on_failure: continue, command: sleep 600}
    - {name: beside, after: [shaky], command: echo beside}
    - {name: behind, after: [slow], command: echo never}
""")
    t.up()
    t.call("run", "graph.yaml", exit=1, limit_s=90)
    view = t.describe("r-1")
    states = {name: state for name, (state, _) in steps_of(view).items()}
    check(states["shaky"] == "succeeded" and states["beside"] == "succeeded", str(steps_of(view)))
    check(states["slow"] in ("failed", "expired") and states["behind"] == "cancelled", str(steps_of(view)))
    check(open(os.path.join(t.work, "tries")).read() == "x\n" * 3, "three tries")


def test_a_failure_that_is_ignored_stops_nothing(t):
    t.write("graph.yaml", """version: 1
run:
  steps:
    - {name: optional, on_failure: ignore, command: exit 3}
    - {name: after, after: [optional], command: echo went on}
""")
    done = t.call("run", "graph.yaml", exit=None, limit_s=60)
    check("went on" in done.stdout, done.stdout + done.stderr)


def test_an_array_is_resumed_where_it_failed(t):
    t.write("array.yaml", """version: 1
name: array
run:
  command: 'echo "item $STOKER_ARRAY_INDEX" >> items; test $STOKER_ARRAY_INDEX -ne 2 -o -e mended'
  array: 0-3
  cpus: 0.1
""")
    t.up()
    t.call("run", "array.yaml", exit=1, limit_s=60)
    t.write("mended", "")
    t.call("run", "--resume", "r-1", limit_s=60)
    items = sorted(open(os.path.join(t.work, "items")).read().split("\n"))
    check(items == ["", "item 0", "item 1", "item 2", "item 2", "item 3"], str(items))


PROGRAM = """import json, os, signal, sys, time
folder, resume = os.environ["STOKER_CHECKPOINT_DIR"], os.environ.get("STOKER_RESUME_FROM", "")
step = json.load(open(resume + "/manifest.json"))["step"] if resume else 0
print("from", step, flush=True)
def save(*_):
    os.makedirs(f"{folder}/step-{step:06d}.tmp", exist_ok=True)
    json.dump({"step": step, "files": []}, open(f"{folder}/step-{step:06d}.tmp/manifest.json", "w"))
    os.replace(f"{folder}/step-{step:06d}.tmp", f"{folder}/step-{step:06d}")
    sys.exit(143)
signal.signal(signal.SIGTERM, save)
while not os.path.exists("end"):
    step += 1
    time.sleep(0.02)
    if step == 10: open("ten", "w")
print("ended", flush=True)
"""


def test_a_cancelled_run_goes_on_from_its_checkpoint(t):
    t.write("program.py", PROGRAM)
    t.write("run.yaml", "version: 1\nname: single\nrun:\n  command: [python3, program.py]\n  checkpoint: {every: 1h}\n")
    t.up()
    run = t.call("submit", "run.yaml").stdout.strip()
    wait_for("ten steps", lambda: os.path.exists(os.path.join(t.work, "ten")))
    t.call("cancel", run)
    view = t.wait_state(run, "cancelled")
    check(view["checkpoints"]["newest"]["step"] >= 10, json.dumps(view["checkpoints"]))
    t.write("end", "")
    done = t.call("run", "--resume", run)
    said = [line for line in done.stdout.splitlines() if line.startswith("from ")]
    check(said and int(said[0].split()[1]) >= 10 and "ended" in done.stdout, done.stdout + done.stderr)


def test_a_failed_run_is_resumed_too(t):
    t.call("run", "--", "sh", "-c", "test -e mended && echo mended", exit=1)
    t.write("mended", "")
    check("mended" in t.call("run", "--resume", "r-1").stdout, "the second time")
    t.call("run", "--resume", "r-99", exit=2)


def test_an_image_is_found_from_where_the_person_stands(t):
    """The server has another working folder: a relative one would be looked for there."""
    os.makedirs(os.path.join(t.work, "bundle"))
    t.write("run.yaml", "version: 1\nrun: {command: ls, image: bundle}\n")
    for words in (["run.yaml"], ["--image", "bundle", "--", "ls"]):
        run = json.loads(t.call("submit", "-o", "json", *words, exit=None).stdout or "{}")
        if run:  # refused where the bundle has no config.json
            check(t.describe(run["run"])["spec"]["image"] == os.path.join(t.work, "bundle"), str(run))
        else:
            said = t.call("submit", *words, exit=None).stderr
            check(os.path.join(t.work, "bundle") in said or "server" in said, said)


def test_a_notebook_needs_jupyter_and_says_so(t):
    """With a jupyter in PATH it starts; without one nothing is held, and what to install is told."""
    notebook = """version: 1
name: nb
kind: notebook
memory: 1GiB
period: 1h
where: {cloud: this-machine}
run:
  command: [jupyter, lab, --no-browser]
  environment: {PATH: %s}
  requires: {commands: [jupyter]}
"""
    t.write("without.yaml", notebook % "/nowhere")
    done = t.call("run", "without.yaml", exit=None)
    check(done.returncode in (1, 2, 3) and "jupyter" in done.stderr and "install" in done.stderr, done.stderr)
    os.makedirs(os.path.join(t.work, "bin"))
    t.write("bin/jupyter", "#!/bin/sh\necho \"started $*\"\n")
    os.chmod(os.path.join(t.work, "bin", "jupyter"), 0o755)
    t.write("with.yaml", notebook % (os.path.join(t.work, "bin") + ":/usr/bin:/bin"))
    done = t.call("run", "with.yaml")
    check("started lab --no-browser" in done.stdout, done.stdout + done.stderr)
    check(t.describe("r-1")["run"]["kind"] == "notebook", "its kind")


PRICES = """currency: USD
source: test
prices:
  - {resource: cpu, usd_per_hour: 3600, valid_from: 2020-01-01}
"""


def test_money_is_counted_by_allocation_interval(t):
    """A dollar for each second of a processor: what the outcome, describe and usage say is one figure."""
    t.write("prices.yaml", PRICES)
    done = t.call("run", "--prices", "prices.yaml", "--cpus", "0.5", "--", "sleep", "1")
    check("; cost $" in done.stderr, done.stderr)
    # Nobody has to say the prices again to be told the same.
    said = done.stderr.split("; cost ")[1].split()[0].rstrip(";,.")
    for words in (("describe", "r-1"), ("usage", "--by", "run"), ("explain", "r-1")):
        check(said in t.call(*words).stdout, f"{words} does not say {said}: {t.call(*words).stdout}")
    t.up("--prices", os.path.join(t.work, "prices.yaml"))
    view = t.describe("r-1")
    used, cost = view["run"]["used_s"], view["cost_microusd"] / 1e6
    check(used >= 1 and abs(cost - 0.5 * used) < 0.01, f"{used} s, {cost} USD")
    usage = t.json("usage", "--by", "run")
    check(usage["total"]["cost_microusd"] == view["cost_microusd"], json.dumps(usage))
    check("$" in t.call("usage").stdout, "usage in money")
    check(t.call("run", "--prices", "nosuch.yaml", "--", "true", exit=None).returncode in (2, 3), "a file that is not there")


if __name__ == "__main__":
    main(dict(globals()))

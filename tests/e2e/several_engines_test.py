"""One queue over this machine and a real Slurm: where runs go and why, an engine that is away, and a server that is killed
again and again with runs in flight on both. Where the packages are missing it says so and passes.

    python3 tests/e2e/several_engines_test.py --stoker build/release/stoker [NAME...]"""

import os
import random
import shutil
import signal
import tempfile
import time

import slurm_cluster
from harness import check, wait_for
from slurm_cluster import Cluster

CLUSTER = None
LIMIT_S = 240
KILLS = int(os.environ.get("STOKER_E2E_KILLS", "6"))

SERVER = """nodes: [{{name: box, vcpus: 2, memory: 8GiB}}]
engines:
  - name: slurm-b
    kind: slurm
    partition: main
    config: {config}
    gpu_models: [{{name: a100, model: A100-SXM4-80GB}}]
"""


def up(t):
    CLUSTER.resume_nodes()
    t.write("server.yaml", SERVER.format(config=CLUSTER.config))
    server = t.up("--config", os.path.join(t.work, "server.yaml"))
    wait_for("the nodes of both", lambda: len(t.json("nodes")) == 3)
    return server


def submit(t, *words):
    return t.call("submit", *words).stdout.strip()


def shell(script):
    return ["--", "sh", "-c", script]


def engine_of(t, run):
    return t.describe(run)["run"].get("engine", "")


def test_a_run_goes_where_it_starts_first_and_says_why(t):
    up(t)
    nodes = t.call("nodes").stdout
    for word in ("engine", "box", "n1@slurm-b", "n2@slurm-b"):
        check(word in nodes, nodes)
    near = submit(t, "--cpus", "2", *shell("while [ ! -e go ]; do sleep 0.1; done; echo near"))
    t.wait_state(near, "running")
    check(engine_of(t, near) == "local", "the nearest goes first")
    told = t.call("whatif", "--cpus", "2", "--", "true").stdout
    check("sent to slurm-b: local has 0 of 2 CPUs free" in told, told)
    far = submit(t, "--cpus", "2", *shell("echo far on $SLURMD_NODENAME; while [ ! -e go ]; do sleep 0.1; done"))
    t.wait_state(far, "running")
    check(engine_of(t, far) == "slurm-b", "it did not go on where there was room")
    text = t.call("describe", far).stdout
    check("slurm-b (sent to slurm-b: local has 0 of 2 CPUs free" in text and "@slurm-b" in text, text)
    named = submit(t, "--cpus", "2", "--engine", "local", *shell("echo named"))
    text = wait_for("why it waits", lambda: (lambda s: s if "local has 0 of 2" in s else "")(t.call("describe", named).stdout))
    check("slurm-b" not in text.split("waits")[1].split("\n")[0], text)
    listing = t.call("ps").stdout
    check("engine" in listing.splitlines()[0] and "slurm-b" in listing and "local" in listing, listing)
    wrong = t.call("submit", "--engine", "slurm-c", "--", "true", exit=None)
    check(wrong.returncode != 0 and "this server has local, slurm-b" in wrong.stderr, wrong.stderr)
    open(os.path.join(t.work, "go"), "w").close()
    for run in (near, far, named):
        t.wait_state(run, "succeeded", limit_s=LIMIT_S)
    check("far on n" in t.call("logs", far).stdout, "no log of the far one")
    usage = t.call("usage", "--by", "engine").stdout
    check("local" in usage and "slurm-b" in usage, usage)


def test_an_engine_that_is_away_loses_nothing_and_holds_up_nobody(t):
    up(t)
    there = submit(t, "--engine", "slurm-b", *shell(f"echo here >> {t.work}/there; while [ ! -e {t.work}/go ]; do sleep 0.1; done"))
    t.wait_state(there, "running", limit_s=LIMIT_S)
    CLUSTER.kill_controller()
    try:
        wait_for("the word that it is away", lambda: "the engine slurm-b does not answer" in t.call("nodes").stdout, LIMIT_S)
        named = submit(t, "--engine", "slurm-b", *shell(f"echo here >> {t.work}/named"))
        here = submit(t, *shell("true"))
        t.wait_state(here, "succeeded")
        check(engine_of(t, here) == "local", "it went to one that is away")
        text = t.call("describe", named).stdout
        check("slurm-b does not answer" in text, text)
        check(t.describe(there)["run"]["state"] == "running", "what runs there is not known any more")
    finally:
        CLUSTER.start_controller()
    open(os.path.join(t.work, "go"), "w").close()
    for run in (there, named):
        t.wait_state(run, "succeeded", limit_s=LIMIT_S)
    for name in ("there", "named"):
        check(open(f"{t.work}/{name}").read() == "here\n", f"{name} ran more than once")


def test_two_clusters_stand_in_for_each_other(t):
    """Two Slurm clusters with nodes of the same names: what is open goes where a controller answers, what names one waits for it, and
    what runs on one that is away is started nowhere else."""
    base = tempfile.mkdtemp(prefix="stoker-other-")
    os.chmod(base, 0o755)
    other = Cluster(base, nodes=1)
    try:
        CLUSTER.resume_nodes()
        t.write("server.yaml", f"""engine: {{kind: slurm, partition: main, config: {other.config}}}
engines: [{{name: slurm-b, kind: slurm, partition: main, config: {CLUSTER.config}}}]
""")
        server = t.up("--config", os.path.join(t.work, "server.yaml"))
        wait_for("the nodes of both", lambda: {node["name"] for node in t.json("nodes")} == {"n1", "n1@slurm-b", "n2@slurm-b"})
        near = submit(t, *shell(f"echo near >> {t.work}/near; while [ ! -e {t.work}/go ]; do sleep 0.1; done"))
        t.wait_state(near, "running", limit_s=LIMIT_S)
        check(engine_of(t, near) == "slurm", "the first is not taken first")
        other.end("run/slurmctld.pid")  # as for an upgrade: its state is kept
        wait_for("the word that it is away", lambda: "the engine slurm does not answer" in t.call("nodes").stdout, LIMIT_S)
        named = submit(t, "--engine", "slurm", *shell(f"echo named >> {t.work}/named"))
        far = submit(t, *shell("true"))
        t.wait_state(far, "succeeded", limit_s=LIMIT_S)
        check(engine_of(t, far) == "slurm-b", "it waited for a cluster that is away")
        check("slurm does not answer" in t.call("describe", named).stdout, t.call("describe", named).stdout)
        check(t.describe(near)["run"]["state"] == "running", "what runs there was given up")
        other.start_controller()
        open(os.path.join(t.work, "go"), "w").close()
        for run, name in ((near, "near"), (named, "named")):
            view = t.wait_state(run, "succeeded", "failed", limit_s=LIMIT_S)
            check(view["run"]["state"] == "succeeded" and len(view["attempts"]) == 1, str(view["run"]))
            check(open(f"{t.work}/{name}").read() == f"{name}\n", f"{name} ran more than once")
        wait_for("empty queues", lambda: other.quiet() and CLUSTER.quiet(), LIMIT_S)
        server.terminate()
        server.wait(60)
    finally:
        other.close()
        shutil.rmtree(base, ignore_errors=True)


def test_a_server_killed_again_and_again_with_runs_on_both(t):
    server = up(t)
    chance, runs = random.Random(7), {}
    for i in range(KILLS):
        for j in range(3):
            engine = ("local", "slurm-b", "any")[j]
            name = f"{i}-{j}"
            run = submit(t, "--cpus", "0.5", "--engine", engine, "--name", name,
                         *shell(f"echo $STOKER_OP >> {t.work}/ran-{name}; sleep {0.2 + chance.random()}"))
            runs[run] = (name, engine)
        time.sleep(chance.random())
        server.send_signal(signal.SIGKILL)
        server.wait()
        server = t.up()  # the journal says which engines there are
    lost = doubled = 0
    engines = set()
    for run, (name, engine) in runs.items():
        view = t.wait_state(run, "succeeded", "failed", limit_s=LIMIT_S)
        check(view["run"]["state"] == "succeeded", f"{run}: {view['run']}")
        check(engine in ("any", view["run"]["engine"]), f"{run} ran on {view['run']['engine']}, not on {engine}")
        engines.add(view["run"]["engine"])
        path = f"{t.work}/ran-{name}"
        lines = open(path).read().splitlines() if os.path.exists(path) else []
        lost += not lines
        doubled += len(lines) > 1
    check(engines == {"local", "slurm-b"}, f"only on {engines}")
    check(lost == 0 and doubled == 0, f"{lost} lost, {doubled} ran twice")
    wait_for("an empty queue", CLUSTER.quiet, LIMIT_S)
    for folder in ("run", "engines/slurm-b/slurm"):
        path = os.path.join(t.folder, folder)
        wait_for(f"an empty {folder}", lambda: not os.path.isdir(path) or os.listdir(path) == [], LIMIT_S)
    print(f"   killed {KILLS} times with {len(runs)} runs: 0 lost, 0 doubled, 0 left")


if __name__ == "__main__":
    slurm_cluster.main(globals())

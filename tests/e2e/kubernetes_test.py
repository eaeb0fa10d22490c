#!/usr/bin/env python3
"""The file that was planned, on a real Kubernetes: `stoker up --config` with a kubernetes engine, and everything that people do with runs.
API server, scheduler and controllers are the real ones; pods are run by tests/kube/pod_runner.py as processes of this machine, without their
images. Skipped with its reason where `./dev kube` was not built or pods cannot be run.

    python3 tests/e2e/kubernetes_test.py --stoker build/release/stoker [NAME...]"""

import datetime
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request

import harness
import images_test
import kube
from harness import Skipped, check, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
TRAIN = os.path.join(SOURCE, "examples", "train-tiny", "train.py")
PYTHON = "/usr/bin/python3"
LIMIT_S = 240
CLUSTER = None

SERVER = """engine:
  kind: kubernetes
  config: {config}
  image: this-machine
  notice: 10s
  shared: [{shared}]
  gpu_models: [{{name: NVIDIA-A100-SXM4-80GB, model: A100-SXM4-80GB}}]
{more}"""


class Cluster:
    """tests/kube/cluster.py, asked line by line."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, os.path.join(SOURCE, "tests", "kube", "cluster.py")], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        hello = self.process.stdout.readline()
        if not hello:
            raise Skipped(self.process.stderr.read().strip().splitlines()[-1])
        self.config, self.folder = (json.loads(hello)[key] for key in ("kubeconfig", "folder"))

    def tell(self, *words):
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        check(answer["ok"], f"{words}: {answer}")
        return answer["answer"]

    def create(self, thing):
        self.tell("create", json.dumps(thing, separators=(",", ":")))

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(120)  # it removes the folders of a thousand pods, too
        except subprocess.TimeoutExpired:
            self.process.kill()


def up(t, more="", shared=True, words=()):
    t.write("server.yaml", SERVER.format(config=CLUSTER.config, shared=f"{{path: {t.base}}}" if shared else "", more=more))
    server = t.up("--config", os.path.join(t.work, "server.yaml"), *words)
    wait_for("the nodes of the cluster", lambda: len(t.json("nodes")) == 2)
    return server


def submit(t, *words):
    return t.call("submit", *words).stdout.strip()


def quiet():
    wait_for("nothing of ours is left", lambda: CLUSTER.tell("quiet"))


def train_file(t, steps, checkpoint=False):
    """Two ranks of the example, one on each node."""
    return t.write("train.yaml", f"""version: 1
name: ddp
run:
  command: {PYTHON} {TRAIN} --dim 48 --layers 2 --heads 4 --ctx 48 --batch 8 --steps {steps} {"--checkpoint-every 5" if checkpoint else ""}
  ranks: 2
  nodes: 2
  checkpoint: {{every: 1h}}
""")


def test_a_run_goes_to_kubernetes_and_all_commands_know_it(t):
    up(t)
    nodes = {node["name"] for node in t.json("nodes")}
    check(nodes == {"k1", "k2"}, f"nodes: {nodes}")
    run = submit(t, "--ranks", "2", "--gpus", "2", "--", "sh", "-c", "echo rank $RANK of $WORLD_SIZE")
    view = t.wait_state(run, "succeeded", "failed")
    check(view["run"]["state"] == "succeeded", json.dumps(view))
    # Its log comes from another machine, a moment after its end.
    wait_for("its log", lambda: "rank 0 of 2" in t.call("logs", run).stdout)
    check("on k" in t.call("describe", run).stdout, t.call("describe", run).stdout)
    check(run in t.call("ps", "--all").stdout, "ps does not show it")
    failed = submit(t, "--", "sh", "-c", "exit 3")
    check(t.wait_state(failed, "failed")["run"]["cause"] == "user_error", "an exit code is the user's")
    missing = submit(t, "--", "no-such-program-anywhere")
    text = json.dumps(t.wait_state(missing, "failed"))
    check("no program named no-such-program-anywhere" in text, text)
    quiet()


def test_steps_and_use_are_known_without_a_shared_folder(t):
    """Ranks write steps into the pod, where nobody but the container beside them sees it."""
    up(t, shared=False)
    script = """file=$STOKER_METRICS_FILE; [ $RANK = 0 ] || file=${file%.jsonl}.rank-$RANK.jsonl
say() { echo "{\\"step\\": $1, \\"step_s\\": 0.25, \\"loss\\": $2}" >> $file; }
trap 'say 1000 1; exit 143' TERM
step=0; while :; do step=$((step + 1)); say $step 2; sleep 0.4; done"""
    run = submit(t, "--ranks", "2", "--", "sh", "-c", script)
    wait_for("what both ranks do now", lambda: len(
        [row for row in json.loads(t.call("top", "-o", "json").stdout) if "step_s" in row and "cpu" in row]) == 2, LIMIT_S)
    t.call("cancel", run)
    t.wait_state(run, "cancelled", limit_s=LIMIT_S)
    address = json.load(open(os.path.join(t.folder, "server.json")))["url"]
    token = open(os.path.join(t.folder, "token")).read().strip()
    for rank in (0, 1):
        request = urllib.request.Request(f"{address}/api/v1/runs/{run}/series?metric=loss,rss&rank={rank}", headers={"Authorization": "Bearer " + token})

        def points():
            with urllib.request.urlopen(request, timeout=30) as answer:
                found = {each["metric"]: each["points"] for each in json.load(answer)["series"]}
            # A point may stand for several steps: every one but the last has a loss of 2.
            return found if found.get("loss") and found["loss"][-1][1] < 2 and found.get("rss") else None
        wait_for(f"the last step that rank {rank} wrote, and its memory", points, LIMIT_S)
    quiet()


LATE = """import json, os, time
rank, mine = int(os.environ["RANK"]), os.environ["STOKER_METRICS_FILE"]
if rank > 0:
    mine = mine.replace(".jsonl", f".rank-{rank}.jsonl")
for step in range(80):  # a step is over when the slow rank is, and only that one stands in its own work so long
    began, compute = time.time(), 0.2 if rank == 1 else 0.02
    time.sleep(0.2)
    line = {"step": step, "step_s": 0.2, "compute_s": compute, "allreduce_s": 0.2 - compute, "time": time.time()}
    with open(mine, "a") as file:
        file.write(json.dumps(line) + "\\n")
"""


def test_a_node_that_is_late_is_named(t):
    """No folder is shared: what a rank wrote is known from the container beside it, and with it which node holds the others up."""
    up(t, shared=False)
    run = submit(t, "--ranks", "2", "--nodes", "2", "--", PYTHON, "-c", LATE)
    view = t.wait_state(run, "succeeded", "failed", limit_s=LIMIT_S)
    check(view["run"]["state"] == "succeeded", t.call("logs", run, exit=None).stdout)
    places = {rank["rank"]: rank["node"] for rank in view["attempts"][-1]["ranks"]}
    check(set(places.values()) == {"k1", "k2"}, f"ranks on {places}")
    explanation = json.loads(t.call("explain", run, "-o", "json").stdout)
    found = [each for each in explanation["causes"] if each["cause"] == "straggler"]
    check(found and found[0]["rank"] == 1 and found[0]["node"] == places[1], json.dumps(explanation, indent=1)[:4000])
    text = t.call("explain", run).stdout
    check(f"rank 1 on {places[1]} works" in text, text)
    quiet()


def test_an_image_is_pinned_when_the_run_is_submitted(t):
    """A tag that moves between two attempts changes nothing of a run; what no registry has is told before anything waits for it."""
    if absent := images_test.missing():
        raise Skipped("apt-get install " + " ".join(absent))
    server = up(t)
    registry = images_test.Registry()
    try:
        box = f"{registry.host}/demo/box:v1"
        go = os.path.join(t.work, "go")
        runs, images = [], []
        for words in ("the first", "the second"):
            registry.push("v1", words)
            runs.append(submit(t, "--image", box, "--", "sh", "-c", f"while [ ! -e {go} ]; do sleep 0.1; done"))
            images.append(t.wait_state(runs[-1], "running", limit_s=LIMIT_S)["spec"]["image"])
        check(all(re.fullmatch(re.escape(box) + "@sha256:[0-9a-f]{64}", image) for image in images), f"not pinned: {images}")
        check(images[0] != images[1], "the tag moved, and the second run has the image of the first")
        pods = CLUSTER.tell("kubectl", "get", "pods", "-A", "-o", "jsonpath={.items[*].spec.containers[*].image}")
        check(all(image in pods for image in images), f"pods have {pods}")
        none = t.call("submit", "--image", f"{registry.host}/demo/box:no-such", "--", "true", exit=2)
        check("there is no such image" in none.stderr, none.stderr)
        # Nodes may well reach what this machine does not: it goes as it is written, and the server's log says why.
        far = submit(t, "--image", "127.0.0.1:1/demo/box:v1", "--", "true")
        check(t.wait_state(far, "succeeded", limit_s=LIMIT_S)["spec"]["image"] == "127.0.0.1:1/demo/box:v1", json.dumps(t.describe(far)["spec"]))
        log = open(server.err_path).read()
        check("image.not_pinned image=127.0.0.1:1/demo/box:v1" in log and "the registry cannot be reached" in log, log)
        open(go, "w").close()
        for run in runs:
            t.wait_state(run, "succeeded", limit_s=LIMIT_S)
        quiet()
    finally:
        registry.close()


def test_what_waits_says_why_and_is_cancelled(t):
    up(t)
    CLUSTER.tell("cordon")
    try:
        run = submit(t, "--", "sh", "-c", f"echo ran > {t.work}/ran")
        wait_for("its reason", lambda: "uncordon" in t.call("describe", run).stdout)
        check("node_unhealthy" in t.call("describe", run).stdout, t.call("describe", run).stdout)
        t.call("cancel", run)
        t.wait_state(run, "cancelled")
        quiet()
    finally:
        CLUSTER.tell("uncordon")
    check(not os.path.exists(os.path.join(t.work, "ran")), "it ran")
    running = submit(t, "--ranks", "2", "--", "sh", "-c", "while :; do sleep 0.1; done")
    t.wait_state(running, "running")
    t.call("cancel", running)
    t.wait_state(running, "cancelled")
    quiet()


def needs_torch():
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode != 0:
        raise Skipped("no PyTorch here")


def test_two_ranks_of_pytorch_train_are_evicted_and_go_on(t):
    needs_torch()
    up(t)
    run = submit(t, train_file(t, 400, checkpoint=True))
    t.wait_state(run, "running", limit_s=LIMIT_S)
    folder = os.path.join(t.folder, "runs", run, "checkpoints")

    def steps():
        return [name for name in (os.listdir(folder) if os.path.isdir(folder) else []) if name.startswith("step-") and not name.endswith(".tmp")]
    wait_for("two checkpoints", lambda: len(steps()) >= 2, LIMIT_S)
    CLUSTER.tell("evict")
    view = t.wait_state(run, "succeeded", "failed", limit_s=LIMIT_S)
    check(view["run"]["state"] == "succeeded", t.call("logs", run, exit=None).stdout[-2000:])
    check([each.get("cause") for each in view["attempts"]] == ["evicted", "ok"], json.dumps(view["attempts"]))
    check("step-" in json.dumps(view["attempts"][1]), f"the second did not resume: {view['attempts'][1]}")
    quiet()


def test_server_and_api_server_are_killed_in_flight(t):
    server = up(t)
    run = submit(t, "--ranks", "2", "--", "sh", "-c", f"echo here >> {t.work}/ran-$RANK; while [ ! -e {t.work}/go ]; do sleep 0.1; done")
    t.wait_state(run, "running")
    server.send_signal(signal.SIGKILL)
    server.wait()
    CLUSTER.tell("restart")
    # Without --config: what the journal has says which engine it is.
    t.up()
    check(t.describe(run)["run"]["state"] == "running", "it is not running any more")
    open(os.path.join(t.work, "go"), "w").close()
    t.wait_state(run, "succeeded", limit_s=LIMIT_S)
    for rank in (0, 1):
        check(open(f"{t.work}/ran-{rank}").read() == "here\n", f"rank {rank} was started more than once")
    # A submission that nobody answers is not lost: it is given again.
    CLUSTER.tell("shut")
    late = submit(t, "--", "sh", "-c", f"echo here >> {t.work}/late")
    CLUSTER.tell("open")
    t.wait_state(late, "succeeded", limit_s=LIMIT_S)
    check(open(f"{t.work}/late").read() == "here\n", "it ran more than once")
    quiet()


def test_what_ended_while_the_api_server_forgot_is_seen(t):
    """It was away for so long, and so much happened, that it no longer knows what a watch would go on from (410)."""
    up(t)
    runs = {name: submit(t, "--", "sh", "-c", f"echo here >> {t.work}/ran-{name}; while [ ! -e {t.work}/go-{name} ]; do sleep 0.1; done")
            for name in ("ends", "stays")}
    for run in runs.values():
        t.wait_state(run, "running", limit_s=LIMIT_S)
    seen = CLUSTER.tell("version")
    CLUSTER.tell("shut")
    open(os.path.join(t.work, "go-ends"), "w").close()
    wait_for("the end of its pod", lambda: CLUSTER.tell("ended") == 1, LIMIT_S)
    CLUSTER.tell("restart")
    check(CLUSTER.tell("watch-from", seen) == 410, "the API server still knows what was there before")
    CLUSTER.tell("open")
    t.wait_state(runs["ends"], "succeeded", limit_s=LIMIT_S)
    check(t.describe(runs["stays"])["run"]["state"] == "running", "what runs on is not known any more")
    open(os.path.join(t.work, "go-stays"), "w").close()
    t.wait_state(runs["stays"], "succeeded", limit_s=LIMIT_S)
    for name in runs:
        check(open(f"{t.work}/ran-{name}").read() == "here\n", f"{name} ran more than once")
    quiet()


def a_server_with_a_clock_of_its_own(t, offset_s):
    if not os.path.exists(kube.FAKETIME):
        raise Skipped("libfaketime is not installed")
    t.environment.update(LD_PRELOAD=kube.FAKETIME, FAKETIME=f"{offset_s:+d}s", FAKETIME_DONT_FAKE_MONOTONIC="1", FAKETIME_NO_CACHE="1")
    up(t)
    run = submit(t, "--cpus", "1", "--", "sh", "-c", f"echo here >> {t.work}/skewed; sleep 6")
    t.wait_state(run, "running", limit_s=LIMIT_S)
    CLUSTER.tell("restart")
    view = t.wait_state(run, "succeeded", "failed", limit_s=LIMIT_S)["run"]
    submitted = datetime.datetime.fromisoformat(view["submitted_at"].replace("Z", "+00:00")).timestamp()
    check(abs(submitted - time.time() - offset_s) < LIMIT_S, f"the clock is not {offset_s} s off: {view['submitted_at']}")
    check(view["state"] == "succeeded", f"{view}")
    check(open(os.path.join(t.work, "skewed")).read() == "here\n", "it ran more than once")
    charged = t.json("usage", "--by", "run")["items"][0]["cpu_hours"] * 3600
    check(5 <= charged <= 60 and abs(charged - view["used_s"]) < 0.01, f"6 s of work are charged as {charged} s")
    told = t.call("describe", run).stdout
    check("1h" not in told and "59m" not in told, told)
    quiet()


def test_a_server_whose_clock_is_ahead(t):
    a_server_with_a_clock_of_its_own(t, 3600)


def test_a_server_whose_clock_is_behind(t):
    a_server_with_a_clock_of_its_own(t, -3600)


def test_a_gang_waits_for_the_health_gate_of_its_nodes(t):
    """A node whose device plug-in has taken a GPU for unhealthy takes nothing, until it is well again."""
    gpus = lambda count: CLUSTER.tell("kubectl", "patch", "node", "k2", "--subresource=status", "--type=merge", "-p",
                                      json.dumps({"status": {"allocatable": {"nvidia.com/gpu": str(count)}}}, separators=(",", ":")))
    gpus(7)
    try:
        up(t, words=("--health-gate", "quick"))
        bad = wait_for("the checks", lambda: (lambda nodes: nodes["k2"] if all(each.get("check") for each in nodes.values()) else None)(
            {each["name"]: each for each in t.json("nodes")}), LIMIT_S)
        check(bad["state"] == "quarantined" and bad["check"]["not_passed"][0]["name"] == "gpu-count", json.dumps(bad))
        waits = submit(t, t.write("both.yaml", json.dumps({"version": 1, "name": "both", "run": {"command": "true", "ranks": 2, "nodes": 2}})))
        wait_for("why it waits", lambda: "k2" in json.dumps(t.describe(waits).get("why") or {}), LIMIT_S)
        alone = submit(t, "--", "true")
        view = t.wait_state(alone, "succeeded", limit_s=LIMIT_S)
        check({rank["node"] for rank in view["attempts"][-1]["ranks"]} == {"k1"}, json.dumps(view["attempts"][-1]["ranks"]))
    finally:
        gpus(8)
    now = t.call("nodes", "check", "k2", "--wait")
    check("it is ready now" in now.stdout, now.stdout)
    view = t.wait_state(waits, "succeeded", limit_s=LIMIT_S)
    check({rank["node"] for rank in view["attempts"][-1]["ranks"]} == {"k1", "k2"}, json.dumps(view["attempts"][-1]["ranks"]))
    quiet()


def test_a_gang_that_lost_a_pod_is_over(t):
    """The other rank would wait for it until it gives up by itself, and hold its GPUs meanwhile."""
    up(t)
    run = submit(t, "--ranks", "2", "--nodes", "2", "--", "sh", "-c", f"trap ': >{t.work}/told-'$RANK TERM; while [ ! -e {t.work}/told-$RANK ]; do sleep 0.1; done")
    t.wait_state(run, "running", limit_s=LIMIT_S)
    pod = CLUSTER.tell("kubectl", "get", "pods", "-l", "batch.kubernetes.io/job-completion-index=1", "-o", "name").split()[0]
    begun = time.monotonic()
    CLUSTER.tell("kubectl", "delete", pod, "--grace-period=0", "--force", "--wait=false")
    wait_for("the other is told to end", lambda: os.path.exists(os.path.join(t.work, "told-0")), LIMIT_S)
    told = time.monotonic() - begun
    view = wait_for("the end of the attempt", lambda: (lambda view: view if view["attempts"][0]["state"] == "ended" else None)(t.describe(run)), LIMIT_S)
    check(view["attempts"][0]["cause"] not in ("ok", "user_error"), json.dumps(view["attempts"][0]))
    print(f"   the other rank was told after {told:.1f} s; cause {view['attempts'][0]['cause']}")
    if view["run"]["state"] not in ("failed", "cancelled"):
        t.call("cancel", run)
        t.wait_state(run, "cancelled", limit_s=LIMIT_S)
    quiet()


PLUGIN = """#!/bin/sh
echo >>{work}/asked
[ ! -e {work}/expired ] || {{ echo 'the login is over: run kubelogin' >&2; exit 1; }}
printf '{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{{"token":"%s","expirationTimestamp":"%s"}}}}' \\
    {token} $(date -u -d '+12 seconds' +%Y-%m-%dT%H:%M:%SZ)
"""


def test_a_certificate_or_a_plug_in_says_who_we_are(t):
    """As EKS, GKE and AKS have it. A login that is over costs no run, and says itself what to do."""
    with open(os.path.join(CLUSTER.folder, "kubeconfig")) as file:
        config = json.load(file)
    token = config["users"][0]["user"]["token"]
    plugin = t.write("login", PLUGIN.format(work=t.work, token=token))
    os.chmod(plugin, 0o755)
    users = {"certificate": {"client-certificate": os.path.join(CLUSTER.folder, "client.crt"), "client-key": os.path.join(CLUSTER.folder, "client.key")},
             "plugin": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": plugin, "interactiveMode": "Never"}}}
    for name, user in users.items():
        config["users"][0]["user"] = user
        path = t.write(name, json.dumps(config))
        t.write("server.yaml", SERVER.format(config=path, shared=f"{{path: {t.base}}}", more=""))
        server = t.up("--config", os.path.join(t.work, "server.yaml"))
        wait_for("the nodes of the cluster", lambda: len(t.json("nodes")) == 2, LIMIT_S)
        go = os.path.join(t.work, "go-" + name)
        runs = [submit(t, "--", "sh", "-c", f"echo here >> {t.work}/{name}-0; while [ ! -e {go} ]; do sleep 0.1; done")]
        t.wait_state(runs[0], "running", limit_s=LIMIT_S)
        if name == "plugin":
            asked = len(open(os.path.join(t.work, "asked")).readlines())
            wait_for("it is asked again before its word ends", lambda: len(open(os.path.join(t.work, "asked")).readlines()) > asked, LIMIT_S)
            open(os.path.join(t.work, "expired"), "w").close()
            wait_for("the word of it", lambda: "the login is over: run kubelogin" in " ".join(t.call("nodes").stdout.split()), LIMIT_S)
            runs.append(submit(t, "--", "sh", "-c", f"echo here >> {t.work}/{name}-1"))
            check(t.describe(runs[0])["run"]["state"] == "running", "what runs was given up")
            os.remove(os.path.join(t.work, "expired"))
        open(go, "w").close()
        for i, run in enumerate(runs):
            view = t.wait_state(run, "succeeded", "failed", limit_s=LIMIT_S)
            check(view["run"]["state"] == "succeeded", json.dumps(view["run"]))
            check(open(f"{t.work}/{name}-{i}").read() == "here\n", f"{run} ran more than once")
        quiet()
        server.terminate()
        server.wait(60)


def test_two_clusters_stand_in_for_each_other(t):
    """What is open goes where an API server answers, what names one waits for it, and what runs on one that is away is started nowhere else."""
    other = Cluster()
    try:
        t.write("server.yaml", SERVER.format(config=other.config, shared=f"{{path: {t.base}}}", more="") + f"""engines:
  - {{name: west, kind: kubernetes, config: {CLUSTER.config}, image: this-machine, shared: [{{path: {t.base}}}]}}
""")
        server = t.up("--config", os.path.join(t.work, "server.yaml"))
        wait_for("the nodes of both", lambda: {node["name"] for node in t.json("nodes")} == {"k1", "k2", "k1@west", "k2@west"}, LIMIT_S)
        near = submit(t, "--", "sh", "-c", f"echo near >> {t.work}/near; while [ ! -e {t.work}/go ]; do sleep 0.1; done")
        t.wait_state(near, "running", limit_s=LIMIT_S)
        check(t.describe(near)["run"]["engine"] == "kubernetes", "the first is not taken first")
        other.tell("shut")
        wait_for("the word that it is away", lambda: "the engine kubernetes does not answer" in t.call("nodes").stdout, LIMIT_S)
        named = submit(t, "--engine", "kubernetes", "--", "sh", "-c", f"echo named >> {t.work}/named")
        far = submit(t, "--", "true")
        t.wait_state(far, "succeeded", limit_s=LIMIT_S)
        check(t.describe(far)["run"]["engine"] == "west", "it waited for a cluster that is away")
        check("kubernetes does not answer" in t.call("describe", named).stdout, t.call("describe", named).stdout)
        check(t.describe(near)["run"]["state"] == "running", "what runs there was given up")
        other.tell("open")
        open(os.path.join(t.work, "go"), "w").close()
        for run, name in ((near, "near"), (named, "named")):
            view = t.wait_state(run, "succeeded", "failed", limit_s=LIMIT_S)
            check(view["run"]["state"] == "succeeded" and len(view["attempts"]) == 1, json.dumps(view["run"]))
            check(open(f"{t.work}/{name}").read() == f"{name}\n", f"{name} ran more than once")
        for cluster in (other, CLUSTER):
            wait_for("nothing of ours is left", lambda: cluster.tell("quiet"), LIMIT_S)
        server.terminate()
        server.wait(60)
    finally:
        other.close()


if __name__ == "__main__":
    try:
        CLUSTER = Cluster()
    except Skipped as why:
        print(f"skipped: {why}\n0 passed, 0 failed")
        sys.exit(0)
    try:
        harness.main(globals())
    finally:
        CLUSTER.close()

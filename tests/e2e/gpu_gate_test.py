"""GPUs in the health gate, end to end: the shipped binary, a real server and a real agent on doubles of NVIDIA's two libraries
(tests/nvml_double, tests/cuda_double). An error of a board takes its node out while a run goes on there, and the repair brings it
back; what burns in and copies badly is found by name. The doubles' rates are invented: nothing here says how fast a GPU is."""

import json
import os
import re
import subprocess
import time
import urllib.request

from gpu_test import DOUBLE, build_double, build_folder
from harness import Skipped, check, main, wait_for

SIZE = "Standard_ND96isr_H100_v5"


def build_cuda():
    import shutil
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        raise Skipped("no C compiler for the double of CUDA")
    path = os.path.join(build_folder(), "cuda.so")
    if not os.path.exists(path):
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-o", path,
                        os.path.join(DOUBLE, "..", "cuda_double", "cuda_double.c")], check=True)
    return path


def say(path, text):
    with open(path + ".new", "w") as file:
        file.write(text + "\n")
    os.replace(path + ".new", path)


def stand_in_for_smi(t, gpus):
    """What counts boards for a check, in front of PATH."""
    tools = os.path.join(t.base, "tools")
    os.mkdir(tools)
    with open(os.path.join(tools, "nvidia-smi"), "w") as file:
        file.write("#!/bin/sh\n" + "echo 'NVIDIA H100 80GB HBM3, 580.1'\n" * gpus)
    os.chmod(file.name, 0o755)
    t.environment["PATH"] = tools + ":" + os.environ["PATH"]


def in_memory(t):
    """The server's folder: how fast this machine's disk is just now is not what is looked at."""
    if os.access("/dev/shm", os.W_OK):
        t.folder = t.environment["STOKER_FOLDER"] = os.path.join("/dev/shm", os.path.basename(t.base))


def out_of_memory(t):
    if t.folder.startswith("/dev/shm/"):
        for server in t.servers:
            if server.poll() is None:
                server.kill()
                server.wait()
        subprocess.run(["rm", "-rf", t.folder], check=True)


class Machine:
    """A machine with H100s: both libraries, a stand-in for nvidia-smi, and what they do."""

    def __init__(self, t, gpus):
        self.t, self.boards, self.cuda = t, os.path.join(t.base, "boards"), os.path.join(t.base, "cuda")
        stand_in_for_smi(t, gpus)
        in_memory(t)
        say(self.boards, "")
        say(self.cuda, f"boards {gpus}")
        t.environment.update(STOKER_NVML_GPUS=str(gpus), STOKER_NVML_PROFILE=os.path.join(DOUBLE, "profiles", "h100.profile"), STOKER_NVML_LIBRARY=build_double(),
                             STOKER_NVML_SCRIPT=self.boards, STOKER_CUDA_LIBRARY=build_cuda(), STOKER_NCCL_LIBRARY=build_cuda(),
                             STOKER_CUDA_SCRIPT=self.cuda)
        self.nodes = t.write("nodes.yaml", json.dumps({"nodes": [{"name": "n", "vcpus": 1, "memory": "1GiB", "gpus": gpus, "gpu": "H100"}]}))

    def node(self):
        return next(each for each in self.t.json("nodes") if each["name"] == "n")

    def failed(self):
        last = self.node().get("check") or {}
        return [each["name"] for each in last.get("not_passed", []) if each["verdict"] == "fail"]

    def submit(self, name, script):
        return self.t.call("submit", self.t.write(name + ".yaml", json.dumps({"version": 1, "name": name, "run": {
            "command": ["sh", "-c", script], "cpus": 0.1, "memory": "64MiB", "gpus": 1, "gpu": "H100"}}))).stdout.strip()

    def close(self):
        out_of_memory(self.t)


def why(t, run):
    return wait_for(f"why {run} waits", lambda: t.describe(run).get("why"))


def test_an_error_takes_the_node_out_and_its_repair_brings_it_back(t):
    machine = Machine(t, 2)
    try:
        policy = t.write("policy.tsv", t.call("gpu", "files", "health_policy.tsv").stdout.replace("xid:reset_gpu\tfail\t1\t10\t", "xid:reset_gpu\tfail\t1\t0.01\t"))
        t.up("--nodes", machine.nodes, "--health-gate", "quick", "--gpu-policy", policy)
        wait_for("the first check", lambda: machine.node().get("check"))
        check(machine.node()["state"] != "quarantined", json.dumps(machine.node()))
        # An agent beside the server sees the same board, by its own sampler.
        port = os.path.join(t.base, "port")
        t.start("agent", "--listen", "127.0.0.1:0", "--port-file", port, "-q")
        runs = machine.submit("goes-on", f"while [ ! -e {t.base}/end ]; do sleep 0.1; done")
        t.wait_state(runs, "running")
        wait_for("the agent", lambda: os.path.exists(port))

        def scrape():
            with urllib.request.urlopen(f"http://127.0.0.1:{open(port).read().strip()}/metrics", timeout=10) as answer:
                return answer.read().decode()
        wait_for("its boards", lambda: scrape().count("stoker_gpu_up{") == 2)
        say(machine.boards, "xid 1 95 1")
        wait_for("the quarantine", lambda: machine.node()["state"] == "quarantined")
        check(machine.node()["cause"] == "node_unhealthy" and machine.failed() == ["gpu-xid-reset-gpu"], json.dumps(machine.node()))
        told = t.call("nodes", "describe", "n").stdout
        check("Xid 95" in told and "GPU 1" in told and "--gpu-reset" in told, told)
        check(t.describe(runs)["run"]["state"] == "running", "what ran there was ended")
        wait_for("the agent counts it", lambda: re.search(r'stoker_gpu_xid_total\{[^}]*xid="95"[^}]*\} 1\n', scrape()))
        waits = machine.submit("waits", "true")
        reason = why(t, waits)
        check(reason["code"] == "node_unhealthy" and "Xid 95" in json.dumps(reason), json.dumps(reason))
        # What ran has ended, the board was reset and says that nothing has to be done any more: by itself, or at once when told.
        say(os.path.join(t.base, "end"), "")
        t.wait_state(runs, "succeeded")
        say(machine.boards, "set * recovery_action 0")
        time.sleep(1)  # the error counts for 0.6 s
        t.call("nodes", "repaired", "n")
        wait_for("its check", lambda: machine.node()["state"] != "checking")
        check(machine.node()["state"] == "ready", json.dumps(machine.node()))
        t.wait_state(waits, "succeeded")
        check(machine.failed() == [], json.dumps(machine.node()))
        journal = t.call("journal", "show").stdout
        for what, who, cause in (("checked", "gpus", "node_unhealthy"), ("moved", "gpus", "node_unhealthy"), ("moved", r"token/\w+", "node_repaired"), ("checked", "driver", "")):
            check(re.search(rf"node/n +node\.{what} +{who} +{cause}", journal), f"{what} {who} {cause} is not in the journal\n{journal}")
        # Three repairs within 30 days: whatever its checks say, until somebody vouches for it.
        for _ in range(2):
            t.call("nodes", "repaired", "n")
        check(machine.node()["cause"] == "node_lemon" and machine.node()["state"] == "quarantined", json.dumps(machine.node()))
        check(t.json("nodes", "ready", "n")["state"] == "ready", "a person's word")
    finally:
        machine.close()


def test_a_full_check_burns_in_and_finds_the_slow_board(t):
    machine = Machine(t, 8)
    try:
        say(machine.cuda, "boards 8\nset 3 from 21e9")
        t.up("--nodes", machine.nodes, "--health-gate", "quick", "--size", SIZE)
        wait_for("the first check", lambda: machine.node().get("check"))
        t.call("nodes", "check", "n", "--full", "--wait", exit=1, limit_s=180)
        check("gpu-copy" in machine.failed(), json.dumps(machine.node()))
        told = t.call("nodes", "describe", "n").stdout
        check("GPU 3" in told and "expected" in told and "h2d_d2h_min_gb_s" in told, told)
        say(machine.cuda, "boards 8")
        t.call("nodes", "check", "n", "--full", "--wait", exit=None, limit_s=180)
        check(not any(name.startswith("gpu-") and name != "gpu-count" for name in machine.failed()), json.dumps(machine.node()))
    finally:
        machine.close()


# What the boards do, and which checks do not pass: with Azure's thresholds, and with nothing but the other boards.
BURNS = [
    ("well", "", [], []),
    ("slow copy", "set 3 from 21e9", ["gpu-copy"], ["gpu-copy"]),
    ("slow peer", "set 7 peer 120e9", ["gpu-peer-copy"], ["gpu-peer-copy"]),
    ("slow sum", "set * all_reduce 300e9", ["gpu-all-reduce"], []),
    ("slow board", "set 5 flops 480e12", ["gpu-arithmetic"], ["gpu-arithmetic"]),
    ("fades", "set 6 fades 0.6", ["gpu-steady"], ["gpu-steady"]),
    ("wrong", "set 2 wrong 1", ["gpu-results"], ["gpu-results"]),
    ("fails", "fail 4 cuLaunchKernel 719", ["gpu-works"], ["gpu-works"]),
    ("not begun", "fail 1 cuDevicePrimaryCtxRetain 802", ["gpu-works"], ["gpu-works"]),
    ("before the A100", "set * old 1", [], []),
]


def test_each_fault_of_a_board_is_found_by_the_burn_in(t):
    machine = Machine(t, 8)
    for name, fault, by_size, by_others in BURNS:
        say(machine.cuda, "boards 8\n" + fault)
        for options, expected in ((("--size", SIZE), by_size), ((), by_others)):
            done = t.call("doctor", "gpu", "--full", "-o", "json", *options, exit=None, limit_s=180)
            failed = [each["name"] for each in json.loads(done.stdout)["checks"] if each["verdict"] == "fail"]
            check(failed == expected, f"{name} {options}: {failed}, expected {expected}\n{done.stdout}{done.stderr}")
            check(done.returncode == (1 if expected else 0), f"{name}: exit {done.returncode}")
    text = t.call("doctor", "gpu", "--full").stdout
    check("fp32 multiply-adds" in text and max(map(len, text.splitlines())) <= 100, text)
    say(machine.cuda, "boards 8\nset 7 peer 120e9\nset 1 held 60e9")
    text = " ".join(t.call("doctor", "gpu", "--full").stdout.split())  # seven boards are no pool
    check("to every other slow: GPU 7" in text and "of its 80 GiB are held" in text, text)
    # Kept as what is usual, a machine of one board has something to be held against.
    say(machine.cuda, "boards 1")
    check("usual here" in t.call("doctor", "gpu", "--baseline").stdout, "what was kept is said")
    say(machine.cuda, "boards 1\nset 0 to 30e9")
    failed = [each["name"] for each in t.json("doctor", "gpu", exit=1)["checks"] if each["verdict"] == "fail"]
    check(failed == ["gpu-copy"], f"{failed}")
    # A lone board of a model that was measured needs neither a size nor a past: half the lanes, clock or memory fail it by name.
    well = "boards 1\nnamed NVIDIA H200\nset 0 flops 460e12\nset 0 memory 4.15e12"
    t.call("doctor", "--forget")
    for fault, expected in (("", []), ("set 0 to 27e9", ["gpu-copy"]), ("set 0 flops 230e12", ["gpu-arithmetic"]), ("set 0 memory 2e12", ["gpu-memory-copy"])):
        say(machine.cuda, well + "\n" + fault)
        told = t.json("doctor", "gpu", exit=1 if expected else 0)["checks"]
        check([each["name"] for each in told if each["verdict"] == "fail"] == expected, f"{fault}: {told}")
        check({each["verdict"] for each in told} <= {"pass", "fail"}, f"{fault}: nobody says what it should be: {told}")
    # No library is no pass.
    check(t.call("doctor", "gpu", exit=3, env={"STOKER_CUDA_LIBRARY": "/nowhere.so"}).stdout.count("gpu-works") == 1, "said once")


if __name__ == "__main__":
    main(dict(globals()))

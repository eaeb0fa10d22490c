#!/usr/bin/env python3
"""Runs on GPUs, held against what their boards do: each fault of a board is found in the run that is on it, and nothing in its
healthy twin. The boards are a double of NVIDIA's library (tests/nvml_double); the ranks are real processes that it names."""

import json
import os
import subprocess
import sys

import harness
from gpu_test import DOUBLE, Board, build_double
from harness import check, wait_for

STEPS_S = 0.1
# A rank: steps of a tenth of a second, told as the hook tells them, and as much of a processor as is asked for.
PROGRAM = f"""
import json, os, sys, time
seconds, share, wait = float(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
open(os.environ["PID_FOLDER"] + "/" + os.environ["BOARD"], "w").write(str(os.getpid()))
out = open(os.environ["STOKER_METRICS_FILE"], "a", buffering=1)
end, number = time.monotonic() + seconds, 0
while time.monotonic() < end:
    began = time.monotonic()
    while time.monotonic() - began < {STEPS_S} * share: pass
    time.sleep(max(0, {STEPS_S} - (time.monotonic() - began)))
    number += 1
    out.write(json.dumps(dict(step=number, time=time.time(), step_s={STEPS_S}, wait_s=wait, compute_s={STEPS_S} - wait - 0.01,
                              allreduce_s=0.01, checkpoint_s=0, cpu_s={STEPS_S} * share)) + chr(10))
"""
BUSY = ("util 97", "sm_active 85", "tensor 40", "dram 40", "fp32 4", "power_mw 690000", "temperature 64", "clock_sm 1755", "reasons 4")
# What a board has that is not well, how much of a processor its rank uses, and what should be said.
CASES = [
    ("healthy", (), 0.2, []),
    ("hot", ("rate {} ev_hw_thermal_ns 400000000", "set {} clock_sm 1200", "set {} temperature 88", "set {} margin 1"), 0.2, ["gpu-heat"]),
    ("narrow", ("set {} width 4", "set {} pcie_tx_mib 9000", "set {} pcie_rx_mib 3000"), 0.2, ["gpu-pcie"]),
    ("links", ("set {} nvlink_down 6",), 0.2, ["gpu-nvlink"]),
    ("rows", ("set {} remap_pending 1",), 0.2, ["gpu-memory-errors"]),
    ("host", ("set {} util 40", "set {} sm_active 30"), 0.97, ["gpu-host-bound"]),
    ("single", ("set {} tensor 0", "set {} fp32 60"), 0.2, ["gpu-precision"]),
    ("shared", (), 0.2, ["gpu-neighbour"]),
]


def test_each_fault_of_a_board_is_found_in_the_run_on_it(t):
    library, script, pids = os.path.join(t.base, "libnvidia-ml.so.1"), os.path.join(t.base, "script"), os.path.join(t.base, "pids")
    os.mkdir(pids)
    os.link(build_double(), library) if os.stat(build_double()).st_dev == os.stat(t.base).st_dev else subprocess.run(["cp", build_double(), library], check=True)
    lines = [f"set * {value}" for value in BUSY]
    for board, (_, faults, _, _) in enumerate(CASES):
        lines += [line.format(board) for line in faults]

    def say(*more):
        with open(script + ".new", "w") as file:
            file.write("\n".join([*lines, *more]) + "\n")
        os.replace(script + ".new", script)
    say()
    t.environment.update(STOKER_NVML_PROFILE=os.path.join(DOUBLE, "profiles", "h100.profile"), STOKER_NVML_GPUS=str(len(CASES)),
                         STOKER_NVML_LIBRARY=library, STOKER_NVML_SCRIPT=script)
    t.up()
    for board, (name, _, share, _) in enumerate(CASES):
        run = {"command": [sys.executable, "-c", PROGRAM, "20", str(share), "0.001"], "folder": t.work, "cpus": 0.1,
               "metrics": "metrics.jsonl", "environment": {"PID_FOLDER": pids, "BOARD": str(board)}}
        os.makedirs(os.path.join(t.work, name))
        run["folder"] = os.path.join(t.work, name)
        t.call("submit", t.write(name + ".yaml", json.dumps({"version": 1, "name": name, "run": run})))
    wait_for("all ranks", lambda: len(os.listdir(pids)) == len(CASES) and all(os.path.getsize(os.path.join(pids, n)) for n in os.listdir(pids)))
    neighbour = subprocess.Popen(["sleep", "600"])
    try:
        processes = [f"process {board} {open(os.path.join(pids, str(board))).read()} 40000000000 90" for board in range(len(CASES))]
        say(*processes, f"process {len(CASES) - 1} {neighbour.pid} 4000000000 30")
        runs = {view["name"]: view["run"] for view in t.json("ps", "-a")["runs"]}
        for _, (name, *_) in enumerate(CASES):
            t.wait_state(runs[name], "succeeded", limit_s=120)
    finally:
        neighbour.kill()
        neighbour.wait()
    for name, _, _, expected in CASES:
        told = t.json("explain", runs[name])
        found = [each["cause"] for each in told["causes"] if each["cause"].startswith("gpu-")]
        check(found == expected, f"{name}: found {found}, expected {expected}\n{t.call('explain', runs[name]).stdout}")
    text = t.call("explain", runs["hot"]).stdout
    check("88 degrees" in text and "1,200 MHz" in text and "cooling" in text, text)
    text = t.call("explain", runs["narrow"]).stdout
    check("generation 5 with 4 lanes; 5 with 16 are possible" in text, text)


def test_a_run_without_a_gpu_says_nothing_of_gpus(t):
    os.environ.pop("STOKER_NVML_LIBRARY", None)
    done = t.call("run", t.write("plain.yaml", json.dumps({"version": 1, "name": "plain", "run": {
        "command": [sys.executable, "-c", PROGRAM, "2", "0.2", "0.001"], "folder": t.work, "metrics": "metrics.jsonl",
        "environment": {"PID_FOLDER": t.work, "BOARD": "none"}}})))
    told = t.json("explain", "r-1")
    check("gpu-" not in json.dumps(told), f"{told}\n{done.stderr}")


# --- whom a GPU was given to ------------------------------------------------------------------------------------------

KUBELET = """
import sys, time, concurrent.futures, grpc
answer = bytes.fromhex(sys.argv[2])
class Lister(grpc.GenericRpcHandler):
    def service(self, call):
        if call.method != "/v1.PodResourcesLister/List": return None
        def answers(request, context):
            try: time.sleep(float(open(sys.argv[3]).read()))
            except OSError: pass
            return answer
        return grpc.unary_unary_rpc_method_handler(answers)
server = grpc.server(concurrent.futures.ThreadPoolExecutor(2), handlers=[Lister()])
server.add_insecure_port("unix:" + sys.argv[1])
server.start()
print("up", flush=True)
server.wait_for_termination()
"""


def field(number, value):
    """Of protocol buffers: bytes with their number and length."""
    value = value.encode() if isinstance(value, str) else value
    size, length = len(value), b""
    while size >= 128:
        length, size = length + bytes([size % 128 + 128]), size // 128
    return bytes([number << 3 | 2]) + length + bytes([size]) + value


def test_f25_f26_kubelet_says_whose_a_gpu_is_and_may_hang(t):
    """Against a real server of gRPC. Without it, and while it hangs, every scrape is answered in time with what it said before."""
    from gpu_test import bindings_python
    socket, slow = os.path.join(t.base, "kubelet.sock"), os.path.join(t.base, "slow")
    jobs = os.path.join(t.base, "jobs")
    os.mkdir(jobs)
    open(os.path.join(jobs, "1"), "w").write("4711\n")
    board = Board(t, gpus=2, options=("--kubelet-socket", socket, "--hpc-job-mapping-dir", jobs, "--compat", "dcgm"))
    told = lambda name, *labels: board.value(name, *labels, values=board.values("/metrics/native"))
    wait_for("GPUs", lambda: told("stoker_gpu_up", 'gpu="1"') == 1)
    check(told("stoker_attribution_up", 'source="kubelet"') == 0 and told("stoker_attribution_age_seconds", "kubelet") is None, "nobody listens, and it is up")
    check('hpc_job="4711"' in next(line for line in board.page().splitlines() if line.startswith('DCGM_FI_DEV_GPU_UTIL{gpu="1"')), "the job that Slurm's file names")
    uuid = next(n for n in board.values("/metrics/native") if n.startswith('stoker_gpu_info{gpu="0"')).split('uuid="')[1].split('"')[0]
    pods = field(1, field(1, "train-0") + field(2, "team-a") + field(3, field(1, "worker") + field(2, field(1, "nvidia.com/gpu") + field(2, uuid))))
    kubelet = subprocess.Popen([bindings_python(), "-c", KUBELET, socket, pods.hex(), slow], stdout=subprocess.PIPE, text=True)
    try:
        check(kubelet.stdout.readline() == "up\n", "no server of gRPC")
        wait_for("the pod", lambda: told("stoker_gpu_assigned_info", 'gpu="0"', 'pod="train-0"', 'namespace="team-a"', 'container="worker"') == 1)
        line = next(line for line in board.page().splitlines() if line.startswith('DCGM_FI_DEV_GPU_UTIL{gpu="0"'))
        check(line.split("}")[0].endswith('pod="train-0",namespace="team-a",container="worker"'), f"labels as dcgm-exporter has them: {line}")
        open(slow, "w").write("30")
        age = told("stoker_attribution_age_seconds", 'source="kubelet"')
        wait_for("its age grows", lambda: told("stoker_attribution_age_seconds", 'source="kubelet"') > age + 1.5)
        check('pod="train-0"' in board.page(), "the pod is forgotten while kubelet hangs")
    finally:
        kubelet.kill()
        kubelet.wait()
    wait_for("it is told to be down", lambda: told("stoker_attribution_up", 'source="kubelet"') == 0)
    check('pod="train-0"' in board.page(), "the pod is forgotten while kubelet is down")
    page = t.write("page", board.page())
    check(t.call("metrics", "check", page, exit=None).returncode in (0, 1), "the page cannot be read")


if __name__ == "__main__":
    harness.main(globals())

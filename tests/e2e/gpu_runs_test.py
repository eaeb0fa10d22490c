#!/usr/bin/env python3
"""Runs on GPUs, held against what their boards do: each fault of a board is found in the run that is on it, and nothing in its
healthy twin. The boards are a double of NVIDIA's library (tests/nvml_double); the ranks are real processes that it names."""

import json
import os
import re
import subprocess
import sys

import harness
from gpu_gate_test import build_cuda
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
# What a board has that is not well, how much of a processor its rank uses, and what should be said. A rank at the limit of its
# processor is in gpu_rules_test: on a machine that is busy with other things it gets none to be at the limit of.
CASES = [
    ("healthy", (), 0.2, []),
    ("hot", ("rate {} ev_hw_thermal_ns 400000000", "set {} clock_sm 1200", "set {} temperature 88", "set {} margin 1"), 0.2, ["gpu-heat"]),
    ("narrow", ("set {} width 4", "set {} pcie_tx_mib 9000", "set {} pcie_rx_mib 3000"), 0.2, ["gpu-pcie"]),
    ("links", ("set {} nvlink_down 6",), 0.2, ["gpu-nvlink"]),
    ("rows", ("set {} remap_pending 1",), 0.2, ["gpu-memory-errors"]),
    ("single", ("set {} tensor 0", "set {} fp32 60"), 0.2, ["gpu-precision"]),
    ("shared", (), 0.2, ["gpu-neighbour"]),
    ("held", (), 0.2, []),
    ("idle", ("set {} util 0", "set {} sm_active 0", "set {} tensor 0", "set {} dram 0", "set {} fp32 0", "set {} power_mw 71000", "set {} reasons 1"), None, []),
]
IDLE = "import os, time; open(os.environ['PID_FOLDER'] + '/' + os.environ['BOARD'], 'w').write(str(os.getpid())); time.sleep(20)"


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
    t.up("--health-gate", "off", "--nodes", t.write("nodes.yaml", json.dumps({"nodes": [
        {"name": "n", "vcpus": 2, "memory": "4GiB", "gpus": len(CASES), "gpu": "H100"}]})))
    for board, (name, _, share, _) in enumerate(CASES):
        run = {"command": [sys.executable, "-c", IDLE if share is None else PROGRAM, "20", str(share), "0.001"], "folder": t.work,
               "cpus": 0.1, "gpus": 1, "gpu": "H100", "environment": {"PID_FOLDER": pids, "BOARD": str(board)}}
        os.makedirs(os.path.join(t.work, name))
        run["folder"] = os.path.join(t.work, name)
        t.call("submit", t.write(name + ".yaml", json.dumps({"version": 1, "name": name, "run": run})))
    wait_for("all ranks", lambda: len(os.listdir(pids)) == len(CASES) and all(os.path.getsize(os.path.join(pids, n)) for n in os.listdir(pids)))
    neighbour = subprocess.Popen(["sleep", "600"])
    try:
        processes = [f"process {board} {open(os.path.join(pids, str(board))).read()} 40000000000 90" for board in range(len(CASES))]
        of = [c[0] for c in CASES].index
        say(*processes, f"process {of('shared')} {neighbour.pid} 4000000000 30", f"process {of('held')} {neighbour.pid} 4000000000 0")
        runs = {name: f"r-{number + 1}" for number, (name, *_) in enumerate(CASES)}
        for name, *_ in CASES:
            t.wait_state(runs[name], "succeeded", limit_s=120)
    finally:
        neighbour.kill()
        neighbour.wait()
    for name, _, _, expected in CASES:
        told = t.json("explain", runs[name])
        found = [each["cause"] for each in told["causes"] if each["cause"].startswith("gpu-")]
        check(found == expected, f"{name}: found {found}, expected {expected}\n{t.call('explain', runs[name]).stdout}")
    # Whoever is alone is told so, and so is who has a neighbour that only holds memory: a driver tells nothing of its work.
    plain = lambda name: " ".join(t.call("explain", runs[name]).stdout.split())
    check("no other program is on the GPUs" in plain("healthy"), plain("healthy"))
    check("1 other process is on the GPUs, at work 0.0 % of the time" in plain("held"), plain("held"))
    text = t.call("explain", runs["hot"]).stdout
    check("88 degrees" in text and "its clock is 1,2" in text and "cooling" in text, text)
    text = t.call("explain", runs["narrow"]).stdout
    check("generation 5 with 4 lanes; 5 with 16 are possible" in text, text)
    # In its head a run on a GPU tells of the board, and the machine's memory only beside it.
    text, told = t.call("explain", runs["healthy"]).stdout, t.json("explain", runs["healthy"])
    check(re.search(r"^  GPU +\d+ % busy, tensor cores \d+ %, .* of 700 W$", text, re.M), text)
    check(told["gpu"]["count"] == 1 and 0 < told["gpu"]["busy_share"] <= 1 and told["gpu"]["power_limit_w"] == 700, f"{told['gpu']}")
    # What came of the GPU time of each, by state, and what was wasted of it.
    rows = {row["run"]: row for row in t.json("usage", "--gpus")["items"]}
    works, idles = rows[runs["healthy"]], rows[runs["idle"]]
    check(works["state_hours"]["busy"] > 0.4 * works["gpu_hours"] and works["wasted_hours_least"] < 0.25 * works["gpu_hours"], f"{works}")
    check(idles["state_hours"]["allocated_idle"] > 0.4 * idles["gpu_hours"] and idles["wasted_hours_least"] > 0.4 * idles["gpu_hours"], f"{idles}")
    for row in rows.values():
        check(abs(sum(row["state_hours"].values()) - row["gpu_hours"]) < 0.02 * row["gpu_hours"], f"the states are not the whole: {row}")
    text = t.call("usage", "--gpus").stdout
    check("wasted hours" in text and "in all" in text and max(map(len, text.splitlines())) <= 130, text)


def test_a_run_without_a_gpu_says_nothing_of_gpus(t):
    os.environ.pop("STOKER_NVML_LIBRARY", None)
    done = t.call("run", t.write("plain.yaml", json.dumps({"version": 1, "name": "plain", "run": {
        "command": [sys.executable, "-c", PROGRAM, "2", "0.2", "0.001"], "folder": t.work,
        "environment": {"PID_FOLDER": t.work, "BOARD": "none"}}})))
    told = t.json("explain", "r-1")
    check("gpu-" not in json.dumps(told), f"{told}\n{done.stderr}")


# --- the day with a real board, rehearsed ---------------------------------------------------------------------------------

def test_the_gpu_day_runs_on_the_double(t):
    """./dev gpu on a machine with a board: its first two parts on the doubles of NVML and CUDA, with a stand-in for nvidia-smi; and the
    page made of it says that it is a rehearsal. What needs PyTorch is skipped by name, not failed."""
    tools = os.path.join(t.base, "tools")
    os.mkdir(tools)
    subprocess.run(["cp", build_double(), os.path.join(t.base, "libnvidia-ml.so.1")], check=True)
    t.write("script", "\n".join(f"set * {value}" for value in BUSY) + "\nset * power_avg_mw 690000")
    t.environment.update(STOKER_NVML_PROFILE=os.path.join(DOUBLE, "profiles", "h100.profile"), STOKER_NVML_GPUS="2",
                         STOKER_NVML_LIBRARY=os.path.join(t.base, "libnvidia-ml.so.1"), STOKER_NVML_SCRIPT=os.path.join(t.work, "script"))
    uuids = [gpu["uuid"] for gpu in t.json("gpu")["gpus"]]
    smi = os.path.join(tools, "nvidia-smi")
    with open(smi, "w") as file:
        file.write("#!/bin/sh\n" + "".join(f"echo '{uuid}, 1755, 2619, 64, 690.00, 81559, 0, 97, 5, 16'\n" for uuid in uuids))
    os.chmod(smi, 0o755)
    day, out = os.path.join(DOUBLE, "..", "..", "tools", "gpu_day.py"), os.path.join(t.base, "out")
    subprocess.run(["cp", build_cuda(), os.path.join(tools, "libcuda.so.1")], check=True)
    environment = dict(t.environment, LD_LIBRARY_PATH=tools, PATH=tools + ":" + os.environ["PATH"], STOKER_GPU_DAY_IDLE_S="1")
    parts = {}
    for part in (1, 2):
        done = subprocess.run([sys.executable, day, "run", "--stoker", t.binary, "--part", str(part), "--phase-s", "0.2", "--out", out], env=environment, capture_output=True, text=True, timeout=200)
        check(done.returncode == 0, done.stdout + done.stderr)
        parts[part] = json.load(open(os.path.join(out, f"part-{part}.json")))
    steps = parts[1]["steps"]
    check(parts[1]["machine"]["double"] and set(steps) == {"abi", "record", "three_readers", "raw", "scrapes"} and all("found" in s for s in steps.values()), f"{steps}")
    readers = steps["three_readers"]["found"]
    check(readers["equal"] == readers["of"] == 18, f"not what nvidia-smi told: {[r for r in readers['rows'] if not r[4]]}")
    check(steps["scrapes"]["found"]["gpus"] == 2 and steps["scrapes"]["found"]["pss_kib"] < 64 * 1024, f"{steps['scrapes']}")
    check(all("found" in s for s in parts[2]["steps"].values()), f"{parts[2]['steps']}")
    burnt = {each["name"]: each["verdict"] for each in parts[2]["steps"]["burn_in"]["found"]["checks"]}
    check(burnt["gpu-steady"] == burnt["gpu-results"] == "pass" and "fail" not in burnt.values(), f"{burnt}")
    rates = parts[2]["steps"]["rates"]["found"]
    check(abs(rates["h2d_bytes_per_s"]["median"] / 55e9 - 1) < 0.01, f"{rates}")
    refused = subprocess.run([sys.executable, day, "report", out, "--page", os.path.join(t.base, "page.md")], capture_output=True, text=True)
    check(refused.returncode != 0 and "double" in refused.stderr, "a rehearsal is taken for a measurement")
    made = subprocess.run([sys.executable, day, "report", out, "--rehearsal", "--page", os.path.join(t.base, "page.md")], capture_output=True, text=True)
    check(made.returncode == 0 and "A rehearsal on the double" in open(os.path.join(t.base, "page.md")).read(), made.stderr)


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

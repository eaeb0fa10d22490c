#!/usr/bin/env python3
"""Measures what data/catalog/defaults.tsv says of trainings with PyTorch on CPU cores: one line for each constant.

    tools/measure_cpu_training.py --stoker build/release/stoker [--python /usr/bin/python3] [--repeats 5]

Matrix products are timed in CPU seconds of one thread, so that other work on the machine costs the figure little, and each
repeat measures the machine's own rate (stoker bench cpu) just before, since the constant is the ratio of the two. The
collectives need the time of two processes at once: of those the median and the fastest are told. None of the sizes is one of
examples/tiny-gpt.yaml (hidden 256, ffn 704, 1,024 tokens a rank, 20 MB of gradients), which is what the constants are
tried on.
"""
import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[1]
HIDDEN = (192, 320, 384, 512)
TOKENS = (512, 1536, 2048)
ALL_REDUCE_MB = (4, 11, 32, 64)


def matmul():
    """Achieved FLOP/s of y = x W and its two gradients, summed over the matrices of a gated transformer layer."""
    import torch
    torch.set_num_threads(1)
    out = {}
    for hidden in HIDDEN:
        wide = (hidden * 8 // 3 + 31) // 32 * 32
        for tokens in TOKENS:
            flops = seconds = 0.0
            for k, n, count in ((hidden, hidden, 4), (hidden, wide, 2), (wide, hidden, 1)):
                x, w, dy = torch.randn(tokens, k), torch.randn(n, k), torch.randn(tokens, n)
                for product in (lambda: x @ w.t(), lambda: dy @ w, lambda: dy.t() @ x):
                    product()
                    repeats = max(1, int(2e9 / (2 * tokens * k * n)))
                    start = time.thread_time()
                    for _ in range(repeats):
                        product()
                    seconds += count * (time.thread_time() - start) / repeats
                    flops += count * 2 * tokens * k * n
            out[f"{tokens}x{hidden}"] = flops / seconds
    return out


def operators():
    """CPU microseconds of an operator on a tensor of one element: what PyTorch takes to get to its kernel."""
    import torch
    torch.set_num_threads(1)
    a = torch.ones(1)
    for operator in (lambda: a + a, lambda: a * a):
        operator()
    start = time.thread_time()
    for _ in range(20000):
        a + a
        a * a
    return {"us": (time.thread_time() - start) / 40000 * 1e6}


def memory():
    def resident():
        return int(next(l for l in open("/proc/self/status") if l.startswith("VmRSS")).split()[1]) * 1024
    began = time.process_time()
    before = resident()
    import torch
    import torch.distributed
    imported = time.process_time() - began
    x = torch.randn(64, 64, requires_grad=True)
    (x @ x).sum().backward()
    return {"bare": before, "torch": resident(), "import_cpu_s": imported}


def collective(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=rank, WORLD_SIZE="2")
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    out = {}
    small = torch.zeros(1)
    times = []
    for _ in range(500):
        start = time.perf_counter()
        dist.all_reduce(small)
        times.append(time.perf_counter() - start)
    out["call"] = times[50:]
    for megabytes in ALL_REDUCE_MB:
        buffer = torch.zeros(megabytes * 250_000)
        dist.all_reduce(buffer)
        times = []
        for _ in range(15):
            start = time.perf_counter()
            dist.all_reduce(buffer)
            times.append(time.perf_counter() - start)
        out[str(megabytes)] = times
    out["resident"] = int(next(l for l in open("/proc/self/status") if l.startswith("VmRSS")).split()[1]) * 1024
    dist.destroy_process_group()
    return out


# Trainings of other sizes than the example's, as dim, layers, heads, context, batch: what their processes hold at most, less
# what the planner counts as weights, gradients, optimizer and activations.
TRAININGS = ((128, 4, 4, 64, 8), (192, 3, 6, 256, 6), (384, 4, 6, 64, 12), (320, 2, 5, 96, 24))


def outside_of_the_model(python, stoker, size):
    dim, layers, heads, ctx, batch = size
    wide = (dim * 8 // 3 + 31) // 32 * 32
    with tempfile.TemporaryDirectory() as folder:
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
               "PYTHONDONTWRITEBYTECODE": "1", "STOKER_METRICS_FILE": f"{folder}/metrics"}
        words = dict(dim=dim, layers=layers, heads=heads, ctx=ctx, batch=batch, steps=8)
        subprocess.run([python, f"{SOURCE}/examples/train-tiny/train.py", *(f"--{k}={v}" for k, v in words.items())], env=env,
                       check=True, capture_output=True)
        with open(f"{folder}/metrics") as lines:
            peak = max(json.loads(line)["peak_rss_bytes"] for line in lines)
        with open(f"{folder}/plan.yaml", "w") as file:
            file.write(f"""version: 1
kind: training
model: {{layers: {layers}, hidden: {dim}, heads: {heads}, ffn: {wide}, vocab: 259, gated: true, norm: rmsnorm, tied_embeddings: false}}
data: {{tokens: {ctx * batch * 8}, sequence: {ctx}}}
batch: {{global_examples: {batch}}}
precision: fp32
optimizer: adamw
framework: pytorch
where: {{cloud: this-machine}}
run: {{command: ls, ranks: 1, cpus: 1}}
""")
        plan = json.loads(subprocess.run([stoker, "plan", f"{folder}/plan.yaml", "-o", "json", "--no-what-if"], check=True,
                                         capture_output=True, text=True).stdout)
    terms = plan["candidates"][0]["prediction"]["memory_terms"]
    return peak - sum(term["bytes"] for term in terms if term["term"] != "framework")


def part(python, name, *words):
    # What a rank of a run inherits, and no variable that steers a BLAS library.
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen([python, __file__, "--part", name, *words], env=env, stdout=subprocess.PIPE, text=True)


def answer(process):
    out, _ = process.communicate(timeout=600)
    if process.returncode != 0:
        sys.exit(f"error: a part ended with {process.returncode}")
    return json.loads(out.strip().splitlines()[-1])


def told(name, values, unit, note):
    print(f"{name:<32} median {statistics.median(values):.4g} {unit} (min {min(values):.4g}, max {max(values):.4g}, "
          f"{len(values)} values; {note})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        name, *words = options.part
        print(json.dumps({"matmul": matmul, "memory": memory, "operators": operators}[name]() if name != "collective"
                         else collective(*words)))
        return
    ratios, shapes, rates, calls, bandwidth, resident, imports, launches = [], {}, [], [], {}, [], [], []
    for _ in range(options.repeats):
        bench = json.loads(subprocess.run([options.stoker, "bench", "cpu", "--quick", "--no-save", "-o", "json"], check=True,
                                          capture_output=True, text=True).stdout)
        speed = bench["speed"]
        core = speed["matmul_flops_per_second"]["max"] / speed["threads"]
        rates.append(core / 1e9)
        for shape, rate in answer(part(options.python, "matmul")).items():
            ratios.append(rate / core)
            shapes.setdefault(shape, []).append(rate / core)
        launches.append(answer(part(options.python, "operators"))["us"])
        both = answer(part(options.python, "memory"))
        imports.append(both["import_cpu_s"])
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        pair = [part(options.python, "collective", str(rank), port) for rank in range(2)]
        first, second = (answer(each) for each in pair)
        resident.append((both["torch"], max(first["resident"], second["resident"]) - 4e6 * max(ALL_REDUCE_MB) / 4))
        # Both ranks are there only when the later one is: the longer of the two is the call.
        calls += [max(a, b) * 1e6 for a, b in zip(first["call"], second["call"])]
        for megabytes in map(str, ALL_REDUCE_MB):
            bandwidth.setdefault(megabytes, []).extend(
                float(megabytes) / 1e3 / max(a, b) for a, b in zip(first[megabytes], second[megabytes]))
    print(f"{bench['model']}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; kernel {speed['kernel']}")
    told("stoker bench, a core", rates, "GFLOP/s", "best of each repeat, CPU time")
    told("cpu_measured_matmul_fraction", ratios, "", "OpenBLAS over stoker bench, forward and both gradients of a gated layer")
    for shape, values in shapes.items():
        told("  tokens x hidden " + shape, values, "", "")
    told("launch_us_cpu", launches, "us", "CPU time of an operator on one element")
    for megabytes, values in bandwidth.items():
        told(f"loopback all-reduce {megabytes} MB", values, "GB/s", "size over time, gloo, 2 processes")
    told("loopback_gb_s", [max(v) for v in bandwidth.values()], "GB/s", "the fastest of each size: what a free machine does")
    told("loopback call of 4 bytes", calls, "us", "gloo, 2 processes; loopback_latency_us is half of it")
    told("  its fastest tenth", sorted(calls)[:len(calls) // 10], "us", "")
    told("torch imported", [a / 2**30 for a, _ in resident], "GiB", "resident, after one backward pass")
    told("  with gloo joined", [b / 2**30 for _, b in resident], "GiB", "resident, less the buffer that was reduced")
    outside = [outside_of_the_model(options.python, options.stoker, size) / 2**30 for size in TRAININGS]
    told("cpu_training_process_gib", outside, "GiB", "peak of trainings of other sizes less what the planner counts")
    told("import of torch", imports, "s", "CPU time")


main()

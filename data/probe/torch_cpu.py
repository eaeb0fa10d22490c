"""What PyTorch makes of this machine's cores, as one JSON object on standard output; stoker bench cpu --framework runs it.

    torch_cpu.py [--quick]

A step of a training on cores is matrix products, many small operators, what moves through memory, and all-reduces between the
ranks. Each is measured as a training does it: the products of a gated transformer layer with their two gradients, by hidden
size, tokens, precision and threads; an operator on one element; an addition and a normalisation of a tensor that no cache
holds; gloo's all-reduce by size and number of ranks. One thread is timed in processor seconds, so that other work on the
machine costs the figure little; several threads, and ranks that wait for each other, by the clock, of which the fastest
repeat counts. What ranks take from each other when all compute at once is measured by letting them.
"""
import argparse
import json
import os
import socket
import subprocess
import sys
import time

HIDDEN, TOKENS = (128, 256, 512, 1024), (256, 1024, 4096)
QUICK_HIDDEN, QUICK_TOKENS = (128, 256, 512), (512, 2048)
ALL_REDUCE_BYTES = (4, 1 << 16, 1 << 20, 4 << 20, 16 << 20, 64 << 20)
BUDGET_FLOPS = 3e9  # of one timed loop
TOGETHER = (256, 1024)  # hidden and tokens of what all ranks compute at once


def layer(hidden):
    """Inner size, outer size and count of the products of a gated layer."""
    wide = (hidden * 8 // 3 + 31) // 32 * 32
    return ((hidden, hidden, 4), (hidden, wide, 2), (wide, hidden, 1))


def layer_rate(torch, hidden, tokens, dtype, clock, repeats, budget=BUDGET_FLOPS):
    """FLOP/s of y = x W and its two gradients over a layer: the fastest repeat."""
    flops = best = 0.0
    for k, n, count in layer(hidden):
        x, w, dy = (torch.randn(*shape).to(dtype) for shape in ((tokens, k), (n, k), (tokens, n)))
        for product in (lambda: x @ w.t(), lambda: dy @ w, lambda: dy.t() @ x):
            loops = max(1, int(budget / 9 / (2 * tokens * k * n)))
            product()
            seconds = []
            for _ in range(repeats):
                start = clock()
                for _ in range(loops):
                    product()
                seconds.append((clock() - start) / loops)
            best += count * min(seconds)
            flops += count * 2 * tokens * k * n
    return flops / best


def matmul(torch, quick, cores):
    points = []
    threads = 1
    while threads <= cores:
        torch.set_num_threads(threads)
        for name in ("fp32", "bf16"):
            dtype = torch.float32 if name == "fp32" else torch.bfloat16
            # A library without bf16 kernels is a thousand times slower: two small shapes are enough to say so.
            if name == "bf16" and (quick or layer_rate(torch, 128, 256, dtype, time.perf_counter, 1, 2e8) < 2e9):
                continue
            for hidden in QUICK_HIDDEN if quick else HIDDEN:
                for tokens in QUICK_TOKENS if quick else TOKENS:
                    clock = time.thread_time if threads == 1 else time.perf_counter
                    rate = layer_rate(torch, hidden, tokens, dtype, clock, 2 if quick else 3)
                    points.append({"precision": name, "threads": threads, "hidden": hidden, "tokens": tokens,
                                   "flops_per_second": rate})
        threads *= 2
    torch.set_num_threads(1)
    return points


def operators(torch):
    """Processor seconds from Python to the kernel of an operator and back."""
    a = torch.ones(1)
    best = 1.0
    for _ in range(5):
        start = time.thread_time()
        for _ in range(4000):
            a + a
        best = min(best, (time.thread_time() - start) / 4000)
    return best


def memory(torch, quick):
    """Bytes/s read and written by an addition of tensors of 64 MB, one thread."""
    count = (8 if quick else 16) << 20
    a, b, out = torch.ones(count), torch.ones(count), torch.empty(count)
    best = 0.0
    for _ in range(3 if quick else 5):
        start = time.thread_time()
        torch.add(a, b, out=out)
        best = max(best, 12 * count / (time.thread_time() - start))
    return best


def resident():
    with open("/proc/self/status") as lines:
        return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) * 1024


def rank(words):
    """One rank of several: waits for the others, computes beside them, reduces with them."""
    index, ranks, port, quick = words
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=index, WORLD_SIZE=ranks)
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    out = {"resident_bytes": resident(), "all_reduce": []}
    # Processor time cannot show that a core's other thread, or the caches they share, was busy: the ratio to the time alone
    # does.
    dist.barrier()
    out["beside_flops_per_second"] = layer_rate(torch, *TOGETHER, torch.float32, time.thread_time, 3)
    for size in ALL_REDUCE_BYTES:
        if quick == "1" and size > 16 << 20:
            continue
        buffer = torch.zeros(size // 4)
        seconds = []
        for repeat in range(60 if size <= 1 << 16 else 12):
            start = time.perf_counter()
            dist.all_reduce(buffer)
            seconds.append(time.perf_counter() - start)
        out["all_reduce"].append({"bytes": size, "seconds": seconds[3:]})
    dist.destroy_process_group()
    print(json.dumps(out))


def together(ranks, quick):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    running = [subprocess.Popen([sys.executable, __file__, "--rank", str(i), str(ranks), port, "1" if quick else "0"],
                                stdout=subprocess.PIPE, text=True) for i in range(ranks)]
    answers = []
    try:
        for process in running:
            text, _ = process.communicate(timeout=120)
            if process.returncode != 0:
                sys.exit(f"rank {len(answers)} of {ranks} ended with {process.returncode}")
            answers.append(json.loads(text))
    finally:
        for process in running:
            process.kill()
    reduces = []
    for sizes in zip(*(answer["all_reduce"] for answer in answers)):
        # A call begins when the last rank is there: of each call the shortest wait is its time, and the best call counts.
        calls = [min(of_all) for of_all in zip(*(each["seconds"] for each in sizes))]
        calls.sort()
        reduces.append({"ranks": ranks, "bytes": sizes[0]["bytes"], "seconds": calls[len(calls) // 4]})
    return reduces, {"ranks": ranks,
                     "flops_per_second": sum(a["beside_flops_per_second"] for a in answers) / ranks,
                     "resident_bytes": max(a["resident_bytes"] for a in answers)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rank", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        return rank(options.rank)
    began = time.process_time()
    import torch
    imported = time.process_time() - began
    torch.set_num_threads(1)
    cores = len(os.sched_getaffinity(0))
    out = {"framework": "torch " + torch.__version__.split("+")[0], "import_s": imported,
           "matmul": matmul(torch, options.quick, cores), "operator_s": operators(torch),
           "memory_bytes_per_second": memory(torch, options.quick), "all_reduce": [], "together": []}
    alone = layer_rate(torch, *TOGETHER, torch.float32, time.thread_time, 3)
    ranks = 2
    while ranks <= min(cores, 16):
        reduces, beside = together(ranks, options.quick)
        out["all_reduce"] += reduces
        out["together"].append({**beside, "share_of_alone": min(1.0, beside["flops_per_second"] / alone)})
        ranks *= 2
    if not out["together"]:
        (torch.randn(64, 64, requires_grad=True) @ torch.randn(64, 64)).sum().backward()
        out["together"].append({"ranks": 1, "flops_per_second": alone, "resident_bytes": resident(), "share_of_alone": 1.0})
    print(json.dumps(out))


if __name__ == "__main__":
    main()

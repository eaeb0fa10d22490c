"""What PyTorch makes of this machine's cores, as one JSON object on standard output; stoker bench cpu --framework runs it.

    torch_cpu.py [--quick]

A step of a training on cores is matrix products, attention, what a layer does to every element beside them, many small
operators, the optimizer, and all-reduces between the ranks. Each is measured as a training does it: the products of a gated
transformer layer with their two gradients, by hidden size, tokens, precision and threads; attention with its backward pass, by
sequence and size of a head; norms, rotary positions, additions and the gate with theirs, by elements; an operator on one
element; an addition of tensors that no cache holds; AdamW on as many parameters; gloo's all-reduce by size and number of ranks. One thread is timed in processor seconds, so that other work on the
machine costs the figure little; several threads, and ranks that wait for each other, by the clock, of which the fastest
repeat counts. What ranks take from each other when all compute at once is measured by letting them.
"""
import argparse
import ctypes
import json
import os
import socket
import subprocess
import sys
import time

HIDDEN, TOKENS = (64, 128, 256, 512, 1024), (256, 1024, 4096)
QUICK_HIDDEN, QUICK_TOKENS = (128, 256, 512), (512, 2048)
ALL_REDUCE_BYTES = (4, 1 << 16, 1 << 20, 4 << 20, 16 << 20, 64 << 20)
SEQUENCES, HEADS = (64, 128, 256, 512), (16, 32, 64, 128)
QUICK_SEQUENCES, QUICK_HEADS = (64, 256), (32, 64)
ELEMENTS, QUICK_ELEMENTS = (1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22), (1 << 16, 1 << 19)  # tokens x hidden
BUDGET_FLOPS = 3e9  # of one timed loop
TOGETHER = (256, 1024)  # hidden and tokens of what all ranks compute at once


def set_threads(torch, threads):
    """All pools that compute, as a run sets them: PyTorch's own, and that of its BLAS where that is another."""
    torch.set_num_threads(threads)
    try:
        with open("/proc/self/maps") as file:
            paths = {line.split(None, 5)[5].strip() for line in file if "/" in line and ("blas" in line or "mkl" in line or "blis" in line)}
    except (OSError, IndexError):
        return
    for path in sorted(paths):
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for name in ("openblas_set_num_threads", "MKL_Set_Num_Threads", "bli_thread_set_num_threads"):
            if hasattr(library, name):
                getattr(library, name)(ctypes.c_long(threads) if name.startswith("bli") else ctypes.c_int(threads))


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
        set_threads(torch, threads)
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
    set_threads(torch, 1)
    return points


def fastest(work, repeats, least_s=0.02):
    """Processor seconds of one call: the best repeat, each of so many calls that the clock is fine enough."""
    work()
    start = time.thread_time()
    work()
    loops = max(1, int(least_s / max(1e-6, time.thread_time() - start)))
    best = float("inf")
    for _ in range(repeats):
        start = time.thread_time()
        for _ in range(loops):
            work()
        best = min(best, (time.thread_time() - start) / loops)
    return best


def attention(torch, quick):
    """Seconds of each score, forward and backward: unfused, masked, fp32."""
    points = []
    for sequence in QUICK_SEQUENCES if quick else SEQUENCES:
        mask = torch.full((sequence, sequence), float("-inf")).triu(1)
        for head in QUICK_HEADS if quick else HEADS:
            heads = max(1, (1 << 20) // sequence**2)
            q, k, v = (torch.randn(heads, sequence, head, requires_grad=True) for _ in range(3))
            dy = torch.randn(heads, sequence, head)

            def work():
                weights = (q @ k.transpose(-1, -2) / head**0.5 + mask).softmax(-1)
                torch.autograd.grad(weights @ v, (q, k, v), dy)

            points.append({"sequence": sequence, "head": head, "seconds": fastest(work, 2 if quick else 3) / (heads * sequence**2)})
    return points


def elementwise(torch, quick):
    """Seconds of each token and hidden element, forward and backward, of what a gated layer does beside products and
    attention: two norms, rotary positions of queries and keys, copies of values and outputs, two additions of the residual,
    five of gradients, and a gate 8/3 as wide."""
    points = []
    hidden, heads = 256, 4
    for elements in QUICK_ELEMENTS if quick else ELEMENTS:
        tokens = elements // hidden
        x, other, dy = (torch.randn(tokens, hidden) for _ in range(3))
        x.requires_grad_()
        weight = torch.ones(hidden, requires_grad=True)
        cos, sin = torch.randn(tokens, hidden // heads // 2), torch.randn(tokens, hidden // heads // 2)
        gate, up, dgate = (torch.randn(tokens, hidden * 8 // 3) for _ in range(3))
        gate.requires_grad_(), up.requires_grad_()

        def norm():
            y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * weight
            torch.autograd.grad(y, (x, weight), dy)

        def rotate():
            q = x.view(tokens, heads, -1).transpose(0, 1)
            even, odd = q[..., 0::2], q[..., 1::2]
            y = torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)
            torch.autograd.grad(y, x, dy.view(heads, tokens, -1))

        def copy():
            torch.autograd.grad(x.view(tokens, heads, -1).transpose(0, 1).contiguous(), x, dy.view(heads, tokens, -1))

        def multiply():
            torch.autograd.grad(torch.nn.functional.silu(gate) * up, (gate, up), dgate)

        repeats = 2 if quick else 3
        seconds = sum(count * fastest(work, repeats) for count, work in (
            (2, norm), (2, rotate), (2, copy), (1, multiply), (7, lambda: torch.add(other, dy))))
        points.append({"elements": tokens * hidden, "seconds": seconds / (tokens * hidden)})
    return points


def optimizer(torch, quick):
    """Seconds of each parameter in a step of AdamW, as PyTorch has it on a CPU: operator by operator."""
    weight = torch.randn((1 if quick else 4) << 20, requires_grad=True)
    weight.grad = torch.randn_like(weight)
    adam = torch.optim.AdamW([weight], lr=1e-4)
    return fastest(adam.step, 2 if quick else 3) / weight.numel()


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
    set_threads(torch, 1)
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
    set_threads(torch, 1)
    cores = len(os.sched_getaffinity(0))
    out = {"framework": "torch " + torch.__version__.split("+")[0], "import_s": imported,
           "matmul": matmul(torch, options.quick, cores), "operator_s": operators(torch),
           "memory_bytes_per_second": memory(torch, options.quick), "attention": attention(torch, options.quick),
           "elementwise": elementwise(torch, options.quick), "optimizer_s": optimizer(torch, options.quick),
           "all_reduce": [], "together": []}
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

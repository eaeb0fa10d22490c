#!/usr/bin/env python3
"""Workloads drawn by chance, as somebody would type them, and the first screen that each gets: what is read before cases are signed.

    tests/first_answers/draw.py --stoker build/release/stoker --seed 7 --count 40 [--into FOLDER] [--only fine-tuning]

A seed always draws the same files. With --into each is kept as N.yaml beside its answer, N.txt. The exit code is 1 when
an answer takes longer than --seconds, or ends by a signal or with a code that only a bug gives: what an answer advises, a
person reads.
"""
import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

LARGE = ("llama-3-8b", "llama-3-70b", "llama-3.1-405b", "mixtral-8x7b", "deepseek-v3", "qwen2.5-7b", "qwen3-32b", "gpt2",
         "mistral-7b", "phi-4", "gemma-3-27b", "gpt-oss-120b", "mistral-small-24b")
SMALL = ("bert-base", "bert-large", "resnet-50", "vit-b-16", "stable-diffusion-xl", "whisper-large-v3", "bge-m3",
         "clip-vit-l-14")
CLOUDS = ("azure", "azure", "azure", "aws", "gcp", "any")
DEADLINES = ("2d", "7d", "14d", "30d", "60d")
BUDGETS = ("200 USD", "2000 USD", "20000 USD", "250000 USD", "3000000 USD")
GPUS = {"azure": ("A100-SXM-80GB", "H100-SXM", "T4", "A10", "H200-SXM"), "aws": ("H100-SXM", "A100-SXM-40GB", "L40S", "L4", "A10G"),
        "gcp": ("H100-SXM", "A100-SXM-40GB", "L4", "T4"), "any": ("H100-SXM", "A100-SXM-80GB", "L40S")}
OWN = {"A100-SXM-80GB": (8, True), "H100-SXM": (8, True), "RTX-4090": (4, False), "L40S": (4, False), "MI300X": (8, True)}


def objective(draw, service=False, tokens=True):
    minimize = draw.choice(("cost", "cost", "cost", "time"))
    parts = [f"minimize: {minimize}"]
    if service:
        if draw.random() < 0.4:
            first, each = draw.choice(("500ms", "1s", "3s")), draw.choice(("30ms", "60ms", "100ms"))
            parts.append(f"latency: {{ttft_p95: {first}, tpot_p95: {each}}}" if tokens else f"latency: {{p95: {first}}}")
        if draw.random() < 0.2:
            parts.append(f"budget: {draw.choice(BUDGETS[1:4])}")
    else:
        if draw.random() < 0.5:
            parts.append(f"deadline: {draw.choice(DEADLINES)}")
        if draw.random() < 0.35:
            parts.append(f"budget: {draw.choice(BUDGETS)}")
    return "objective: {%s}" % ", ".join(parts)


def traffic(draw):
    shape = f"prompt_tokens: {draw.choice((200, 1500, 6000, 30000))}, output_tokens: {draw.choice((50, 300, 900))}"
    load = draw.choice((f"requests_per_second: {draw.choice((0.05, 0.2, 1, 3, 12, 60))}", f"concurrency: {draw.choice((1, 5, 40, 300))}",
                        f"users: {draw.choice((20, 500, 5000))}"))
    return "traffic: {%s, %s}" % (load, shape)


def where(draw, service=False):
    cloud = draw.choice(CLOUDS)
    parts = [f"cloud: {cloud}"]
    chance = draw.random()
    if chance < 0.15:
        parts.append(f"accelerators: [{draw.choice(GPUS[cloud])}]")
    elif chance < 0.25:
        parts.append(f"max_nodes: {draw.choice((1, 2, 8))}")
    if draw.random() < 0.15 and cloud == "azure":
        parts.append(f"regions: [{draw.choice(('westeurope', 'eastus', 'swedencentral', 'australiaeast'))}]")
    if not service and draw.random() < 0.2:
        parts.append("spot: allowed")
    return "where: {%s}" % ", ".join(parts)


def training(draw):
    model = draw.choice(("{parameters: %s}" % draw.choice(("350M", "1B", "7B", "34B", "180B")), "gpt2", "llama-3-8b", "llama-3-70b"))
    tokens, length = draw.choice(("3B", "40B", "600B", "2T")), draw.choice((2048, 4096, 8192))
    return ["kind: training", f"model: {model}", "data: {tokens: %s, sequence: %d}" % (tokens, 1024 if model == "gpt2" else length),
            objective(draw), where(draw)]


def training_of_pictures(draw):
    model, data = draw.choice((("resnet-50", "{examples: 1.28M, epochs: 90}"), ("vit-b-16", "{examples: 1.28M, epochs: 300}"),
                               ("bert-base", "{tokens: 3B, sequence: 512}"), ("stable-diffusion-xl", "{examples: 500k, epochs: 1}")))
    return ["kind: training", f"model: {model}", f"data: {data}", objective(draw), where(draw)]


def fine_tuning(draw):
    model = draw.choice(LARGE)
    length = 1024 if model == "gpt2" else draw.choice((2048, 4096, 8192))
    return ["kind: fine-tuning", f"model: {model}", f"method: {draw.choice(('full', 'lora', 'qlora'))}",
            "data: {tokens: %s, sequence: %d}" % (draw.choice(("5M", "50M", "400M", "3B")), length), objective(draw), where(draw)]


def inference(draw):
    lines = ["kind: inference", f"model: {draw.choice(LARGE)}", traffic(draw), objective(draw, True), where(draw, True)]
    if draw.random() < 0.2:
        lines.append(f"precision: {draw.choice(('fp8', 'int4', 'bf16'))}")
    return lines


def inference_of_others(draw):
    return ["kind: inference", f"model: {draw.choice(SMALL)}", f"traffic: {{requests_per_second: {draw.choice((0.2, 1, 12, 60))}}}",
            objective(draw, True, tokens=False), where(draw, True)]


def batch(draw):
    return ["kind: batch-inference", f"model: {draw.choice(LARGE)}",
            "data: {examples: %s}" % draw.choice(("10k", "1M", "20M")),
            "traffic: {prompt_tokens: %d, output_tokens: %d}" % (draw.choice((300, 2000)), draw.choice((50, 400))),
            objective(draw), where(draw)]


def own(draw):
    device = draw.choice(sorted(OWN))
    gpus, linked = OWN[device]
    one = draw.choice((training, fine_tuning, inference))(draw)
    lines = [line for line in one if not line.startswith("where")] + ["where: {cloud: on-prem, nodes: own.yaml}"]
    machine = ["  - name: lab", f"    gpu: {device}", f"    gpus: {gpus}", "    vcpus: 128", "    memory: 1TiB",
               f"    nvlink: {'true' if linked else 'false'}", "    ethernet_gbps: 100", f"    count: {draw.choice((1, 2, 4, 16))}"]
    if linked:
        machine.append("    rdma: {gbps_per_gpu: 400, kind: infiniband}")
    return lines, "\n".join(["nodes:", *machine, ""])


KINDS = {"training": training, "other-training": training_of_pictures, "fine-tuning": fine_tuning, "inference": inference,
         "other-inference": inference_of_others, "batch": batch, "own": own}
SHARES = {"training": 3, "other-training": 1, "fine-tuning": 4, "inference": 5, "other-inference": 2, "batch": 1, "own": 1}


def drawn(seed, number, only):
    draw = random.Random(f"{seed}/{number}")
    kind = only or draw.choices(sorted(SHARES), [SHARES[kind] for kind in sorted(SHARES)])[0]
    lines = KINDS[kind](draw)
    lines, machines = lines if isinstance(lines, tuple) else (lines, None)
    return kind, "\n".join(["version: 1", *lines, ""]), machines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stoker", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--into")
    parser.add_argument("--only", choices=sorted(KINDS))
    parser.add_argument("--seconds", type=float, default=30)
    args = parser.parse_args()
    stoker = os.path.abspath(args.stoker)
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(args.into or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(1, args.count + 1):
            kind, text, machines = drawn(args.seed, number, args.only)
            text = text.replace("own.yaml", f"{number}-own.yaml")
            (folder / f"{number}.yaml").write_text(text)
            if machines:
                (folder / f"{number}-own.yaml").write_text(machines)
            begin = time.monotonic()
            env = dict(os.environ, COLUMNS="100", NO_COLOR="1", HOME=scratch)
            try:
                done = subprocess.run([stoker, "plan", f"{number}.yaml"], cwd=folder, env=env, capture_output=True, text=True,
                                      stdin=subprocess.DEVNULL, timeout=args.seconds)
                answer, code = done.stdout + done.stderr, done.returncode
            except subprocess.TimeoutExpired:
                answer, code = f"no answer within {args.seconds:.0f} s\n", -1
            if code not in (0, 1):
                failed += 1
            (folder / f"{number}.txt").write_text(answer)
            print(f"--- {number} {kind}, exit code {code}, {time.monotonic() - begin:.1f} s")
            print(text.replace("version: 1\n", "") + (machines or "") + "\n" + answer)
    print(f"{args.count} drawn, {failed} without an answer")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

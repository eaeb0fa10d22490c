"""Small trainings of six families, healthy or sick, for bench/explain: none of them is the model that thresholds were set on.

    zoo.py --family cnn --way hook --seconds 10 --faults '[["loader-slow", 12]]'

The way says how it tells its steps: hook (stoker_torch), json (lines of STOKER_METRICS_FILE as the guide has them), pattern (its
output alone) or none. Its own clock is the truth: truth.rank-N.json has the mean of its steady steps without checkpoints, and
what was injected into them, a step."""
import os

RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
import argparse
import contextlib
import gc
import json
import random
import signal
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "python", "stoker_torch"))
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--family", choices=["decoder", "encoder", "cnn", "rnn", "mlp", "diffusion"], default="decoder")
parser.add_argument("--way", choices=["hook", "json", "pattern", "none"], default="hook")
parser.add_argument("--width", type=float, default=1.0)
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--seconds", type=float, default=10)
parser.add_argument("--steps", type=int, default=0, help="ends after so many")
parser.add_argument("--profile", default="", help="write what stoker_torch.profile() counts to this file, and end")
parser.add_argument("--faults", default="[]", help='JSON: [["loader-slow", 12], ...]')
options = parser.parse_args()
FAULTS = {name: size for name, size in json.loads(options.faults)}
if "pin" in FAULTS:
    places = [int(each) for each in str(FAULTS["pin"]).split(",")]
    os.sched_setaffinity(0, {places[RANK % len(places)]})
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

import stoker_torch

WORK = os.environ.get("STOKER_ARTIFACT_DIR", "/tmp")
HOOK = options.way == "hook"


def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class Block(nn.Module):
    def __init__(self, dim, heads, causal):
        super().__init__()
        self.a, self.b, self.heads, self.causal = nn.LayerNorm(dim), nn.LayerNorm(dim), heads, causal
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = (each.view(n, t, self.heads, -1).transpose(1, 2) for each in self.qkv(self.a(x)).chunk(3, -1))
        score = q @ k.transpose(-1, -2) / (d // self.heads) ** 0.5
        if self.causal:
            score = score.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), float("-inf"))
        x = x + self.out((score.softmax(-1) @ v).transpose(1, 2).reshape(n, t, d))
        return x + self.down(F.gelu(self.up(self.b(x))))


class Text(nn.Module):
    def __init__(self, dim, layers, causal, context=96):
        super().__init__()
        self.context, self.words, self.places = context, nn.Embedding(300, dim), nn.Embedding(context, dim)
        self.blocks = nn.ModuleList(Block(dim, 4, causal) for _ in range(layers))
        self.head = nn.Linear(dim, 300)

    def sample(self):
        return torch.randint(300, (self.context,)), torch.randint(300, (self.context,))

    def loss(self, x, y):
        h = self.words(x) + self.places(torch.arange(x.shape[1]))
        for block in self.blocks:
            if "recompute" in FAULTS and self.training:
                h = torch.utils.checkpoint.checkpoint(block, h, use_reentrant=False)
            else:
                h = block(h)
        return F.cross_entropy(self.head(h).flatten(0, 1), y.flatten())


class Images(nn.Module):
    def __init__(self, width):
        super().__init__()
        w = int(width)
        self.body = nn.Sequential(nn.Conv2d(3, w, 3, padding=1), nn.BatchNorm2d(w), nn.ReLU(), nn.Conv2d(w, 2 * w, 3, 2, 1),
                                  nn.BatchNorm2d(2 * w), nn.ReLU(), nn.Conv2d(2 * w, 4 * w, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
                                  nn.Flatten(), nn.Linear(64 * w, 10))

    def sample(self):
        return torch.randn(3, 32, 32), torch.randint(10, ())

    def loss(self, x, y):
        return F.cross_entropy(self.body(x), y)


class Recurrent(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.words, self.body, self.head = nn.Embedding(200, width), nn.LSTM(width, width, 2, batch_first=True), nn.Linear(width, 200)

    def sample(self):
        return torch.randint(200, (40,)), torch.randint(200, (40,))

    def loss(self, x, y):
        return F.cross_entropy(self.head(self.body(self.words(x))[0]).flatten(0, 1), y.flatten())


class Perceptron(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(256, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                                  nn.Linear(width, 10))

    def sample(self):
        return torch.randn(256), torch.randint(10, ())

    def loss(self, x, y):
        return F.cross_entropy(self.body(x), y)


class Diffusion(nn.Module):
    def __init__(self, width):
        super().__init__()
        w = int(width)
        self.down, self.middle = nn.Conv2d(3, w, 3, 2, 1), nn.Sequential(*(nn.Conv2d(w, w, 3, padding=1) for _ in range(3)))
        self.time, self.up = nn.Linear(16, w), nn.ConvTranspose2d(w, 3, 4, 2, 1)

    def sample(self):
        return torch.randn(3, 32, 32), torch.randn(3, 32, 32)

    def loss(self, x, y):
        h = F.silu(self.down(x + y) + self.time(torch.randn(x.shape[0], 16))[:, :, None, None])
        return F.mse_loss(self.up(h + F.silu(self.middle(h))), y)


def make():
    w = options.width
    return {"decoder": lambda: Text(32 * int(4 * w), 3, True), "encoder": lambda: Text(32 * int(3 * w), 4, False),
            "cnn": lambda: Images(16 * w), "rnn": lambda: Recurrent(int(128 * w)), "mlp": lambda: Perceptron(int(1024 * w)),
            "diffusion": lambda: Diffusion(32 * w)}[options.family]()


BATCH = {"decoder": 6, "encoder": 6, "cnn": 12, "rnn": 16, "mlp": 128, "diffusion": 12}[options.family] * options.batch // 8
batch_of_rank = max(1, int(BATCH * FAULTS.get("batch", 1)))


class Samples(Dataset):
    def __init__(self, model):
        self.made = [model.sample() for _ in range(64)]
        mine = FAULTS.get("loader-rank") is None or RANK == 1
        slow = FAULTS.get("loader-slow", FAULTS.get("loader-rank", FAULTS.get("loader-worker", 0)))
        self.sleep_s = slow / 1e3 / batch_of_rank if mine else 0
        self.burn_s = FAULTS.get("loader-compute", 0) / 1e3 / batch_of_rank
        self.burst, self.count = FAULTS.get("loader-burst", 0) / 1e3, 0
        self.folder = None
        if "loader-files" in FAULTS:
            self.folder = os.path.join(WORK, f"files-{RANK}")
            os.makedirs(self.folder, exist_ok=True)
            for i in range(1500):
                with open(os.path.join(self.folder, f"{i}.txt"), "w") as file:
                    file.write("word" * 20)

    def __len__(self):
        return 10**9

    def __getitem__(self, index):
        if self.sleep_s:
            time.sleep(self.sleep_s)
        if self.burn_s:
            burn(self.burn_s)
        if self.folder:
            for _ in range(int(FAULTS["loader-files"]) // batch_of_rank):
                with open(os.path.join(self.folder, f"{random.randrange(1500)}.txt")) as file:
                    file.read()
        self.count += 1
        if self.burst and self.count % (5 * batch_of_rank) == 0:
            time.sleep(5 * self.burst)  # as much a step as its size says
        return self.made[index % len(self.made)]


class Order(torch.utils.data.Sampler):
    def __init__(self):
        pass

    def __iter__(self):
        return iter(range(10**9))


class Cycle:
    def __init__(self, other):
        self.other, self.bytes = other, [0] * 10


class Lines:
    """As somebody writes who has read the guide and wants no hook."""
    def __init__(self):
        path = os.environ.get("STOKER_METRICS_FILE", "")
        if RANK and path:
            stem, dot, end = path.rpartition(".")
            path = f"{stem}.rank-{RANK}{dot}{end}"
        self.file = open(path, "a", buffering=1) if path else None

    def tell(self, **numbers):
        if self.file:
            self.file.write(json.dumps(dict(numbers, time=time.time())) + "\n")


def main():
    if "set-threads" in FAULTS:
        torch.set_num_threads(int(FAULTS["set-threads"]))
    torch.manual_seed(RANK)
    model = make()
    if options.profile:
        made = [model.sample() for _ in range(batch_of_rank)]
        model.forward = model.loss
        stoker_torch.profile(model, tuple(torch.stack(each) for each in zip(*made)), options.profile)
        return
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, 1e-4)
    if WORLD > 1:
        dist.init_process_group("gloo")
    workers = 1 if "loader-worker" in FAULTS or "workers" in FAULTS else 0
    loader = iter(DataLoader(Samples(model), batch_of_rank, sampler=Order(), num_workers=workers))
    if HOOK:
        stoker_torch.attach(optimizer, samples=batch_of_rank)
    lines = Lines() if options.way == "json" else None
    log = open(os.path.join(WORK, f"log-{RANK}.txt"), "w")
    kept, mapped, extra = [], None, None
    if "checkpoint" in FAULTS or "checkpoint-own" in FAULTS:
        extra = torch.randn(int(FAULTS.get("checkpoint", FAULTS.get("checkpoint-own"))) * 25 * 10**4)
    if "ballast" in FAULTS:
        kept.append(torch.ones(int(FAULTS["ballast"]) * 25 * 10**4))
    if "gc" in FAULTS:
        gc.disable()
    taken, injected, stalls, waits, number = [], [], [], [], 0
    last, done = time.perf_counter(), torch.zeros(1)
    end = time.monotonic() + options.seconds
    cast = torch.autocast("cpu", dtype=torch.bfloat16) if "bf16" in FAULTS else contextlib.nullcontext()
    while True:
        number += 1
        began = time.perf_counter()
        sick = 0.0
        x, y = next(loader)
        waited = time.perf_counter() - began
        optimizer.zero_grad(set_to_none=False)
        with cast:
            loss = model.loss(x, y)
        loss.backward()
        reduced = 0.0
        if WORLD > 1:
            before = time.perf_counter()
            flat = torch.cat([each.grad.flatten() for each in parameters])
            dist.all_reduce(flat)
            at = 0
            for each in parameters:
                each.grad.copy_(flat[at:at + each.numel()].view_as(each))
                at += each.numel()
            reduced = time.perf_counter() - before
        before = time.perf_counter()
        if "late-rank" in FAULTS and RANK == WORLD - 1:
            burn(FAULTS["late-rank"] / 1e3)
        if "gc" in FAULTS and number % 4 == 0:
            for _ in range(int(FAULTS["gc"] * 1000)):
                a = Cycle(None)
                a.other = Cycle(a)
            before = time.perf_counter()  # making them is not collecting them
            gc.collect()
        if "evaluation" in FAULTS and number % 20 == 0:
            burn(20 * FAULTS["evaluation"] / 1e3)
        if "synced-log" in FAULTS:
            for _ in range(int(FAULTS["synced-log"])):
                log.write("x" * 4096)
                log.flush()
                os.fsync(log.fileno())
        if "grows" in FAULTS:
            burn(FAULTS["grows"] / 1e3 * 2 * (1 - max(0.0, end - time.monotonic()) / options.seconds))
        if "turns" in FAULTS and end - time.monotonic() < 0.5 * options.seconds:
            burn(2 * FAULTS["turns"] / 1e3)
        if "leak" in FAULTS:
            kept.append(torch.ones(int(FAULTS["leak"] * 25 * 10**4)))
        if "first" in FAULTS and number <= 6:
            burn(FAULTS["first"] / 1e3)
        if "lock" in FAULTS:
            time.sleep(FAULTS["lock"] / 1e3)  # a lock of somebody else's
        sick += time.perf_counter() - before if set(FAULTS) & {"gc", "evaluation", "synced-log", "grows", "turns", "late-rank", "lock"} else 0
        if "hang" in FAULTS and number == 40 and RANK == WORLD - 1:
            if FAULTS["hang"] == "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            while FAULTS["hang"] == "spin":
                pass
            time.sleep(600)
        optimizer.step()
        stalled = 0.0
        if extra is not None and number % 10 == 0 and RANK == 0:
            before = time.perf_counter()
            path = os.path.join(os.environ.get("STOKER_CHECKPOINT_DIR") or WORK, "state.pt")
            if "checkpoint" in FAULTS:
                try:
                    with open(path + ".part", "wb") as file:
                        torch.save({"extra": extra}, file)
                        file.flush()
                        os.fsync(file.fileno())
                    os.replace(path + ".part", path)
                except (OSError, RuntimeError) as problem:  # as programs do that go on without
                    print(f"checkpoint lost: {problem}", flush=True)
            else:
                with stoker_torch.checkpoint() if HOOK else contextlib.nullcontext():
                    with open(path, "wb") as file:
                        file.write(extra.numpy().tobytes())
                        file.flush()
                        os.fsync(file.fileno())
            stalled = time.perf_counter() - before
        now = time.perf_counter()
        whole = now - last
        last = now
        value = float("nan") if FAULTS.get("loss") == "nan" and number >= 30 else float("inf") if FAULTS.get("loss") == "inf" and number >= 30 else loss.item()
        if lines:
            lines.tell(step=number, step_s=round(whole - stalled, 6), wait_s=round(waited, 6), allreduce_s=round(reduced, 6),
                       checkpoint_s=round(stalled, 6), compute_s=round(whole - stalled - waited - reduced, 6), loss=value, samples=batch_of_rank)
        if options.way == "pattern" or (FAULTS.get("loss") and HOOK):
            print(f"it {number} | loss {value}", flush=True)
        taken.append(whole - stalled)
        stalls.append(stalled)
        injected.append(sick)
        waits.append(waited)
        done[0] = float(time.monotonic() > end or (options.steps and number >= options.steps))
        if WORLD > 1 and number % 4 == 0:
            dist.all_reduce(done)
        if done[0] > 0 and (WORLD == 1 or number % 4 == 0):
            break
    if HOOK:
        stoker_torch.detach()
    steady = slice(len(taken) // 4, None)
    mean = lambda values: sum(values[steady]) / max(1, len(values[steady]))
    with open(os.path.join(WORK, f"truth.rank-{RANK}.json"), "w") as file:
        json.dump({"steps": number, "step_s": mean(taken), "injected_s": mean(injected), "checkpoint_s": mean(stalls),
                   "wait_s": mean(waits)}, file)
    sys.stdout.flush()
    os._exit(0)


main()

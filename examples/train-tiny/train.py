#!/usr/bin/python3
"""Trains a small language model, data-parallel over the ranks that the environment names, and survives being killed.

  train.py --data corpus.txt --steps 200                 alone
  stoker run examples/tiny-gpt.yaml                      two ranks, with checkpoints, restarted where it stopped

What it reads of its environment (Stoker sets all of it; torchrun sets the first line):
  RANK WORLD_SIZE MASTER_ADDR MASTER_PORT
  STOKER_CHECKPOINT_DIR, STOKER_RESUME_FROM, STOKER_CHECKPOINT_INTERVAL (seconds), STOKER_GRACE (seconds)
  STOKER_METRICS_FILE   one line of JSON per step; rank 3 writes metrics.rank-3.jsonl beside metrics.jsonl
  STOKER_ARTIFACT_DIR   the weights at the end
SIGUSR1: write a checkpoint and go on. SIGTERM: write one if the time suffices, then exit with 143.
Exit codes: 0 done, 2 wrong input, 75 another rank is gone (start all again), 143 stopped as asked.

The result does not depend on what happened on the way: initial weights follow from the seed, the examples of a step from
(seed, step), gradients are added in one fixed order by one thread. The same number of ranks gives the same bits.
"""
import os
import signal
import sys

# Before anything starts a thread: all of them leave these signals to ours. More threads than one make small matrices slower.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1})
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
if os.environ.get("MASTER_ADDR") in ("127.0.0.1", "localhost"):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import argparse
import datetime
import hashlib
import json
import resource
import threading
import time

import torch
import torch.distributed as dist

import checkpoint
import model as models

RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
CHECKPOINTS = os.environ.get("STOKER_CHECKPOINT_DIR", "")
TEMPORARY_FAILURE, STOPPED = 75, 143


def say(text):
    print(text if RANK == 0 else f"rank {RANK}: {text}", flush=True)


def leave(code, why):
    """Ends at once: threads of a broken process group must not hold the exit up."""
    say(why)
    sys.stderr.flush()
    os._exit(code)


class Requests:
    """What signals ask for; a thread of its own takes them, so they count even while another rank is waited for."""

    def __init__(self):
        self.checkpoint, self.stop, self.deadline, self.training = False, False, 0.0, False
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            if signal.sigwait({signal.SIGTERM, signal.SIGUSR1}) == signal.SIGUSR1:
                self.checkpoint = True
                continue
            grace = float(os.environ.get("STOKER_GRACE", "30"))
            if not self.training:
                leave(STOPPED, "stopped before the first step")
            self.deadline, self.stop = time.monotonic() + grace, True
            # Whatever the training hangs in: leave before we are killed.
            timer = threading.Timer(max(grace - 1, grace / 2), leave, (STOPPED, "the grace is over: no checkpoint"))
            timer.daemon = True
            timer.start()

    def time_for(self, seconds):
        return not self.stop or self.deadline - time.monotonic() > 2 * seconds + 1


class Foreign(Exception):
    """A checkpoint that is whole, but of another training."""


class Adam:
    """AdamW with decoupled weight decay (Loshchilov and Hutter 2019), on flat vectors."""

    def __init__(self, weights, rate):
        self.weights, self.rate = weights, rate
        self.mean, self.square = torch.zeros_like(weights), torch.zeros_like(weights)

    def update(self, gradient, step):
        first, second, decay = 0.9, 0.95, 0.1
        rate = self.rate * min(1.0, step / 20)
        self.mean.mul_(first).add_(gradient, alpha=1 - first)
        self.square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        scale = (self.square / (1 - second**step)).sqrt_().add_(1e-8)
        self.weights.mul_(1 - rate * decay).addcdiv_(self.mean, scale, value=-rate / (1 - first**step))


def bytes_of(tensor):
    return memoryview(tensor.contiguous().numpy()).cast("B")


def collective(function, *arguments, **named):
    """Every call that waits for other ranks. When one is gone all have to start again: that is for Stoker to do."""
    try:
        function(*arguments, **named)
    except RuntimeError as problem:
        leave(TEMPORARY_FAILURE, f"another rank is gone or does not answer: {str(problem).splitlines()[0][:200]}")


def everywhere(flag):
    """True when it is on every rank."""
    if WORLD == 1:
        return flag
    all_of = torch.tensor(int(flag))
    collective(dist.all_reduce, all_of, dist.ReduceOp.MIN)
    return bool(all_of)


class Training:
    def __init__(self, options):
        self.options, self.requests = options, Requests()
        with open(options.data, "rb") as file:
            text = file.read()
        if len(text) < options.ctx + 2:
            raise OSError(f"{options.data} has {len(text)} bytes; one example takes {options.ctx + 1}")
        self.tokens = models.encode(text)
        # A checkpoint of anything else is not resumed from.
        self.identity = {key: getattr(options, key) for key in ("dim", "layers", "heads", "ctx", "batch", "seed", "lr")}
        self.identity["data_sha256"] = hashlib.sha256(text).hexdigest()
        self.model = models.Model(options.dim, options.layers, options.heads, options.ctx, options.seed)
        # After the gradients: loss, "a checkpoint, please", "stop", "no time for a checkpoint". One all-reduce carries all.
        self.weights, self.sums = models.flatten(self.model, 4)
        self.count = self.weights.numel()
        self.adam = Adam(self.weights, options.lr)
        self.step = self.checkpointed = 0
        self.write_s, self.last_write = 0.0, time.monotonic()

    # --- checkpoints: rank r holds the r-th slice of weights, first and second moments -----------------------------------

    def slice_of(self, rank, world):
        return self.count * rank // world, self.count * (rank + 1) // world

    def save(self):
        """All ranks together. A disk that says no costs this checkpoint, not the run."""
        started, temporary, entry, problem = time.monotonic(), "", None, ""
        try:
            temporary = os.path.join(CHECKPOINTS, f"step-{self.step:06d}.tmp")
            if RANK == 0:
                checkpoint.begin(CHECKPOINTS, self.step)
        except OSError as error:
            problem = str(error)
        if everywhere(not problem):
            begin, end = self.slice_of(RANK, WORLD)
            parts = [bytes_of(each[begin:end]) for each in (self.weights, self.adam.mean, self.adam.square)]
            try:
                entry = checkpoint.write_synced(os.path.join(temporary, f"rank-{RANK}.f32"), parts)
            except OSError as error:
                problem = str(error)
        entries = [entry]
        if WORLD > 1:
            entries = [None] * WORLD
            collective(dist.all_gather_object, entries, entry)
        if RANK == 0 and all(entries):
            try:
                checkpoint.commit(temporary, {
                    "step": self.step, "world_size": WORLD, "layout": "slices of weights, mean, square; float32",
                    "parameters": self.count, "training": self.identity, "files": entries})
            except OSError as error:
                problem = str(error)
        self.write_s, self.last_write = time.monotonic() - started, time.monotonic()
        whole = everywhere(all(entries) and not problem)
        if whole:
            self.checkpointed = self.step
            if RANK == 0:
                say(f"checkpoint step {self.step} in {self.write_s:.2f} s")
        elif problem:
            say(f"checkpoint of step {self.step} failed, the previous one counts: {problem}")
        return whole

    def load(self, folder):
        manifest = checkpoint.read_manifest(folder)
        if manifest.get("training") != self.identity:
            there = manifest.get("training") if isinstance(manifest.get("training"), dict) else {}
            differs = [f"{key} {there.get(key)} there, {value} here"
                       for key, value in self.identity.items() if there.get(key) != value]
            raise Foreign(f"error: {folder} is of another training: {'; '.join(differs)[:300]}")
        world = manifest.get("world_size")
        if world != len(manifest["files"]) or manifest["step"] > self.options.steps:
            raise checkpoint.Damaged("its manifest contradicts itself or the number of steps")
        for rank, entry in enumerate(manifest["files"]):
            begin, end = self.slice_of(rank, world)
            content = torch.frombuffer(checkpoint.read_file(folder, entry), dtype=torch.float32)
            if content.numel() != 3 * (end - begin):
                raise checkpoint.Damaged(f"{entry['name']} does not hold the slice of rank {rank}")
            for target, part in zip((self.weights, self.adam.mean, self.adam.square), content.split(end - begin)):
                target[begin:end].copy_(part)
        return manifest["step"], world

    def resume(self):
        initial = self.weights.clone()
        for folder in checkpoint.candidates(CHECKPOINTS, os.environ.get("STOKER_RESUME_FROM", "")):
            problem = foreign = ""
            try:
                self.step, world = self.load(folder)
            except Foreign as other:
                foreign = str(other)
            except checkpoint.Damaged as damaged:
                problem = str(damaged)
            if not everywhere(not foreign):
                leave(2, foreign or "error: a checkpoint of another training; the other rank says more")
            if everywhere(not problem):
                say(f"resumed from step {self.step}: {folder}")
                if world != WORLD:
                    say(f"it was written by {world} ranks, now there are {WORLD}: the same examples, other rounding")
                self.checkpointed = self.step
                return
            if problem:
                say(f"cannot resume from {folder}: {problem}; trying the one before")
        self.weights.copy_(initial)
        self.adam.mean.zero_()
        self.adam.square.zero_()
        self.step = 0
        if os.environ.get("STOKER_RESUME_FROM"):
            say("no checkpoint is whole: starting from the beginning")

    # --- steps -------------------------------------------------------------------------------------------------------------

    def examples(self, step):
        """This rank's part of the global batch of a step."""
        size = self.options.ctx
        generator = torch.Generator().manual_seed(self.options.seed * 1_000_003 + step)
        starts = torch.randint(len(self.tokens) - size, (self.options.batch,), generator=generator)
        mine = starts[self.options.batch * RANK // WORLD:self.options.batch * (RANK + 1) // WORLD]
        # For demonstrations: each example takes so long to arrive, as from a store that is too slow.
        time.sleep(float(os.environ.get("TRAIN_READ_MS", "0")) / 1e3 * len(mine))
        return torch.stack([self.tokens[at:at + size + 1] for at in mine.tolist()])

    def do_step(self):
        """Returns loss, whether ranks want a checkpoint, to stop, and have no time; and the seconds of each part."""
        times = [time.monotonic()]
        batch = self.examples(self.step)
        times.append(time.monotonic())
        self.sums.zero_()
        loss = self.model(batch[:, :-1], batch[:, 1:])
        # Ranks may have unequal parts of the batch: weigh each by its share.
        (loss * (len(batch) / self.options.batch)).backward()
        wants, asked, interval = self.requests, self.requests.checkpoint, self.options.interval
        due = RANK == 0 and interval > 0 and time.monotonic() - self.last_write >= interval
        wishes = [loss.item() * len(batch) / self.options.batch, asked or due, wants.stop, not wants.time_for(self.write_s)]
        self.sums[self.count:] = torch.tensor(wishes, dtype=torch.float32)
        times.append(time.monotonic())
        if WORLD > 1:
            collective(dist.all_reduce, self.sums)
        times.append(time.monotonic())
        self.step += 1
        self.adam.update(self.sums[:self.count], self.step)
        times.append(time.monotonic())
        if asked:
            wants.checkpoint = False
        wait, forward_backward, all_reduce, update = (b - a for a, b in zip(times, times[1:]))
        loss, *wishes = self.sums[self.count:].tolist()
        return loss, [wish > 0 for wish in wishes], {
            "wait_s": wait, "compute_s": forward_backward + update, "allreduce_s": all_reduce}

    def run(self):
        options, metrics = self.options, None
        self.resume()
        if os.environ.get("STOKER_METRICS_FILE"):
            name, ending = os.path.splitext(os.environ["STOKER_METRICS_FILE"])
            metrics = open(f"{name}.rank-{RANK}{ending}" if RANK > 0 else name + ending, "a", buffering=1)
        self.requests.training, self.last_write, first = True, time.monotonic(), self.step
        while self.step < options.steps:
            started, at_work = time.monotonic(), time.process_time()
            loss, (asked, stop, no_time), seconds = self.do_step()
            seconds["step_s"] = time.monotonic() - started
            # What this process computed: on a busy machine the clock on the wall says more than the training needs.
            seconds["cpu_s"] = time.process_time() - at_work
            every = options.checkpoint_every and self.step % options.checkpoint_every == 0
            seconds["checkpoint_s"] = 0.0
            if CHECKPOINTS and (asked or every or stop or self.step == options.steps) and not no_time:
                self.save()
                seconds["checkpoint_s"] = self.write_s
            rate = options.batch * options.ctx / seconds["step_s"]
            if metrics:
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
                line = {"step": self.step, "loss": round(loss, 6), **{key: round(value, 6) for key, value in seconds.items()},
                        "tokens_per_s": round(rate, 1), "peak_rss_bytes": peak,
                        # What a plan says of a rank as well: its part of the batch, and how it computes.
                        "tokens": options.batch * options.ctx // WORLD, "param_bits": 32, "recomputed": 0, "compiled": 0}
                metrics.write(json.dumps(line) + "\n")
            if RANK == 0 and (self.step % options.report == 0 or self.step == options.steps):
                say(f"step {self.step}/{options.steps} loss {loss:.4f} {seconds['step_s']:.3f} s/step {rate:.0f} tokens/s")
            if stop and self.step < options.steps:
                there = f"checkpoint of step {self.checkpointed}" if self.checkpointed else "no checkpoint"
                leave(STOPPED, f"stopped as asked after step {self.step}; {there} is there")
            # For tests: this rank dies as by kill -9 so many steps after each start.
            if os.environ.get("TRAIN_DIE_AFTER") == f"{RANK}:{self.step - first}":
                os.kill(os.getpid(), signal.SIGKILL)
        self.finish()

    def finish(self):
        digest = hashlib.sha256(bytes_of(self.weights)).hexdigest()
        if RANK == 0:
            folder = self.options.out or os.environ.get("STOKER_ARTIFACT_DIR")
            if folder:
                os.makedirs(folder, exist_ok=True)
                torch.save({"model": self.model.state_dict()}, os.path.join(folder, "model.pt.tmp"))
                os.replace(os.path.join(folder, "model.pt.tmp"), os.path.join(folder, "model.pt"))
                shape = {key: self.identity[key] for key in ("dim", "layers", "heads", "ctx")}
                # The same bits come from the same kernels: these variables choose among them, where somebody has set them.
                kernels = {key: value for key, value in sorted(os.environ.items())
                           if key.startswith(("OPENBLAS_", "MKL_", "OMP_", "ATEN_", "DNNL_"))}
                about = {**shape, "kernels": kernels, "hidden": models.ffn_width(shape["dim"]), "vocab": models.VOCABULARY, "params": self.count,
                         "step": self.step, "weights_sha256": digest}
                checkpoint.write_synced(os.path.join(folder, "config.json"), [json.dumps(about, indent=1).encode() + b"\n"])
            if CHECKPOINTS:
                checkpoint.mark_done(CHECKPOINTS)
            say(f"done: {self.count} parameters, {self.step} steps, weights sha256 {digest}")


def main():
    parser = argparse.ArgumentParser(description="Trains a small language model on the bytes of a text.")
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--data", default=os.path.join(here, "corpus.txt"), help="any file of some 100 kB")
    parser.add_argument("--out", default="", help="where the weights go; STOKER_ARTIFACT_DIR when nothing is said")
    parser.add_argument("--batch", type=int, default=16, help="examples per step, of all ranks together")
    for name, value in dict(dim=256, layers=6, heads=8, ctx=128, steps=200, seed=1).items():
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--report", type=int, default=10, help="print every so many steps")
    parser.add_argument("--checkpoint-every", type=int, default=0, help="steps; besides STOKER_CHECKPOINT_INTERVAL")
    parser.add_argument("--timeout", type=float, default=120, help="seconds until a silent rank counts as gone")
    options = parser.parse_args()
    options.interval = float(os.environ.get("STOKER_CHECKPOINT_INTERVAL", "0"))
    for name in ("dim", "layers", "heads", "ctx", "steps", "batch", "report"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1")
    if options.dim % (2 * options.heads):
        parser.error(f"--dim {options.dim} must be an even multiple of --heads {options.heads}")
    if options.batch < WORLD:
        parser.error(f"--batch {options.batch} must be at least the number of ranks, {WORLD}")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    try:
        if CHECKPOINTS:
            os.makedirs(CHECKPOINTS, exist_ok=True)
        training = Training(options)
    except OSError as problem:
        parser.error(str(problem))
    if WORLD > 1:
        collective(dist.init_process_group, "gloo", timeout=datetime.timedelta(seconds=options.timeout))
    try:
        training.run()
    except OSError as problem:
        leave(1, f"error: {problem}")
    if WORLD > 1:
        dist.destroy_process_group()


main()

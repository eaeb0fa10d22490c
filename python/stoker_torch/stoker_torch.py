"""Tells Stoker how long the steps of a PyTorch training take, and where the time goes.

    import stoker_torch
    stoker_torch.attach(optimizer)                  # before the first step; a step ends with optimizer.step()
    for batch in stoker_torch.input(loader): ...    # optional: counts the time spent waiting for input

or, around a loop that is not made of optimizer steps:

    with stoker_torch.step(samples=32, tokens=32 * 1024): ...

Without STOKER_METRICS_FILE nothing is wrapped and nothing is written. With it, every rank appends one line of JSON per
step: rank 0 to that file, rank N to metrics.rank-N.jsonl beside it:

    {"step": 12, "time": 1700000000.1, "step_s": 0.21, "wait_s": 0.01, "allreduce_s": 0.05, "checkpoint_s": 0, "compute_s": 0.15, ...}

wait_s        in next() of a torch DataLoader, or of input()
allreduce_s   in calls of torch.distributed that wait (not in those with async_op), and in DistributedDataParallel the
              all-reduce of the last bucket of gradients, which nothing hides, and the broadcast of buffers
checkpoint_s  in torch.save
compute_s     the rest
cpu_s         processor time of this process, for telling "slow" from "not running"
gc_s          in Python's garbage collector, where it ran; a part of whatever it interrupted
Every few seconds a line also says how it computes, which `stoker explain` holds against the plan:
param_bits    bits of most parameters; autocast_bits: of torch.autocast when it is on, else 0
torch_threads computing threads; workers: of the DataLoader
recomputed    parts of the model that torch.utils.checkpoint computes again in a step
compiled      1 when torch.compile or torch.jit made the model's code
"""
import atexit
import functools
import gc
import json
import os
import sys
import threading
import time

__version__ = "0.1.0"
_FLUSH_S = 0.5  # lines are written together: a slow disk must not slow the steps
_FACTS_S = 3.0  # between lines that say how it computes
# json.dumps would take four times as long.
_LINE = ('{"step": %d, "time": %.3f, "step_s": %.6f, "wait_s": %.6f, "allreduce_s": %.6f, "checkpoint_s": %.6f, '
         '"compute_s": %.6f, "cpu_s": %.6f')


class _Recorder:
    def __init__(self, path, rank):
        if rank:
            stem, dot, end = path.rpartition(".") if "." in os.path.basename(path).lstrip(".") else (path, "", "")
            path = f"{stem}.rank-{rank}{dot}{end}"
        self.rank, self.path, self.lines = rank, path, []
        self.number = 0
        self.thread = threading.get_ident()
        self.parts = {"wait_s": 0.0, "allreduce_s": 0.0, "checkpoint_s": 0.0}
        self.extra, self.depth, self.before_end = {}, 0, []
        self.facts, self.told, self.recomputed = {}, None, 0
        self.began = self.flushed = time.perf_counter()
        self.cpu = time.process_time()
        self.collecting = self.collected = 0.0
        gc.callbacks.append(self.note_collection)
        atexit.register(self.flush)

    def note_collection(self, phase, _):
        if phase == "start":
            self.collecting = time.perf_counter()
        elif self.collecting:
            self.collected += time.perf_counter() - self.collecting
            self.collecting = 0.0

    def add(self, part, seconds):
        self.parts[part] += seconds

    def end_step(self, **extra):
        for call in self.before_end:
            call()
        now, cpu = time.perf_counter(), time.process_time()
        self.number += 1
        parts, whole = self.parts, now - self.began
        # A checkpoint is not a part of the step: the plan's step time has none either.
        step = max(whole - parts["checkpoint_s"], 1e-9)
        compute = max(0.0, step - parts["wait_s"] - parts["allreduce_s"])
        extra = dict(self.extra, **extra) if extra else self.extra
        if self.told is None or now - self.told > _FACTS_S:
            self.told, extra = now, dict(extra, **self.tell_facts())
        self.recomputed = 0
        # One that took no time worth telling is left out, and a step without one beside steps with one is told as 0.
        if self.collected > 1e-4 or "gc_s" in self.extra:
            self.extra["gc_s"] = 0.0
            extra = dict(extra, gc_s=round(self.collected, 6))
        self.collected = 0.0
        self.lines.append((self.number, time.time(), step, parts["wait_s"], parts["allreduce_s"], parts["checkpoint_s"],
                           compute, cpu - self.cpu, extra))
        for name in parts:
            parts[name] = 0.0
        self.began, self.cpu = now, cpu
        if now - self.flushed > _FLUSH_S:
            self.flush()

    def tell_facts(self):
        import torch
        facts = dict(self.facts, torch_threads=torch.get_num_threads(), recomputed=self.recomputed)
        dynamo = sys.modules.get("torch._dynamo.utils")
        if dynamo is not None and dynamo.counters["frames"].get("ok", 0) > 0:
            facts["compiled"] = 1
        return facts

    def flush(self):
        lines, self.lines, self.flushed = self.lines, [], time.perf_counter()
        if not lines:
            return
        text = []
        for *numbers, extra in lines:
            rates = "".join(f', "{name}_per_s": {extra[name] / numbers[2]:.3f}' for name in ("samples", "tokens") if name in extra)
            rest = ", " + json.dumps(extra)[1:-1] if extra else ""
            text.append(_LINE % tuple(numbers) + rates + rest + "}\n")
        try:
            with open(self.path, "a") as file:
                file.write("".join(text))
        except (OSError, ValueError):
            pass  # measurements are not worth a training


_recorder = None
_wrapped = []


def _timed(part, function):
    @functools.wraps(function)
    def wrapper(*arguments, **named):
        recorder = _recorder
        # Of nested calls the outermost counts; other threads do not hold the step up.
        if recorder is None or recorder.depth or threading.get_ident() != recorder.thread:
            return function(*arguments, **named)
        recorder.depth += 1
        began = time.perf_counter()
        try:
            return function(*arguments, **named)
        finally:
            recorder.depth -= 1
            recorder.add(part, time.perf_counter() - began)

    return wrapper


def _wrap(owner, name, part):
    function = getattr(owner, name, None)
    if function is not None:
        _wrapped.append((owner, name, function))
        setattr(owner, name, _timed(part, function))


def _note(owner, name, note, static=False):
    """Calls note(arguments) before the function, whatever it is given."""
    function = getattr(owner, name, None)
    if function is None:
        return

    @functools.wraps(function)
    def wrapper(*arguments, **named):
        if _recorder is not None:
            note(arguments)
        return function(*arguments, **named)

    _wrapped.append((owner, name, owner.__dict__.get(name, function)))
    setattr(owner, name, staticmethod(wrapper) if static else wrapper)


def _note_loader(arguments):
    if len(arguments) > 1:
        _recorder.facts["workers"] = int(getattr(arguments[1], "num_workers", 0))


def _note_autocast(arguments):
    context = arguments[0]
    if getattr(context, "_enabled", False):
        _recorder.facts["autocast_bits"] = _bits(getattr(context, "fast_dtype", None)) or 16


def _note_recompute(_):
    _recorder.recomputed += 1


def _bits(dtype):
    """32 of torch.float32; 16 of torch.bfloat16; None of what is no floating-point type."""
    name = str(dtype)
    digits = "".join(each for each in name if each.isdigit())
    return int(digits[:2]) if "float" in name and digits else None


def _note_parameters(groups):
    """Bits of the type that most parameters have; jit and torch.compile show in the types of modules."""
    counts = {}
    for group in groups:
        for parameter in group["params"]:
            bits = _bits(parameter.dtype)
            if bits:
                counts[bits] = counts.get(bits, 0) + parameter.numel()
    if counts:
        _recorder.facts["param_bits"] = max(counts, key=counts.get)
        _recorder.facts.setdefault("autocast_bits", 0)


def _wrap_torch():
    import torch
    import torch.distributed as dist
    from torch.utils.data import dataloader

    _wrap(dataloader._BaseDataLoaderIter, "__next__", "wait_s")
    _note(dataloader._BaseDataLoaderIter, "__init__", _note_loader)
    _note(torch.autocast, "__enter__", _note_autocast)
    import torch.utils.checkpoint as recompute
    _note(recompute.CheckpointFunction, "backward", _note_recompute, static=True)
    _note(recompute, "_checkpoint_without_reentrant", _note_recompute)
    # Since some 2.x the generator only passes on to its _impl, which checkpoint() calls itself: one of them, or it counts twice.
    generator = "_checkpoint_without_reentrant_generator"
    _note(recompute, generator + "_impl" if hasattr(recompute, generator + "_impl") else generator, _note_recompute)
    _wrap(torch, "save", "checkpoint_s")
    if dist.is_available():
        for name in ("all_reduce", "all_gather", "all_gather_into_tensor", "all_gather_object", "broadcast", "reduce",
                     "reduce_scatter", "reduce_scatter_tensor", "all_to_all", "all_to_all_single", "barrier", "send", "recv"):
            _wrap(dist, name, "allreduce_s")


def attach(*objects, samples=None, tokens=None, first_step=0):
    """Every optimizer among the objects ends a step; a DistributedDataParallel among them tells of its all-reduce.
    samples and tokens: of one step of this rank. first_step: steps that were done before, after a resume."""
    global _recorder
    path = os.environ.get("STOKER_METRICS_FILE")
    if not path:
        return None
    if _recorder is None:
        _recorder = _Recorder(path, int(os.environ.get("RANK", "0") or 0))
        _wrap_torch()
    _recorder.number = max(_recorder.number, first_step)
    for name, value in (("samples", samples), ("tokens", tokens)):
        if value is not None:
            _recorder.extra[name] = value
    _recorder.facts.setdefault("compiled", 0)
    for each in objects:
        inner = getattr(each, "module", each)
        if type(inner).__name__ in ("OptimizedModule", "RecursiveScriptModule", "TopLevelTracedModule"):
            _recorder.facts["compiled"] = 1
        if hasattr(each, "param_groups"):
            _note_parameters(each.param_groups)
        if hasattr(each, "register_comm_hook") and hasattr(each, "process_group"):
            _attach_ddp(each)
        elif hasattr(each, "step") and hasattr(each, "param_groups"):
            _attach_optimizer(each)
    _recorder.began, _recorder.cpu = time.perf_counter(), time.process_time()
    return _recorder


def _attach_optimizer(optimizer):
    if getattr(optimizer, "_stoker_attached", False):
        return
    optimizer._stoker_attached = True
    inner = optimizer.step

    @functools.wraps(inner)
    def step(*arguments, **named):
        result = inner(*arguments, **named)
        if _recorder is not None:
            _recorder.end_step()
        return result

    optimizer.step = step


def _attach_ddp(model):
    """DDP reduces behind the backward pass: what shows is from the start of the last bucket to its end. On GPUs the clock
    of the host says nothing about that, so there it is left out."""
    import torch.distributed as dist

    # Before each forward pass it broadcasts buffers such as those of batch norm: there a rank waits for one that is late.
    _wrap(model, "_sync_buffers", "allreduce_s")
    last = [0.0, 0.0]  # when the all-reduce of the last bucket began and ended

    def hook(_, bucket):
        buffer = bucket.buffer().div_(dist.get_world_size(model.process_group))
        watched = bucket.is_last() and not buffer.is_cuda
        if watched:
            last[0], last[1] = time.perf_counter(), 0.0

        def done(future):
            if watched:
                last[1] = time.perf_counter()
            return future.value()[0]

        return model.process_group.allreduce([buffer]).get_future().then(done)

    def end_of_step():
        if last[1] > last[0] > 0 and _recorder is not None:
            _recorder.add("allreduce_s", last[1] - last[0])
        last[0] = last[1] = 0.0

    try:
        model.register_comm_hook(None, hook)
        _recorder.before_end.append(end_of_step)
    except RuntimeError:
        pass  # the training has a hook of its own, or has begun


def input(loader):
    """Iterates over anything and counts the time until each next item as waiting for input."""
    iterator, end = iter(loader), object()
    following = _timed("wait_s", lambda: next(iterator, end))
    while (item := following()) is not end:
        yield item


class step:
    """One step as a context; samples and tokens give rates."""

    def __init__(self, **extra):
        self.extra = extra
        if _recorder is None:
            attach()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if _recorder is not None and kind is None:
            _recorder.end_step(**self.extra)
        return False


def detach():
    """Writes what is there and takes the wrappers away again."""
    global _recorder
    if _recorder is not None:
        _recorder.flush()
        gc.callbacks.remove(_recorder.note_collection)
        atexit.unregister(_recorder.flush)
    _recorder = None
    while _wrapped:
        owner, name, function = _wrapped.pop()
        setattr(owner, name, function)

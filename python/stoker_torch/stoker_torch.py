"""Tells Stoker how long the steps of a PyTorch training take, and where the time goes. Longer than 500 lines because it is one file, to be
copied where nothing can be installed.

    import stoker_torch
    stoker_torch.attach(optimizer)                  # before the first step; a step ends with optimizer.step()
    for batch in stoker_torch.input(loader): ...    # optional: counts the time spent waiting for input

    with stoker_torch.checkpoint():                 # optional: around whatever writes one; torch.save and the like are seen
        manager.save(step)

    stoker_torch.stepped(samples=32)                # at the end of a step, in any callback of any framework

    stoker_torch.profile(model, sample)             # once: the operations of one step, for a plan of any model

or, around a loop that is not made of optimizer steps:

    with stoker_torch.step(samples=32, tokens=32 * 1024): ...

Without STOKER_METRICS_FILE nothing is wrapped and nothing is written. With it, every rank appends one line of JSON per
step: rank 0 to that file, rank N to metrics.rank-N.jsonl beside it:

    {"step": 12, "time": 1700000000.1, "step_s": 0.21, "wait_s": 0.01, "allreduce_s": 0.05, "checkpoint_s": 0, "compute_s": 0.15, ...}

wait_s        in next() of a torch DataLoader, or of input()
allreduce_s   in calls of torch.distributed that wait (not in those with async_op), and in DistributedDataParallel the
              all-reduce of the last bucket of gradients, which nothing hides, and the broadcast of buffers
checkpoint_s  in torch.save, safetensors, torch.distributed.checkpoint and checkpoint(), with what follows it in the same
              step: fsync, renaming, copying
sync_s        in os.fsync beside checkpoints, where there was any; a part of compute_s
compute_s     the rest
cpu_s         processor time of this process beside checkpoints, for telling "slow" from "not running"
queued_s      in which the thread of the steps was ready and had no processor, by the kernel's account; left out where it keeps none
gc_s          in Python's garbage collector, where it ran; a part of whatever it interrupted
Every few seconds a line also says how it computes, which `stoker explain` holds against the plan:
param_bits    bits of most parameters; autocast_bits: of torch.autocast when it is on, else 0
torch_threads computing threads of PyTorch; openblas_threads, mkl_threads, blis_threads, numexpr_threads: of libraries beside it;
              interop_threads: of PyTorch's pool for operators side by side; workers: of the DataLoader
recomputed    parts of the model that torch.utils.checkpoint computes again in a step
recompute_s   what their first pass took, on processors: the second takes as long (a device computes while nobody waits)
compiled      1 when torch.compile or torch.jit made the model's code
"""
import atexit
import contextlib
import ctypes
import functools
import gc
import inspect
import json
import os
import shutil
import sys
import threading
import time
import types

__version__ = "0.1.0"
_FLUSH_S = 0.5  # lines are written together: a slow disk must not slow the steps
_FACTS_S = 3.0  # between lines that say how it computes
# json.dumps would take four times as long.
_LINE = ('{"step": %d, "time": %.3f, "step_s": %.6f, "wait_s": %.6f, "allreduce_s": %.6f, "checkpoint_s": %.6f, '
         '"compute_s": %.6f, "cpu_s": %.6f')


class _Queue:
    """How long this thread has waited for a processor since it began."""

    def __init__(self):
        try:
            self.file = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self.file = None
        if self.seconds() is None:
            self.close()

    def seconds(self):
        if self.file is None:
            return None
        try:
            return int(os.pread(self.file, 80, 0).split()[1]) * 1e-9
        except (OSError, ValueError, IndexError):
            return None

    def close(self):
        if self.file is not None:
            os.close(self.file)
        self.file = None


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
        self.facts, self.told, self.recomputed, self.first_pass_s = {}, None, 0, 0.0
        self.began = self.flushed = time.perf_counter()
        self.cpu = time.process_time()
        self.queue = _Queue()
        self.queued = self.queue.seconds()
        self.collecting = self.collected = self.synced = 0.0
        gc.callbacks.append(self.note_collection)
        atexit.register(self.flush)

    def note_collection(self, phase, _):
        if phase == "start":
            self.collecting = time.perf_counter()
        elif self.collecting:
            self.collected += time.perf_counter() - self.collecting
            self.collecting = 0.0

    def begin(self, part):
        """What a checkpoint computes is no part of the step either; for the rest the other clocks are not read."""
        if part != "checkpoint_s":
            return time.perf_counter(), None, None
        return time.perf_counter(), time.process_time(), self.queue.seconds()

    def end(self, part, began):
        self.parts[part] += time.perf_counter() - began[0]
        if part == "checkpoint_s":
            self.cpu += time.process_time() - began[1]
            if self.queued is not None:
                self.queued += self.queue.seconds() - began[2]

    def end_step(self, **extra):
        for call in self.before_end:
            call()
        now, cpu, queued = time.perf_counter(), time.process_time(), self.queue.seconds()
        self.number += 1
        parts, whole = self.parts, now - self.began
        # A checkpoint is not a part of the step: the plan's step time has none either.
        step = max(whole - parts["checkpoint_s"], 1e-9)
        compute = max(0.0, step - parts["wait_s"] - parts["allreduce_s"])
        extra = dict(self.extra, **extra) if extra else self.extra
        if self.told is None or now - self.told > _FACTS_S:
            self.told, extra = now, dict(extra, **self.tell_facts())
        self.recomputed, self.first_pass_s = 0, 0.0
        # One that took no time worth telling is left out, and a step without one beside steps with one is told as 0.
        if self.collected > 1e-4 or "gc_s" in self.extra:
            self.extra["gc_s"] = 0.0
            extra = dict(extra, gc_s=round(self.collected, 6))
        self.collected = 0.0
        if self.synced > 1e-5 or "sync_s" in self.extra:
            self.extra["sync_s"] = 0.0
            extra = dict(extra, sync_s=round(self.synced, 6))
        self.synced = 0.0
        self.lines.append((self.number, time.time(), step, parts["wait_s"], parts["allreduce_s"], parts["checkpoint_s"],
                           compute, cpu - self.cpu, None if queued is None else max(0.0, queued - self.queued), extra))
        for name in parts:
            parts[name] = 0.0
        self.began, self.cpu, self.queued = now, cpu, queued
        if now - self.flushed > _FLUSH_S:
            self.flush()

    def tell_facts(self):
        torch = sys.modules.get("torch")
        if torch is None:  # another framework's loop, which ends its steps itself
            return dict(self.facts, **_pool_threads())
        if not _has_torch:  # it was loaded after attach()
            _wrap_torch()
        facts = dict(self.facts, torch_threads=torch.get_num_threads(), interop_threads=torch.get_num_interop_threads(),
                     recomputed=self.recomputed, **_pool_threads())
        if self.first_pass_s > 0 and not torch.cuda.is_initialized():
            facts["recompute_s"] = round(self.first_pass_s, 6)
        dynamo = sys.modules.get("torch._dynamo.utils")
        if dynamo is not None and dynamo.counters["frames"].get("ok", 0) > 0:
            facts["compiled"] = 1
        return dict(facts, **_device_memory(torch))

    def flush(self):
        lines, self.lines, self.flushed = self.lines, [], time.perf_counter()
        if not lines:
            return
        text = []
        for *numbers, queued, extra in lines:
            rates = "".join(f', "{name}_per_s": {extra[name] / numbers[2]:.3f}' for name in ("samples", "tokens") if name in extra)
            rest = ", " + json.dumps(extra)[1:-1] if extra else ""
            waited = "" if queued is None else ', "queued_s": %.6f' % queued
            text.append(_LINE % tuple(numbers) + waited + rates + rest + "}\n")
        try:
            with open(self.path, "a") as file:
                file.write("".join(text))
        except (OSError, ValueError):
            pass  # measurements are not worth a training


def _device_memory(torch):
    """What the caching allocator holds of the GPU, has used at most, and how often it was short and freed its cache."""
    try:
        if not torch.cuda.is_initialized():
            return {}
        held = torch.cuda.memory_stats()
        return {"cuda_reserved": held.get("reserved_bytes.all.current", 0), "cuda_peak": held.get("allocated_bytes.all.peak", 0),
                "cuda_retries": held.get("num_alloc_retries", 0), "cuda_size": torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory}
    except (AttributeError, RuntimeError, AssertionError):
        return {}  # another backend, or a driver that is gone: no reason to end a training


# Libraries with pools of their own, by what their file is called and what tells their width.
_POOLS = (("openblas", "openblas_threads", ("openblas_get_num_threads", "openblas_get_num_threads64_", "scipy_openblas_get_num_threads64_")),
          ("mkl_rt", "mkl_threads", ("MKL_Get_Max_Threads",)), ("blis", "blis_threads", ("bli_thread_get_num_threads",)))
_pools = None  # functions by name; looked for again while none was found: libraries are loaded late


def _pool_threads():
    """Threads of each library that is loaded and says so; nothing where none is."""
    global _pools
    if not _pools:
        _pools = {}
        try:
            with open("/proc/self/maps") as file:
                paths = {line.split(None, 5)[5].strip() for line in file if ".so" in line}
        except (OSError, IndexError):
            paths = ()
        for path in paths:
            for word, name, functions in _POOLS:
                # Debian's OpenBLAS is called libblas.so.3 as well: the same library, found by either name.
                if word in os.path.basename(path):
                    try:
                        library = ctypes.CDLL(path)
                    except OSError:
                        continue
                    for function in functions:
                        if hasattr(library, function):
                            _pools.setdefault(name, []).append(getattr(library, function))
                            break
    # A process may hold several of one kind, such as numpy's own beside the system's: the widest counts.
    widths = {name: max(int(function()) for function in functions) for name, functions in _pools.items()}
    numexpr = sys.modules.get("numexpr")
    if numexpr is not None and hasattr(numexpr, "get_num_threads"):
        widths["numexpr_threads"] = int(numexpr.get_num_threads())
    return widths


_recorder = None
_wrapped, _has_torch = [], False


def _timed(part, function):
    @functools.wraps(function)
    def wrapper(*arguments, **named):
        recorder = _recorder
        # Of nested calls the outermost counts; other threads do not hold the step up.
        if recorder is None or recorder.depth or threading.get_ident() != recorder.thread:
            return function(*arguments, **named)
        recorder.depth += 1
        began = recorder.begin(part)
        try:
            return function(*arguments, **named)
        finally:
            recorder.depth -= 1
            recorder.end(part, began)

    return wrapper


def _timed_after_checkpoint(function, beside=None):
    """What makes a checkpoint lasting counts as one where the step has written one; else it is told as `beside`."""
    @functools.wraps(function)
    def wrapper(*arguments, **named):
        recorder = _recorder
        if recorder is None or recorder.depth or threading.get_ident() != recorder.thread:
            return function(*arguments, **named)
        part = "checkpoint_s" if recorder.parts["checkpoint_s"] > 0 else beside
        if part is None:
            return function(*arguments, **named)
        recorder.depth += 1
        began = recorder.begin(part)
        try:
            return function(*arguments, **named)
        finally:
            recorder.depth -= 1
            if part == "checkpoint_s":
                recorder.end(part, began)
            else:
                recorder.synced += time.perf_counter() - began[0]

    return wrapper


def _wrap_after(owner, name, beside=None):
    function = getattr(owner, name, None)
    if function is not None:
        _wrapped.append((owner, name, function))
        setattr(owner, name, _timed_after_checkpoint(function, beside))


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


def _time_first_pass(owner, name, static=False):
    """Of what torch.utils.checkpoint computes again: a function that computes it, or the generator that is begun before it and goes on after."""
    function = getattr(owner, name, None)
    if function is None:
        return

    def took(began):
        if _recorder is not None:
            _recorder.first_pass_s += time.perf_counter() - began

    if inspect.isgeneratorfunction(inspect.unwrap(function)):
        @functools.wraps(function)
        def wrapper(*arguments, **named):
            generator = function(*arguments, **named)
            for each in generator:
                began = time.perf_counter()
                yield each
                took(began)
    else:
        @functools.wraps(function)
        def wrapper(*arguments, **named):
            began = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                took(began)

    _wrapped.append((owner, name, owner.__dict__.get(name, function)))
    setattr(owner, name, staticmethod(wrapper) if static else wrapper)


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


def _wrap_checkpoints(libraries):
    """Others' checkpoints, where their libraries are loaded: importing them is not for us to do."""
    for module, *names in libraries:
        for name in names if module in sys.modules else ():
            _wrap(sys.modules[module], name, "checkpoint_s")


def _wrap_files():
    """What writes checkpoints and logs, with PyTorch or without it."""
    _wrap_checkpoints((("safetensors.numpy", "save_file"), ("joblib", "dump")))
    _wrap_after(os, "fsync", "sync_s")
    _wrap_after(os, "fdatasync", "sync_s")
    for owner, names in ((os, ("replace", "rename", "sync")), (shutil, ("move", "copyfile", "copytree", "rmtree"))):
        for name in names:
            _wrap_after(owner, name)


def _wrap_torch():
    global _has_torch
    import torch
    import torch.distributed as dist
    from torch.utils.data import dataloader

    _has_torch = True
    _wrap(dataloader._BaseDataLoaderIter, "__next__", "wait_s")
    _note(dataloader._BaseDataLoaderIter, "__init__", _note_loader)
    _note(torch.autocast, "__enter__", _note_autocast)
    import torch.utils.checkpoint as recompute
    _note(recompute.CheckpointFunction, "backward", _note_recompute, static=True)
    _time_first_pass(recompute.CheckpointFunction, "forward", static=True)
    _note(recompute, "_checkpoint_without_reentrant", _note_recompute)
    _time_first_pass(recompute, "_checkpoint_without_reentrant")
    # Since some 2.x the generator only passes on to its _impl, which checkpoint() calls itself: one of them, or it counts twice.
    generator = "_checkpoint_without_reentrant_generator"
    generator += "_impl" if hasattr(recompute, generator + "_impl") else ""
    _note(recompute, generator, _note_recompute)
    _time_first_pass(recompute, generator)
    _wrap(torch, "save", "checkpoint_s")
    _wrap(torch.jit, "save", "checkpoint_s")
    _wrap_checkpoints((("safetensors.torch", "save_file", "save_model"), ("torch.distributed.checkpoint", "save", "save_state_dict")))
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
        _wrap_files()
        if "torch" in sys.modules:
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
    def step(self, *arguments, **named):
        result = inner(*arguments, **named)
        if _recorder is not None:
            _recorder.end_step()
        return result

    # A method and not a function: schedulers of the learning rate that are made later ask whose it is.
    optimizer.step = types.MethodType(step, optimizer)


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
            _recorder.parts["allreduce_s"] += last[1] - last[0]
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


@contextlib.contextmanager
def checkpoint():
    """Around whatever writes a checkpoint: counted as checkpoint_s, and no part of a step. Also a decorator."""
    recorder = _recorder
    if recorder is None or recorder.depth or threading.get_ident() != recorder.thread:
        yield
        return
    recorder.depth += 1
    began = recorder.begin("checkpoint_s")
    try:
        yield
    finally:
        recorder.depth -= 1
        recorder.end("checkpoint_s", began)


def profile(model, sample, path="profile.json", samples=None):
    """Counts the operations of one forward pass and writes them for a plan: model: {config: profile.json}. `sample` is what the
    model is called with: a tensor, or a tuple, list or dict of them, one batch; samples: how many it holds (default: the length
    of its first tensor). Nothing is trained; buffers such as running means and the random state are as before."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    work = {"product": 0, "batched": 0, "convolution": 0}
    counted = [0]

    def products(name, inputs):
        if name in ("mm", "bmm"):
            return 2 * inputs[0].numel() * inputs[1].shape[-1]
        if name in ("addmm", "baddbmm"):
            return 2 * inputs[1].numel() * inputs[2].shape[-1]
        return 0

    class Count(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), named=None):
            output = function(*arguments, **(named or {}))
            name = function.overloadpacket.__name__ if hasattr(function, "overloadpacket") else str(function)
            counted[0] += 1
            work["batched" if "bmm" in name else "product"] += products(name, arguments)
            if "convolution" in name and torch.is_tensor(output):
                weight, turned = arguments[1], len(arguments) > 6 and arguments[6] is True
                # Each value that is written is a product over a filter; of a transposed one each value that is read.
                at = arguments[0] if turned else output
                work["convolution"] += 2 * at.numel() * weight[0].numel()
            return output

    tensors = sample if isinstance(sample, (tuple, list)) else list(sample.values()) if isinstance(sample, dict) else (sample,)
    if samples is None:
        samples = next((len(each) for each in tensors if torch.is_tensor(each) and each.dim() > 0), 0)
    if samples < 1:
        raise ValueError("profile() cannot see how many samples that is: say samples=")
    parameters = {id(each): each for each in model.parameters()}
    if not parameters:
        raise ValueError("profile() was given a model without parameters")
    own = {each.data_ptr() for each in parameters.values()}
    kept, kept_bytes = set(), [0]

    def note(tensor):
        key = tensor.data_ptr()
        if key not in own and key not in kept:
            kept.add(key)
            kept_bytes[0] += tensor.numel() * 2  # at 16 bit, as a plan has it
        return tensor

    buffers = [(each, each.clone()) for each in model.buffers()]
    training = model.training
    model.train()
    try:
        with torch.random.fork_rng(), torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(note, lambda each: each), Count():
            if isinstance(sample, dict):
                result = model(**sample)
            else:
                result = model(*tensors) if isinstance(sample, (tuple, list)) else model(sample)
            del result
    finally:
        model.train(training)
        with torch.no_grad():
            for each, before in buffers:
                each.copy_(before)
    recurrent = any(isinstance(each, torch.nn.RNNBase) for each in model.modules())
    flops = sum(work.values())
    # Products of two activations are what attention is made of.
    network = "rnn" if recurrent else "cnn" if 2 * work["convolution"] > flops else "transformer" if work["batched"] > 0 else "mlp"
    found = {"stoker_profile": 1, "network": network, "parameters": sum(each.numel() for each in parameters.values()),
             "forward_flops": flops / samples, "activation_bytes": kept_bytes[0] / samples,
             "operators": counted[0], "samples": samples, "sample_unit": "sample", "framework": "torch " + torch.__version__}
    if not found["forward_flops"] > 0:
        raise ValueError("profile() saw no product and no convolution in the forward pass: is it the model that is trained?")
    if path and int(os.environ.get("RANK", "0") or 0) == 0:
        with open(path, "w") as file:
            json.dump(found, file, indent=1)
            file.write("\n")
    return found


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


def stepped(**extra):
    """A step has ended: for loops and callbacks that are neither optimizer steps nor a context. samples and tokens give rates."""
    if _recorder is None:
        attach()
    if _recorder is not None:
        _recorder.end_step(**extra)


def detach():
    """Writes what is there and takes the wrappers away again."""
    global _recorder, _has_torch
    if _recorder is not None:
        _recorder.flush()
        gc.callbacks.remove(_recorder.note_collection)
        atexit.unregister(_recorder.flush)
    _recorder, _has_torch = None, False
    while _wrapped:
        owner, name, function = _wrapped.pop()
        setattr(owner, name, function)

"""The training that bench/explain makes healthy and sick: the model of examples/train-tiny under DistributedDataParallel
with a DataLoader and the hook, for so many seconds, with a switch for each fault. A switch that is not given changes nothing."""
import os

RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
if os.environ.get("MASTER_ADDR") in ("127.0.0.1", "localhost"):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
import argparse
import contextlib
import ctypes
import datetime
import random
import signal
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path += [os.path.join(ROOT, "examples", "train-tiny"), os.path.join(ROOT, "python", "stoker_torch")]

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--seconds", type=float, default=12)
for name, value in dict(dim=128, layers=4, heads=4, ctx=128, batch=8).items():
    parser.add_argument("--" + name, type=int, default=value)
parser.add_argument("--threads", type=int, default=0, help="torch.set_num_threads")
parser.add_argument("--read-ms", type=float, default=0, help="a sample takes so long to arrive: a slow store")
parser.add_argument("--decode-ms", type=float, default=0, help="a sample takes so much computing")
parser.add_argument("--files", type=int, default=0, help="a sample is read from so many tiny files")
parser.add_argument("--starved-rank", type=int, default=-1, help="only this rank's loader is slow; -1: all")
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--pin", default="", help="processors of the ranks: '0,1': each its own; '0': all the same")
parser.add_argument("--map-mb", type=int, default=0, help="samples come from random places of a mapped file")
parser.add_argument("--ballast-mb", type=int, default=0, help="memory that is held and used")
parser.add_argument("--memory-mb", type=int, default=0, help="limit of a control group of the site's, which leaves swap")
parser.add_argument("--checkpoint-every", type=int, default=0)
parser.add_argument("--checkpoint-mb", type=int, default=4)
parser.add_argument("--checkpoint-to", default="", help="folder; else STOKER_CHECKPOINT_DIR or the artefacts")
parser.add_argument("--disk-mb-s", type=float, default=0, help="what blkio lets this process write a second")
parser.add_argument("--second-node", default="", help="file with the pid whose network namespace rank 1 enters, as if on another node")
parser.add_argument("--main-address", default="", help="of rank 0, then")
parser.add_argument("--interface", default="", help="what the program sets itself, whatever its environment says")
parser.add_argument("--bf16", action="store_true")
parser.add_argument("--recompute", action="store_true")
parser.add_argument("--slow-first", type=int, default=0, help="so many first steps compute --slow-first-ms longer")
parser.add_argument("--slow-first-ms", type=float, default=400)
parser.add_argument("--hang-at", type=int, default=0)
parser.add_argument("--hang", choices=["sleep", "stop"], default="sleep")
options = parser.parse_args()
if options.second_node:
    os.environ["MASTER_ADDR"] = options.main_address
    if RANK == 1:
        with open(options.second_node) as file:
            namespace = os.open(f"/proc/{file.read().strip()}/ns/net", os.O_RDONLY)
        if ctypes.CDLL(None, use_errno=True).setns(namespace, 0) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        os.close(namespace)
if options.interface:
    os.environ["GLOO_SOCKET_IFNAME"] = options.interface
if options.pin:
    cpus = [int(each) for each in options.pin.split(",")]
    os.sched_setaffinity(0, {cpus[RANK % len(cpus)]})

def limit_memory():
    folder = f"/sys/fs/cgroup/memory/stoker-bench-{os.getpid()}"
    os.makedirs(folder, exist_ok=True)
    with open(folder + "/memory.limit_in_bytes", "w") as file:
        file.write(str(options.memory_mb << 20))
    with open(folder + "/cgroup.procs", "w") as file:
        file.write(str(os.getpid()))


if options.memory_mb:  # before there is any: what a process has stays with the group that it was charged to
    limit_memory()
import torch
import torch.distributed as dist
import torch.utils.checkpoint
from torch.utils.data import DataLoader, Dataset

import model as models
import stoker_torch


def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class Samples(Dataset):
    def __init__(self, text):
        self.tokens, self.folder, self.map = models.encode(text), None, None
        mine = options.starved_rank in (-1, RANK)
        self.read_s, self.decode_s = (options.read_ms / 1e3, options.decode_ms / 1e3) if mine else (0, 0)
        work = os.environ.get("STOKER_ARTIFACT_DIR", "/tmp")
        if options.files and mine:
            self.folder = os.path.join(work, f"files-{RANK}")
            os.makedirs(self.folder, exist_ok=True)
            piece = text[:max(1, options.ctx // options.files)]
            for number in range(2000):
                with open(os.path.join(self.folder, f"{number:05d}.txt"), "wb") as file:
                    file.write(piece)
        if options.map_mb:
            path = os.path.join(work, f"map-{RANK}.bin")
            if not os.path.exists(path):
                with open(path, "wb") as file:
                    for _ in range(options.map_mb):
                        file.write(os.urandom(1 << 20))
                    file.flush()
                    os.fsync(file.fileno())
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            self.map = torch.from_file(path, size=options.map_mb << 20, dtype=torch.uint8)

    def __len__(self):
        return 10**9

    def __getitem__(self, index):
        if self.read_s:
            time.sleep(self.read_s)
        if self.decode_s:
            burn(self.decode_s)
        if self.folder:
            for number in range(options.files):
                with open(os.path.join(self.folder, f"{random.randrange(2000):05d}.txt"), "rb") as file:
                    file.read()
        if self.map is not None:
            # Pages as a shuffled data set touches them.
            places = torch.randint(len(self.map) // 4096, (256,)) * 4096
            self.map[places].sum()
        start = (index * 7919 + RANK * 104729) % (len(self.tokens) - options.ctx - 1)
        return self.tokens[start:start + options.ctx + 1]


class Order(torch.utils.data.Sampler):
    def __init__(self):
        pass

    def __iter__(self):
        return iter(range(10**9))


class Recomputing(torch.nn.Module):
    def __init__(self, block):
        super().__init__()
        self.block = block

    def forward(self, x, *rest):
        return torch.utils.checkpoint.checkpoint(self.block, x, *rest, use_reentrant=False)


def limit_disk():
    folder = f"/sys/fs/cgroup/blkio/stoker-bench-{os.getpid()}"
    os.makedirs(folder, exist_ok=True)
    device = os.stat(checkpoint_folder()).st_dev
    with open(folder + "/blkio.throttle.write_bps_device", "w") as file:
        file.write(f"{os.major(device)}:{os.minor(device)} {int(options.disk_mb_s * 1e6)}")
    with open(folder + "/cgroup.procs", "w") as file:
        file.write(str(os.getpid()))


def checkpoint_folder():
    return options.checkpoint_to or os.environ.get("STOKER_CHECKPOINT_DIR") or os.environ.get("STOKER_ARTIFACT_DIR") or "/tmp"


def write_checkpoint(extra):
    """To the disk, as a checkpoint has to be."""
    path = os.path.join(checkpoint_folder(), f"bench-{RANK}.pt")
    try:
        with open(path, "wb") as file:
            torch.save({"extra": extra}, _Synced(file))
    except OSError as problem:
        print(f"checkpoint lost: {problem}", flush=True)


class _Synced:
    """torch.save ends with flush(): it is the disk that is measured, not the page cache."""

    def __init__(self, file):
        self.file = file

    def write(self, data):
        return self.file.write(data)

    def flush(self):
        self.file.flush()
        os.fsync(self.file.fileno())

    def __getattr__(self, name):
        return getattr(self.file, name)


def main():
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    with open(os.path.join(ROOT, "examples", "train-tiny", "corpus.txt"), "rb") as file:
        samples = Samples(file.read())
    model = models.Model(options.dim, options.layers, options.heads, options.ctx, 1)
    if options.recompute:
        model.blocks = torch.nn.ModuleList(Recomputing(block) for block in model.blocks)
    ddp = model
    if WORLD > 1:
        dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=600))
        ddp = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(samples, batch_size=options.batch, sampler=Order(), num_workers=options.workers,
                        **(dict(prefetch_factor=2, persistent_workers=True) if options.workers else {}))
    ballast = torch.ones(options.ballast_mb << 18) if options.ballast_mb else None
    extra = torch.rand(options.checkpoint_mb << 18) if options.checkpoint_every else None
    if options.disk_mb_s:
        limit_disk()
    stoker_torch.attach(ddp, optimizer, samples=options.batch, tokens=options.batch * options.ctx)
    context = torch.autocast("cpu", dtype=torch.bfloat16) if options.bf16 else contextlib.nullcontext()
    end, done = time.monotonic() + options.seconds, torch.zeros(1)
    for number, batch in enumerate(loader, 1):
        if options.hang_at and number == options.hang_at and RANK == WORLD - 1:
            if options.hang == "stop":
                stoker_torch._recorder.flush()
                os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(600)
        optimizer.zero_grad(set_to_none=False)
        with context:
            loss = ddp(batch[:, :-1], batch[:, 1:])
        loss.backward()
        if number <= options.slow_first:
            burn(options.slow_first_ms / 1e3)
        if ballast is not None:
            ballast[::1024].add_(1)
        optimizer.step()
        if options.checkpoint_every and number % options.checkpoint_every == 0 and RANK == 0:
            write_checkpoint(extra)
        if number % 5 == 0 or options.batch > 64:
            done[0] = float(time.monotonic() > end)
            if WORLD > 1:
                dist.all_reduce(done)
            if done[0] > 0:
                break
        if number % 50 == 0 and RANK == 0:
            print(f"step {number} loss {loss.item():.3f}", flush=True)
    stoker_torch.detach()
    if RANK == 0:
        print(f"done: {number} steps", flush=True)
    sys.stdout.flush()
    os._exit(0)  # loader workers and gloo threads hold nobody up


main()

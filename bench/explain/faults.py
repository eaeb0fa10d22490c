"""The faults of bench/explain, each with sizes on which thresholds were chosen (TRAINING) and others on which the figures are
reported (HELD_OUT). A case is what is said to the training, to the run section and to what stands beside it; `first` names
the causes that are right as the first, `twin` the healthy run that is otherwise the same."""
import dataclasses
import os

CPUS = os.cpu_count() or 1


@dataclasses.dataclass
class Case:
    name: str
    first: tuple = ()
    words: tuple = ()         # to train.py
    run: dict = dataclasses.field(default_factory=dict)     # over the run section
    plan: dict = dataclasses.field(default_factory=dict)    # over the workload
    burners: tuple = ()       # (processor or None, share of the time, nice)
    link_mbit: float = 0      # of loopback in a network namespace of its own
    namespace: bool = False
    nodes: bool = False       # two of them: rank 1 beyond fast0 and slow0, of which slow0 is the link
    tmpfs_mb: int = 0         # for checkpoints
    swap_mb: int = 0          # of a swap file beside the run
    cancel_after_s: float = 0  # a run that hangs
    needs: tuple = ()
    also: tuple = ()          # with two faults: what else must be named
    text: object = None       # the whole workload, of seconds and this case: where it is not train.py


def _threads(n):
    return {"environment": {"OMP_NUM_THREADS": n, "OPENBLAS_NUM_THREADS": n}}


ONE = {"environment": {"OMP_NUM_THREADS": 1, "OPENBLAS_NUM_THREADS": 1}, "cpus": 1}
FREE = dict(ONE, cpus=CPUS / 2)


def starved_slow(ms):
    return Case(f"starved, {ms} ms a sample", ("starved-input",), ("--read-ms", ms))


def starved_decode(ms):
    return Case(f"starved, {ms} ms of decoding", ("starved-input",), ("--decode-ms", ms))


def starved_files(n):
    return Case(f"starved, {n} tiny files a sample", ("starved-input",), ("--files", n))


def starved_workers(ms):
    return Case(f"starved, one worker, {ms} ms a sample", ("starved-input",), ("--read-ms", ms, "--workers", 1))


def starved_rank(ms):
    return Case(f"starved, rank 1 alone, {ms} ms", ("starved-input",), ("--read-ms", ms, "--starved-rank", 1))


def straggler(share, nice):
    return Case(f"straggler, {share:.0%} of its processor taken at nice {nice}", ("straggler",), ("--pin", "0,1"),
                burners=((1, share, nice),))


def quota(cpus):
    return Case(f"quota of {cpus} processors", ("cpu-limit",), run=dict(ONE, cpus=cpus))


def many_threads(n):
    return Case(f"{n} threads a rank", ("cpu-limit",), ("--threads", n), run=dict(FREE, **_threads(n)))


def few_threads(n):
    return Case(f"one thread where {n} processors were asked for", ("cpu-limit",), run=dict(ONE, cpus=n, ranks=1))


def affinity(pin):
    return Case(f"all ranks on processor {pin}", ("cpu-limit",), ("--pin", pin), run=FREE)


def neighbour(n, share):
    return Case(f"{n} neighbours at {share:.0%}", ("noisy-neighbour",), run=FREE, burners=((None, share, 0),) * n)


def memory(limit_mb):
    return Case(f"memory limit of {limit_mb} MiB", ("memory-pressure",), ("--map-mb", 256), run=dict(ONE, memory=f"{limit_mb}MiB"))


def swap(held_mb, limit_mb):
    return Case(f"{held_mb} MiB are held below a site's limit of {limit_mb} MiB, and swap", ("memory-pressure",),
                ("--ballast-mb", held_mb, "--memory-mb", limit_mb), run=ONE, swap_mb=512, needs=("swap",))


def checkpoints(every, mb):
    return Case(f"checkpoint of {mb} MB every {every} steps", ("checkpoint-stalls",),
                ("--checkpoint-every", every, "--checkpoint-mb", mb))


def slow_disk(mb_s):
    return Case(f"disk of {mb_s} MB/s", ("disk-slow",), ("--checkpoint-every", 20, "--checkpoint-mb", 8, "--disk-mb-s", mb_s))


def full_disk(mb):
    return Case(f"disk of {mb} MB is full", ("disk-full",), ("--checkpoint-every", 20, "--checkpoint-mb", 64), tmpfs_mb=mb,
                needs=("mount",))


def link(mbit):
    return Case(f"link of {mbit} Mbit/s", ("slow-link",), link_mbit=mbit, namespace=True, needs=("tc",))


# The second rank in a network namespace of its own, with two cables to the first: fast0 and slow0.
NODES = {"environment": {**ONE["environment"], "GLOO_SOCKET_IFNAME": "fast0"}, "cpus": 1}
SECOND = ("--second-node", "{node}", "--main-address", "10.77.0.1")


def interface(mbit):
    return Case(f"slow0 of {mbit} Mbit/s where fast0 was named", ("wrong-interface",), (*SECOND, "--interface", "slow0"), run=NODES,
                link_mbit=mbit, namespace=True, nodes=True, needs=("tc",))


def batch(n):
    return Case(f"batch of {n} where 8 was planned", ("batch-smaller",), ("--batch", n))


def precision():
    return Case("bf16 where fp32 was planned", ("other-precision",), ("--bf16",))


def recompute():
    return Case("recompute", ("recompute-on",), ("--recompute",))


def eager():
    return Case("eager where compiled was planned", ("eager-not-compiled",), plan={"compiled": True})


def warm_up(steps, ms):
    return Case(f"{steps} first steps {ms} ms longer", ("warm-up",), ("--slow-first", steps, "--slow-first-ms", ms))


def hang(how, at):
    return Case(f"rank 1 hangs at step {at} ({how})", ("hung-collective",), ("--hang-at", at, "--hang", how), cancel_after_s=30)


FAULTS = {
    "starved-slow": (starved_slow, [(3,), (8,)], [(2,), (5,), (12,), (20,), (1.5,)]),
    "starved-decode": (starved_decode, [(3,)], [(2,), (4,), (7,), (10,), (1.5,)]),
    "starved-files": (starved_files, [(250,)], [(150,), (200,), (300,), (400,), (180,)]),
    "starved-workers": (starved_workers, [(30,)], [(20,), (25,), (40,), (50,), (60,)]),
    "starved-rank": (starved_rank, [(5,)], [(3,), (4,), (8,), (10,), (15,)]),
    "straggler": (straggler, [(1.0, 0), (0.5, 0)], [(0.7, 0), (0.9, 0), (1.0, 3), (1.0, -3), (0.6, -5)]),
    "quota": (quota, [(0.5,)], [(0.7,), (0.6,), (0.4,), (0.3,), (0.8,)]),
    "many-threads": (many_threads, [(8,)], [(4,), (6,), (12,), (16,), (3,)]),
    "few-threads": (few_threads, [(CPUS,)], [(CPUS,)] * 5),
    "affinity": (affinity, [(0,)], [(1,), (0,), (1,), (0,), (1,)]),
    "neighbour": (neighbour, [(2, 1.0)], [(1, 1.0), (3, 1.0), (4, 1.0), (2, 0.7), (6, 1.0)]),
    "memory": (memory, [(460,)], [(480,), (440,), (500,), (450,), (470,)]),
    "swap": (swap, [(256, 420)], [(256, 425), (192, 360), (320, 486), (384, 550), (128, 296)]),
    "checkpoints": (checkpoints, [(10, 64)], [(10, 100), (20, 240), (5, 60), (15, 200), (8, 120)]),
    "slow-disk": (slow_disk, [(10,)], [(5,), (8,), (15,), (20,), (12,)]),
    "full-disk": (full_disk, [(48,)], [(20,), (32,), (60,), (40,), (50,)]),
    "link": (link, [(400,)], [(100,), (200,), (300,), (600,), (150,)]),
    "interface": (interface, [(300,)], [(100,), (200,), (400,), (600,), (1000,)]),
    "batch": (batch, [(4,)], [(2,), (6,), (5,), (7,), (1,)]),
    "precision": (precision, [()], [()] * 5),
    "recompute": (recompute, [()], [()] * 5),
    "eager": (eager, [()], [()] * 5),
    "warm-up": (warm_up, [(5, 600)], [(3, 800), (8, 400), (10, 300), (4, 1000), (6, 500)]),
    "hang": (hang, [("sleep", 30)], [("stop", 30), ("sleep", 20), ("stop", 50), ("sleep", 60), ("stop", 25)]),
}
# The same without the fault.
TWINS = {
    "plain": Case("healthy"),
    "pinned": Case("healthy, a processor for each rank", words=("--pin", "0,1")),
    "free": Case("healthy, a share of the machine", run=FREE),
    "files": Case("healthy, one small file a sample", words=("--files", 1)),
    "worker": Case("healthy, one worker", words=("--workers", 1), run=FREE),
    "mapped": Case("healthy, a mapped file and room for it", words=("--map-mb", 256), run=dict(ONE, memory="1GiB")),
    "ballast": Case("healthy, memory that is held, and room for it", words=("--ballast-mb", 256), run=dict(ONE, memory="1GiB")),
    "checkpoints": Case("healthy, small checkpoints", words=("--checkpoint-every", 50, "--checkpoint-mb", 1)),
    "namespace": Case("healthy, loopback of its own", namespace=True, needs=("tc",)),
    "nodes": Case("healthy, two nodes", words=SECOND, run=NODES, namespace=True, nodes=True, needs=("tc",)),
    "named": Case("healthy, one node that names eth0", run=dict(ONE, environment={**ONE["environment"], "NCCL_SOCKET_IFNAME": "eth0"})),
    "alone": Case("healthy, one rank", run=dict(ONE, ranks=1)),
}
# Two at once: both must be named.
PAIRS = {
    "starved and checkpoints": Case("starved and checkpoints", ("starved-input", "checkpoint-stalls"),
                                    ("--read-ms", 5, "--checkpoint-every", 10, "--checkpoint-mb", 160)),
    "quota and starved": Case("quota and starved", ("cpu-limit", "starved-input"), ("--read-ms", 10), run=dict(ONE, cpus=0.5)),
    "link and starved": Case("link and starved", ("slow-link", "starved-input"), ("--read-ms", 6), link_mbit=200,
                             namespace=True, needs=("tc",)),
    "batch and starved": Case("batch and starved", ("batch-smaller", "starved-input"), ("--batch", 4, "--read-ms", 8)),
    "recompute and checkpoints": Case("recompute and checkpoints", ("recompute-on", "checkpoint-stalls"),
                                      ("--recompute", "--checkpoint-every", 10, "--checkpoint-mb", 160)),
    "straggler and link": Case("straggler and link", ("straggler", "slow-link"), ("--pin", "0,1"),
                               burners=((1, 1.0, 0),), link_mbit=500, namespace=True, needs=("tc",)),
}

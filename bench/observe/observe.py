#!/usr/bin/env python3
"""What observing costs, and what its store takes and answers.

    ./dev bench observe    or: python3 bench/observe/observe.py --stoker build/release/stoker [--only look,pairs,hook,store]

look   build/release/bench_observer: processor time of the observer's looks at ranks of 8 threads each, by number of ranks.
pairs  a PyTorch training started bare, and the same under `stoker run`, which observes it: interleaved, each pair in the
       other order than the one before. What is compared is the processor time of a step (on a machine that others use the
       clock says more about them) and the clock beside it; and what the observer's thread used meanwhile.
hook   the PyTorch hook alone: 8 ranks of a training in short pieces, with it and without it in turn, in the same processes.
store  build/release/bench_series writes a sample of runs x 8 ranks x a day, second by second, through the real store; what a
       run takes on disk is theirs (runs share nothing: half of the sample and all of it are told). The sample is copied until
       there are 1,000 runs, a server is started on that folder, and charts are asked for through its API.
"""
import argparse
import glob
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench", "run"))
from api import occupy, release  # noqa: E402
from bench import HZ, Report, Server, fail, quantile  # noqa: E402

PYTHON = "/usr/bin/python3"
RUNS, RANKS = 1000, 8


# --- looks -----------------------------------------------------------------------------------------------------------------

def looks(options, report):
    program = os.path.join(os.path.dirname(os.path.abspath(options.stoker)), "bench_observer")
    if not os.path.exists(program):
        return report.missing("look", f"{program} is not built")
    for ranks in (2, 8, 64):
        shares = []
        for _ in range(options.rounds):
            said = subprocess.run([program, "--ranks", str(ranks), "--seconds", "10"], capture_output=True, text=True, timeout=120)
            shares.append(float(said.stdout.split(" % of a core")[0].rsplit(" ", 1)[1]))
        # Of the step time of a rank that computes on a core of its own: a look a second.
        report.add(f"look_{ranks}_ranks", shares, "% of a core", ("<", 1), per_rank=statistics.median(shares) / ranks)


# --- pairs -----------------------------------------------------------------------------------------------------------------

def training(ranks, steps):
    return [PYTHON, os.path.join(ROOT, "examples/train-tiny/train.py"), "--dim", "128", "--layers", "3", "--heads", "4", "--ctx",
            "64", "--batch", str(4 * ranks), "--steps", str(steps), "--report", "1000"]


def steps_of(path, ranks):
    """Median step time and processor time of a step over all ranks, without the first ones, which allocate."""
    step_s, cpu_s = [], []
    for rank in range(ranks):
        name = path if rank == 0 else path.replace(".jsonl", f".rank-{rank}.jsonl")
        lines = [json.loads(line) for line in open(name)][5:]
        step_s.append(statistics.median(line["step_s"] for line in lines))
        cpu_s.append(statistics.fmean(line["cpu_s"] for line in lines))
    return statistics.fmean(step_s), statistics.fmean(cpu_s)


def environment(**more):
    # What Stoker hands on to a rank and no more, so that both sides have the same: a variable that chooses the kernels of
    # a BLAS is worth twenty times what is weighed here, and an allocator that keeps its memory ten times.
    kept = {key: value for key, value in os.environ.items() if key in ("PATH", "HOME", "USER", "LANG", "TMPDIR", "TZ")}
    return dict(kept, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1", NO_COLOR="1",
                MALLOC_ARENA_MAX="1", MALLOC_MMAP_THRESHOLD_=str(1 << 30), MALLOC_TRIM_THRESHOLD_=str(1 << 40), **more)


def bare(base, ranks, steps):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    path = os.path.join(tempfile.mkdtemp(dir=base), "metrics.jsonl")
    started = [subprocess.Popen(training(ranks, steps), stdout=subprocess.DEVNULL, env=environment(
        RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
        STOKER_METRICS_FILE=path)) for rank in range(ranks)]
    try:
        if any(process.wait(timeout=300) != 0 for process in started):
            raise RuntimeError("a rank of the bare training failed")
    finally:
        for process in started:
            process.kill()
    return steps_of(path, ranks)


def thread_seconds(pid, name):
    """Processor time of the threads of that name, and of the whole process."""
    seconds = whole = 0.0
    for stat in glob.glob(f"/proc/{pid}/task/*/stat"):
        try:
            head, tail = open(stat).read().rsplit(")", 1)
        except OSError:
            continue
        used = sum(int(word) for word in tail.split()[11:13]) / HZ
        whole += used
        if head.split("(", 1)[1] == name:
            seconds += used
    return seconds, whole


def observed(server, ranks, steps):
    """The same as a run of `server`, whose one node has a processor for each rank, so that no limit is in the way."""
    with open(server.folder + "/run.yaml", "w") as file:
        json.dump({"version": 1, "name": "weighed", "run": {
            "command": training(ranks, steps), "ranks": ranks, "cpus": 1,
            "environment": {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}}}, file)
    began = time.monotonic()
    before = thread_seconds(server.pid, "stoker-look")
    said = server.call("run", server.folder + "/run.yaml", "--quiet", limit_s=300)
    if said.returncode != 0:
        raise RuntimeError(f"stoker run ended with {said.returncode}: {said.stdout[-500:]}{said.stderr[-500:]}")
    after = thread_seconds(server.pid, "stoker-look")
    seconds = time.monotonic() - began
    newest = max(glob.glob(server.folder + "/runs/r-*"), key=lambda path: int(path.rsplit("-", 1)[1]))
    return (*steps_of(newest + "/metrics.jsonl", ranks), *((b - a) / seconds / ranks for a, b in zip(before, after)))


def pairs(options, report):
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode != 0:
        return report.missing("pairs", f"{PYTHON} has no torch")
    base = tempfile.mkdtemp(prefix="stoker-bench-observe-")
    nodes, servers = base + "/nodes.yaml", []
    with open(nodes, "w") as file:
        json.dump({"nodes": [{"name": "wide", "vcpus": 16, "memory": "16GiB"}]}, file)
    try:
        for ranks in (2, 8):
            server = Server(options.stoker, tempfile.mkdtemp(dir=base) + "/state", "--nodes", nodes)
            servers.append(server)
            probe = bare(base, ranks, 20)
            steps = max(20, min(600, int(options.seconds / probe[0])))
            clock, cpu, looked, whole = [], [], [], []
            for pair in range(options.pairs):
                alone = bare(base, ranks, steps) if pair % 2 == 0 else None
                with_it = observed(server, ranks, steps)
                alone = alone or bare(base, ranks, steps)
                clock.append(100 * (with_it[0] / alone[0] - 1))
                cpu.append(100 * (with_it[1] / alone[1] - 1))
                looked.append(100 * with_it[2])
                whole.append(100 * with_it[3])
            ordered = sorted(cpu)
            report.add(f"pairs_{ranks}_ranks_cpu", cpu, "% more processor time a step", ("<", 1), step_ms=1e3 * probe[0],
                       middle_half=f"{ordered[len(cpu) // 4]:+.2f} to {ordered[-1 - len(cpu) // 4]:+.2f}")
            report.add(f"pairs_{ranks}_ranks_clock", clock, "% longer steps by the clock")
            report.add(f"pairs_{ranks}_ranks_observer", looked, "% of a core for each rank, the observer's thread", ("<", 1))
            report.add(f"pairs_{ranks}_ranks_stoker", whole, "% of a core for each rank, the whole server")
    finally:
        for server in servers:
            server.stop()
        shutil.rmtree(base, ignore_errors=True)


# --- hook -----------------------------------------------------------------------------------------------------------------

def hook(options, report):
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode != 0:
        return report.missing("hook", f"{PYTHON} has no torch")
    with tempfile.TemporaryDirectory(prefix="stoker-bench-observe-") as base, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        words = [PYTHON, os.path.join(ROOT, "bench/observe/hook_rank.py"), str(options.pieces), "60", "256"]
        ranks = [subprocess.Popen(words, text=True, stdout=subprocess.PIPE, env=environment(
            RANK=str(rank), WORLD_SIZE=str(RANKS), LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
            STOKER_METRICS_FILE=os.path.join(base, "metrics.jsonl"))) for rank in range(RANKS)]
        try:
            said = [process.communicate(timeout=1200)[0] for process in ranks]
        finally:
            for process in ranks:
                process.kill()
        if any(process.returncode for process in ranks):
            return report.missing("hook", "a rank failed")
    pieces = json.loads(said[0])
    for name, column in (("clock", 1), ("cpu", 2)):
        more = []  # of four pieces, two with it and two without
        for i in range(0, len(pieces) - 3, 4):
            on = sum(each[column] for each in pieces[i:i + 4] if each[0])
            off = sum(each[column] for each in pieces[i:i + 4] if not each[0])
            more.append(100 * (on / off - 1))
        report.add(f"hook_{RANKS}_ranks_{name}", more, f"% longer steps by the {'clock' if name == 'clock' else 'processor'}", ("<", 1),
                   step_ms=1e3 * statistics.median(each[1] for each in pieces if not each[0]),
                   of_medians=100 * (statistics.median(each[column] for each in pieces if each[0]) /
                                     statistics.median(each[column] for each in pieces if not each[0]) - 1))


# --- store -----------------------------------------------------------------------------------------------------------------

def used_bytes(folder):
    return sum(4096 * -(-os.path.getsize(path) // 4096) for path in glob.glob(folder + "/**/*", recursive=True)
               if os.path.isfile(path))


def store(options, report):
    program = os.path.join(os.path.dirname(os.path.abspath(options.stoker)), "bench_series")
    if not os.path.exists(program):
        return report.missing("store", f"{program} is not built")
    base = tempfile.mkdtemp(prefix="stoker-bench-observe-", dir=options.where)
    folder = os.path.join(base, "folder")
    try:
        os.makedirs(folder + "/series")
        said = subprocess.run([program, "--sample", str(options.sample), "--keep", folder + "/series", "--ranks", str(RANKS)],
                              capture_output=True, text=True, timeout=3000)
        print(said.stdout, end="", flush=True)
        if said.returncode != 0:
            return report.missing("store", said.stderr[-300:])
        sample = [f"{folder}/series/r-{i + 1}" for i in range(options.sample)]
        each = [used_bytes(run) for run in sample]
        for i in range(options.sample, RUNS):
            shutil.copytree(sample[i % options.sample], f"{folder}/series/r-{i + 1}")
        report.add("store_1000_runs", used_bytes(folder + "/series") / 1e6, "MB in blocks of 4 KB", ("<", 500),
                   written=options.sample, a_run_kb=f"{min(each) / 1e3:.1f} to {max(each) / 1e3:.1f}")
        charts(options, report, folder)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def charts(options, report, folder):
    # The runs that the series are of wait for ever: r-1 has the machine. Its own series go on, beside what was written.
    server = Server(options.stoker, folder)
    occupant = occupy(server)
    try:
        connection = server.connect()
        for _ in range(RUNS - 1):
            connection.submit(name="charted", command=["true"])
        end = time.time()
        shape = random.Random(7)
        for name, back, metrics in (("10_minutes", 600, "step_s"), ("hour", 3600, "step_s"), ("day", 86_400, "step_s"),
                                    ("day_4_metrics", 86_400, "step_s,wait_s,cpu,rss"), ("hour_all_one_rank", 3600, "")):
            took = []
            for _ in range(options.charts):
                since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end - back))
                path = f"/api/v1/runs/r-{shape.randrange(2, RUNS + 1)}/series?from={since}"
                path += f"&metric={metrics}" if metrics else "&rank=3"
                began = time.perf_counter()
                status, body = connection.get(path)
                took.append(1e3 * (time.perf_counter() - began))
                if status != 200 or b"points" not in body:
                    raise RuntimeError(f"{status} {body[:200]}")
            report.add(f"chart_{name}_p99", quantile(took, 0.99), "ms through the API", ("<", 20), p50=quantile(took, 0.5),
                       bytes=len(body))
        connection.close()
    finally:
        release(server, occupant)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--stoker", default=os.path.join(ROOT, "build/release/stoker"))
    parser.add_argument("--only", default="look,pairs,hook,store")
    parser.add_argument("--rounds", type=int, default=3, help="of looks")
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=6, help="of each training")
    parser.add_argument("--pieces", type=int, default=44, help="of the training with and without the hook")
    parser.add_argument("--sample", type=int, default=8, help="runs that are really written")
    parser.add_argument("--charts", type=int, default=300, help="of each kind")
    parser.add_argument("--where", help="folder for the store; a real disk")
    options = parser.parse_args()
    options.stoker = os.path.abspath(options.stoker)
    if not os.access(options.stoker, os.X_OK):
        fail(f"{options.stoker} is not there")
    report = Report(options.stoker)
    for name, measure in (("look", looks), ("pairs", pairs), ("hook", hook), ("store", store)):
        if name in options.only.split(","):
            measure(options, report)
    report.end()


if __name__ == "__main__":
    main()

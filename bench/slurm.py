#!/usr/bin/env python3
"""Submit-to-start on a real Slurm: through Stoker beside plain sbatch, in one run, and what a poll of many jobs costs.

    python3 bench/slurm.py --stoker build/release/stoker [--runs 20] [--jobs 10000] [--rest]

--rest: the engine asks a slurmrestd instead of the commands, and the poll is one of that.

Start is the moment at which the user's program writes its first line, by the clock of this machine. "claimed" is when the
job's script began: up to there Slurm alone is at work, behind it are srun and the hosts of the ranks. The plain job starts its
program with srun too, as a gang needs. The last line is JSON."""

import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "e2e"))
from slurm_cluster import Cluster, why_not  # noqa: E402


def wait_for(path, limit_s=60):
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if os.path.exists(path) and (text := open(path).read()).endswith("\n"):
            return float(text) / 1e9
        time.sleep(0.005)
    raise SystemExit(f"nothing in {path} within {limit_s} s")


def spread(values):
    ordered = sorted(values)
    return {"p50_ms": round(1000 * statistics.median(ordered), 1), "p90_ms": round(1000 * ordered[int(len(ordered) * 0.9)], 1)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=10000)
    parser.add_argument("--rest", action="store_true")
    options = parser.parse_args()
    if why := why_not():
        raise SystemExit(f"no Slurm here: {why}")
    stoker = os.path.abspath(options.stoker)
    base = tempfile.mkdtemp(prefix="stoker-slurm-bench-")
    os.chmod(base, 0o755)
    os.makedirs(base + "/cluster")
    cluster = Cluster(base + "/cluster")
    environment = dict(os.environ, STOKER_FOLDER=base + "/state", HOME=base, NO_COLOR="1")
    server = None
    try:
        with open(base + "/server.yaml", "w") as file:
            rest = f', rest: {{url: "{cluster.rest_url()}"}}' if options.rest else ""
            file.write(f"engine: {{kind: slurm, partition: main, config: {cluster.config}{rest}}}\n")
        server = subprocess.Popen([stoker, "up", "--config", base + "/server.yaml", "--listen", "127.0.0.1:0"], env=environment,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        Cluster.wait("the server", lambda: subprocess.run([stoker, "nodes"], env=environment, capture_output=True).returncode == 0)
        time.sleep(2)
        plain, through, answered = [], [], []
        for i in range(options.runs):  # alternately, so that both meet the same machine
            out = f"{base}/plain-{i}"
            begin = time.time()
            cluster.run("sbatch", "-p", "main", "-n", "1", "--chdir", base, "--output=/dev/null",
                        f"--wrap=srun sh -c 'date +%s%N > {out}'")
            plain.append(wait_for(out) - begin)
            out = f"{base}/through-{i}"
            begin = time.time()
            subprocess.run([stoker, "submit", "--", "sh", "-c", f"date +%s%N > {out}"], env=environment, check=True,
                           capture_output=True)
            answered.append(time.time() - begin)
            through.append(wait_for(out) - begin)
        result = {"bench": "slurm", "over": "slurmrestd" if options.rest else "commands", "runs": options.runs,
                  "load_1min": round(os.getloadavg()[0], 1), "sbatch_srun": spread(plain), "stoker": spread(through),
                  "stoker_answers": spread(answered),
                  "added_p50_ms": round(1000 * (statistics.median(through) - statistics.median(plain)), 1)}
        if options.jobs:
            # Held, in arrays of a thousand; Slurm's own bound for an array is 1001.
            for _ in range(options.jobs // 1000):
                cluster.run("sbatch", "--hold", "--array=1-1000", "-p", "main", "--job-name=stoker-aaaaa-222222",
                            "--chdir=/", "--output=/dev/null", "--wrap=true")
            before, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            times = 10
            for _ in range(times):
                text = cluster.run("squeue", "--noheader", "--all", "--me", "--states=all", "--array", "-o", "%A|%j|%T|%V|%S|%N|%r")
            after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - wall
            cpu = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / times
            result["poll"] = {"jobs": len(text.splitlines()), "wall_ms": round(1000 * wall / times, 1), "cpu_ms": round(1000 * cpu, 1)}
        print(json.dumps(result))
    finally:
        if server:
            server.terminate()
            server.wait()
        cluster.close()
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main()

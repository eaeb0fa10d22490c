#!/usr/bin/env python3
"""Submit-to-start on a real Slurm: through Stoker beside plain sbatch, in one run, and what a server costs beside a long queue.

    python3 bench/slurm.py --stoker build/release/stoker [--runs 20] [--jobs 10000] [--waiting 1000] [--rest] [--as USER]

--as: whose server it is, where root measures (daemon; of --rest, whoever measures): squeue has the controller pick the jobs of an ordinary user, and picks root's itself
from all that there are, so that "--as root" measures another thing, and one that few have.
--jobs: of another user, held, each a job of its own (a thousand tasks of an array would be one to the controller). Beside them one run of
ours waits, so that the queue is looked at each second. --waiting: so many runs of ours wait in it. Of both: the share of a processor that the
server takes, with the commands that it calls, and that slurmctld takes; "before" is the server with one run that waits in an empty queue.
--rest: the engine asks a slurmrestd instead of the commands.

Start is the moment at which the user's program writes its first line, by the clock of this machine. "claimed" is when the
job's script began: up to there Slurm alone is at work, behind it are srun and the hosts of the ranks. The plain job starts its
program with srun too, as a gang needs. The last line is JSON."""

import argparse
import json
import os
import pathlib
import pwd
import re
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


def used(pid):
    """Seconds of processors so far, with those of children that have ended; and megabytes of memory."""
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    memory = next(int(line.split()[1]) for line in open(f"/proc/{pid}/status") if line.startswith("VmRSS"))
    return sum(int(each) for each in fields[11:15]) / os.sysconf("SC_CLK_TCK"), memory / 1024


def looks(cluster):
    """How many times the controller was asked for jobs so far, whoever asked."""
    return sum(int(count) for count in re.findall(r"REQUEST_JOB_(?:USER_)?INFO\s.*?count:(\d+)", cluster.run("sdiag")))


def shares(server, cluster, rest, seconds=30):
    """Of a processor, in the seconds to come; and the looks at the queue in a second of them."""
    pids = {"server": server.pid, "slurmctld": cluster.pid("run/slurmctld.pid"), **({"slurmrestd": cluster.pid("run/slurmrestd.pid")} if rest else {})}
    looked, before, begun = looks(cluster), {name: used(pid)[0] for name, pid in pids.items()}, time.monotonic()
    time.sleep(seconds)
    wall = time.monotonic() - begun
    return {"looks_per_s": round((looks(cluster) - looked) / wall, 2), **{name: round((used(pid)[0] - before[name]) / wall, 4) for name, pid in pids.items()}, "rss_mb": round(used(server.pid)[1], 1)}


def jobs_of_another(cluster, count):
    """Held jobs of nobody's, made by four at once; (how many there are, seconds that it took)."""
    script = (f"i=0; while [ $i -lt {count // 4} ]; do sbatch --hold -p main --job-name=theirs --chdir=/ --output=/dev/null --wrap=true "
              "|| sleep 0.2; i=$((i + 1)); done")
    begun = time.monotonic()
    who = {"user": "nobody"} if os.geteuid() == 0 else {}
    makers = [subprocess.Popen(["sh", "-c", script], env=cluster.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **who) for _ in range(4)]
    for each in makers:
        each.wait()
    return len(cluster.run("squeue", "-h", "-o", "%A").splitlines()), round(time.monotonic() - begun, 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=10000)
    parser.add_argument("--waiting", type=int, default=1000)
    parser.add_argument("--rest", action="store_true")
    parser.add_argument("--as", dest="user", default=None)
    options = parser.parse_args()
    if options.user is None:  # a slurmrestd submits as whoever started it, which here is who measures
        options.user = "daemon" if os.geteuid() == 0 and not options.rest else ""
    if why := why_not():
        raise SystemExit(f"no Slurm here: {why}")
    stoker = os.path.abspath(options.stoker)
    base = tempfile.mkdtemp(prefix="stoker-slurm-bench-")
    os.chmod(base, 0o755)
    os.makedirs(base + "/cluster")
    cluster = Cluster(base + "/cluster")
    who = {"user": options.user, "group": pwd.getpwnam(options.user).pw_gid, "extra_groups": []} if options.user else {}
    mine = base + "/mine"  # of that user
    os.makedirs(mine)
    if who:
        shutil.chown(mine, options.user)
    environment = dict(os.environ, STOKER_FOLDER=mine + "/state", HOME=mine, NO_COLOR="1")
    server = None
    try:
        with open(base + "/server.yaml", "w") as file:
            rest = f', rest: {{url: "{cluster.rest_url()}"}}' if options.rest else ""
            file.write(f"engine: {{kind: slurm, partition: main, config: {cluster.config}{rest}}}\n")
        server = subprocess.Popen([stoker, "up", "--config", base + "/server.yaml", "--listen", "127.0.0.1:0"], env=environment, cwd=mine, **who,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        Cluster.wait("the server", lambda: subprocess.run([stoker, "nodes"], env=environment, cwd=mine, capture_output=True, **who).returncode == 0)
        time.sleep(2)
        plain, through, answered = [], [], []
        for i in range(options.runs):  # alternately, so that both meet the same machine
            out = f"{mine}/plain-{i}"
            begin = time.time()
            subprocess.run(["sbatch", "-p", "main", "-n", "1", "--chdir", mine, "--output=/dev/null", f"--wrap=srun sh -c 'date +%s%N > {out}'"],
                           env=cluster.environment, check=True, capture_output=True, **who)
            plain.append(wait_for(out) - begin)
            out = f"{mine}/through-{i}"
            begin = time.time()
            subprocess.run([stoker, "submit", "--", "sh", "-c", f"date +%s%N > {out}"], env=environment, cwd=mine, check=True,
                           capture_output=True, **who)
            answered.append(time.time() - begin)
            through.append(wait_for(out) - begin)
        result = {"bench": "slurm", "over": "slurmrestd" if options.rest else "commands", "as": options.user,
                  "load_1min": round(os.getloadavg()[0], 1)}
        if options.runs:
            added = statistics.median(through) - statistics.median(plain)
            result |= {"runs": options.runs, "sbatch_srun": spread(plain), "stoker": spread(through), "stoker_answers": spread(answered),
                       "added_p50_ms": round(1000 * added, 1)}
        cluster.run("scontrol", "update", "partitionname=main", "state=down")
        stay = lambda *words: subprocess.run([stoker, "submit", *words], env=environment, cwd=mine, check=True, capture_output=True, **who)
        stay("--", "true")
        time.sleep(3)
        result["before"] = shares(server, cluster, options.rest)
        if options.jobs:
            there, took = jobs_of_another(cluster, options.jobs)
            result["others"] = {"jobs": there, "made_in_s": took, **shares(server, cluster, options.rest)}
            cluster.run("scancel", "--name=theirs")
            Cluster.wait("their end", lambda: len(cluster.run("squeue", "-h", "-t", "pending", "-o", "%A").splitlines()) < 10, 300)
        if options.waiting:
            # Of Stoker's own account of the cluster all of them have room at once, so that all are given to Slurm. A
            # sweep has at most 1,000 runs.
            cpus, left, begun = max(0.001, round(16 / options.waiting, 3)), options.waiting, time.monotonic()
            while left > 0:
                count = min(left, 1000)
                left -= count
                with open(base + "/many.yaml", "w") as file:
                    file.write(f"version: 1\nname: many\nrun: {{command: 'true', cpus: {cpus}, memory: 1MiB, array: 1-{count}}}\n")
                stay(base + "/many.yaml")
            ours = lambda: len([each for each in cluster.say("squeue", "-h", "-t", "pending", "-o", "%j").splitlines() if each.startswith("stoker-")])
            Cluster.wait("all of ours in the queue", lambda: ours() > options.waiting or time.sleep(1), 900)
            took = time.monotonic() - begun
            time.sleep(5)
            result["ours"] = {"runs": options.waiting, "submitted_in_s": round(took, 1), **shares(server, cluster, options.rest)}
        print(json.dumps(result))
    finally:
        if server:
            server.terminate()
            server.wait()
        if who:  # what is that user's, no --me of ours ends
            cluster.say("scancel", f"--user={options.user}")
        cluster.close()
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main()

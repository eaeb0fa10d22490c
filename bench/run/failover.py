#!/usr/bin/env python3
"""Kills the server that leads again and again under load; the one that stands by takes over from a real PostgreSQL.

    python3 bench/run/failover.py --stoker BIN [--kills 50] [--seed 1]

Four clients submit short programs all the time. A kill comes at a random moment up to two seconds after a server began to
lead. One JSON line at the end: kills, acknowledged submissions, those that are lost or whose number came twice, programs
that ran twice, seconds from a kill to the next server that accepts (median and longest). Exit 1: something was lost or
doubled, or a way was longer than 10 s.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "e2e"))
from harness import Stoker, wait_for  # noqa: E402
from postgres_test import Postgres, starts_leading  # noqa: E402


def runs_of(t):
    return t.json("ps", "--all", "--limit", "100000")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stoker", required=True)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    dice = random.Random(args.seed)
    t = Stoker(os.path.abspath(args.stoker))
    ran = os.path.join(t.base, "ran")
    acknowledged, ways, enough = [], [], threading.Event()

    def submit():
        while not enough.is_set():
            done = t.call("submit", "--", "sh", "-c", f'echo "$STOKER_RUN" >> {ran}', exit=None)
            if done.returncode == 0:
                acknowledged.append(done.stdout.strip())
            else:
                time.sleep(0.05)

    try:
        with Postgres() as database:
            leader = t.start("up", "--journal", database.url)
            starts_leading(t, leader, t.folder)
            writers = [threading.Thread(target=submit) for _ in range(4)]
            for writer in writers:
                writer.start()
            for kill in range(args.kills):
                standby = t.start("up", "--journal", database.url)
                wait_for("it stands by", lambda: "leads" in open(standby.err_path).read())
                time.sleep(dice.uniform(0, 2))
                leader.kill()
                leader.wait()
                killed = time.monotonic()
                starts_leading(t, standby, t.folder)
                ways.append(time.monotonic() - killed)
                leader = standby
                print(f"\r{kill + 1} of {args.kills}, {len(acknowledged)} submissions, {ways[-1]:.1f} s", end="", file=sys.stderr)
            enough.set()
            for writer in writers:
                writer.join()
            # More were submitted than this machine starts in the time: what still waits is called off, and has to be there all the same.
            t.call("cancel", "--state", "queued", exit=None)
            wait_for("all have ended", lambda: all(run["state"] in ("succeeded", "failed", "cancelled") for run in runs_of(t)), 600)
            known = {run["id"]: run["state"] for run in runs_of(t)}
            lost = [run for run in acknowledged if run not in known]
            times = collections.Counter(open(ran).read().split())
    finally:
        enough.set()
        t.close()
    doubled = len(acknowledged) - len(set(acknowledged))
    twice = [run for run, count in times.items() if count > 1]
    print(file=sys.stderr)
    print(json.dumps({"kills": args.kills, "acknowledged": len(acknowledged), "lost": len(lost), "numbers_twice": doubled,
                      "programs_twice": len(twice), "ran": len(times),
                      "ended_well_without_running": sum(state == "succeeded" and run not in times for run, state in known.items()),
                      "way_median_s": round(statistics.median(ways), 2), "way_longest_s": round(max(ways), 2)}))
    sys.exit(1 if lost or doubled or twice or max(ways) > 10 else 0)


if __name__ == "__main__":
    main()

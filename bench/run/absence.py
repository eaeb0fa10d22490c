#!/usr/bin/env python3
"""Kills the server again and again while short programs run, stays away for a while, and holds what is charged against
the clock that each program has written down itself.

    python3 bench/run/absence.py --stoker BIN [--rounds 8] [--away 20] [--runs 6] [--seed 1]

A place is charged from when it is given until the last process has ended. One JSON line at the end: rounds, seconds
away, runs, those that are missing or came twice; `end_worst_s`, how far the end that is charged is from the one that the
program wrote down; `charged_worst_s`, how far the charge is from the time between; `start_median_s`, from the place to
the program's first word, which a busy machine makes longer. Exit 1: a run is missing or doubled, or one of the first two
is above 0.1 s.
"""
import argparse
import datetime
import json
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAM = 'date +%s.%N >> "$1"; sleep "$2"; date +%s.%N >> "$1"'
LIMIT_S = 60


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stoker", required=True)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--away", type=float, default=20)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    stoker = os.path.abspath(args.stoker)
    dice = random.Random(args.seed)
    root = pathlib.Path(tempfile.mkdtemp(prefix="stoker-absence-"))
    env = {**os.environ, "STOKER_FOLDER": str(root / "state")}
    env.pop("STOKER_SERVER", None)
    server = None

    def up():
        log = open(root / "server.log", "ab")
        process = subprocess.Popen([stoker, "up", "--listen", "127.0.0.1:0", "--virtual-nodes", "1"], env=env, cwd=root,
                                   stdout=subprocess.PIPE, stderr=log)
        process.stdout.readline()
        return process

    def ask(*words):
        done = subprocess.run([stoker, *words, "-o", "json"], env=env, cwd=root, capture_output=True, text=True, timeout=LIMIT_S)
        return json.loads(done.stdout)

    def moment(text):
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()

    ends, charges, starts, told, missing, doubled, seen = [], [], [], [], 0, 0, 0
    try:
        server = up()
        for turn in range(args.rounds):
            marks = {}
            for i in range(args.runs):
                mark = root / f"mark-{turn}-{i}"
                done = subprocess.run([stoker, "submit", "--quiet", "--cpus", "0.1", "--", "sh", "-c", PROGRAM, "sh", str(mark),
                                       f"{dice.uniform(0.2, 4):.2f}"], env=env, cwd=root, capture_output=True, text=True, timeout=LIMIT_S)
                if done.returncode != 0:
                    sys.exit(f"submit: {done.stdout}{done.stderr}")
                marks[done.stdout.split()[0]] = mark
            time.sleep(dice.uniform(0, 3))
            server.send_signal(signal.SIGKILL)
            server.wait()
            time.sleep(args.away)
            server = up()
            for run, mark in marks.items():
                seen += 1
                until = time.monotonic() + LIMIT_S
                while True:
                    view = ask("describe", run)
                    if view["run"]["state"] == "succeeded" or time.monotonic() > until:
                        break
                    time.sleep(0.2)
                times = [float(word) for word in mark.read_text().split()] if mark.exists() else []
                if view["run"]["state"] != "succeeded" or len(times) < 2:
                    missing += 1
                    print(f"round {turn}: {run} is {view['run']['state']} with {len(times)} marks", file=sys.stderr)
                    continue
                doubled += len(times) > 2
                attempt = view["attempts"][-1]
                given, ended = moment(attempt["created_at"]), moment(attempt["ranks"][0]["ended_at"])
                ends.append(abs(ended - times[-1]))
                charges.append(abs(view["run"]["used_s"] - (ended - given)))
                starts.append(times[0] - given)
                told.append(view["run"]["used_s"])
            print(f"round {turn + 1} of {args.rounds}: end {max(ends, default=0):.3f} s, charge {max(charges, default=0):.3f} s",
                  file=sys.stderr)
    finally:
        if server is not None:
            server.kill()
            server.wait()
        shutil.rmtree(root, ignore_errors=True)
    answer = {"rounds": args.rounds, "away_s": args.away, "runs": seen, "missing": missing, "doubled": doubled,
              "charged_s": round(sum(told), 2), "end_worst_s": round(max(ends, default=0), 3),
              "charged_worst_s": round(max(charges, default=0), 3),
              "start_median_s": round(statistics.median(starts), 3) if starts else 0}
    print(json.dumps(answer))
    sys.exit(1 if missing or doubled or answer["end_worst_s"] > 0.1 or answer["charged_worst_s"] > 0.1 else 0)


if __name__ == "__main__":
    main()

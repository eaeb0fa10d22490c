#!/usr/bin/env python3
"""Predicted against measured, on this machine: step time and peak memory of six families of networks, 36 sizes that nobody has seen.

    ./dev bench family_steps [--minutes M] [--keep DIR] [--rounds 2] [--seconds 6] [--families LIST]

stoker bench cpu --framework first, then the sizes in TAUGHT of each family, added with stoker calibrate; then those in ASKED, each
predicted before it runs. Of several rounds the first prediction and the fastest run count: what others take from a machine only ever adds.
A run of one rank counts with its processor seconds where the clock says more. With --keep the same call goes on where another was
stopped: DIR/measured.jsonl has a line for each run, DIR/table.md the figures so far."""
import argparse
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "explain")]
import families
import faults
import step_time

# Width, examples (zoo.py scales them by family), ranks.
TAUGHT = ((0.75, 8, 1), (1.0, 8, 2), (1.25, 10, 1), (1.5, 6, 2))
ASKED = ((0.75, 12, 2), (1.0, 6, 1), (1.25, 8, 2), (1.5, 10, 1), (1.75, 8, 1), (2.0, 6, 2))
BARS = {"step": (0.06, 0.75, 0.85), "memory": (0.06, 0.75, 0.85)}  # median, inside from, to


class Machine:
    def __init__(self, options, base):
        self.stoker, self.options, self.base = step_time.Stoker(options.stoker, base), options, base
        self.models = families.Model(base)
        self.path = os.path.join(base, "measured.jsonl")
        self.seen = []
        if os.path.exists(self.path):
            with open(self.path) as file:
                self.seen = [json.loads(line) for line in file if line.endswith("\n")]

    def known(self, kind, family, size, turn):
        return any((each["kind"], each["family"], tuple(each["size"]), each["turn"]) == (kind, family, size, turn) for each in self.seen)

    def run(self, kind, family, size, turn):
        width, batch, ranks = size
        section = {"ranks": ranks, "cpus": 1, "environment": {"OMP_NUM_THREADS": 1, "OPENBLAS_NUM_THREADS": 1}}
        text = families.text_of(self.models, family, "hook", width, batch, {}, section, {})(self.options.seconds, faults.Case("asked"))
        path = os.path.join(self.base, "run.yaml")
        with open(path, "w") as file:
            file.write(text)
        self.stoker.call("run", path, "--quiet")
        newest = max((name for name in os.listdir(self.base + "/state/runs") if name.startswith("r-")), key=lambda name: int(name[2:]))
        refused = ""
        if kind == "taught":  # beside others' work a run teaches nothing, and is refused
            added = subprocess.run([self.stoker.binary, "calibrate", "add", newest], env=self.stoker.environment, cwd=self.base, capture_output=True,
                                   text=True, timeout=100)
            refused = added.stderr.strip() if added.returncode else ""
        told = {term["term"]: term for term in json.loads(self.stoker.call("explain", newest, "-o", "json"))["terms"]}
        with open(f"{self.base}/state/runs/{newest}/metrics.jsonl") as file:
            lines = [json.loads(line) for line in file][3:]  # the first ones allocate
        record = {"kind": kind, "family": family, "size": size, "turn": turn, "run": newest,
                  "step_s": statistics.median(line["step_s"] for line in lines), "cpu_s": statistics.median(line["cpu_s"] for line in lines),
                  "step": told["step"], "memory": told["memory"], "load": round(os.getloadavg()[0], 1), "refused": refused}
        self.seen.append(record)
        with open(self.path, "a") as file:
            file.write(json.dumps(record) + "\n")
        with open(os.path.join(self.base, "table.md"), "w") as file:
            file.write(table(self.seen)[0])


def cases(seen):
    """Of each size that was asked: the first prediction, and what counts as measured."""
    rounds = collections.defaultdict(list)
    for each in seen:
        if each["kind"] == "asked":
            rounds[each["family"], tuple(each["size"])].append(each)
    for (family, size), those in rounds.items():
        step = min(min(each["step_s"], each["cpu_s"]) if size[2] == 1 else each["step_s"] for each in those)
        yield family, size, {"step": (those[0]["step"], step), "memory": (those[0]["memory"], max(each["memory"]["measured"] for each in those))}


def table(seen):
    """The rows, and the bars that they miss."""
    lines = ["| | step predicted | measured | off | | memory predicted | measured | off | |", "| --- |" + " --- |" * 8]
    off, inside = collections.defaultdict(list), collections.defaultdict(list)
    for family, size, found in cases(seen):
        cells = []
        for name, scale, unit in (("step", 1e3, "ms"), ("memory", 2**-20, "MiB")):
            term, measured = found[name]
            error = term["predicted"] / measured - 1
            within = term.get("low", 0) <= measured <= term.get("high", float("inf"))
            off[name].append(abs(error))
            inside[name].append(within)
            cells += [f"{term['predicted'] * scale:.1f} ({term.get('low', 0) * scale:.1f} - {term.get('high', 0) * scale:.1f})",
                      f"{measured * scale:.1f} {unit}", f"{error:+.0%}", "in" if within else "OUT"]
        lines.append(f"| {family} x{size[0]:g}, {size[1]}, {size[2]} rank{'s' * (size[2] > 1)} | " + " | ".join(cells) + " |")
    missed = []
    refused = sum(bool(each["refused"]) for each in seen)
    if refused:
        lines.append(f"\n{refused} of {sum(each['kind'] == 'taught' for each in seen)} runs that were to teach were refused: others were at work")
    for name, (median, least, most) in BARS.items():
        if not off[name]:
            missed.append(name + ", nothing was asked yet")
            continue
        middle, share = statistics.median(off[name]), statistics.fmean(inside[name])
        lines.append(f"\n{name}: {middle:.1%} off at the median (bar {median:.0%}), {share:.0%} of {len(off[name])} inside the interval of 80 % "
                     f"(bar {least:.0%} to {most:.0%})")
        if middle > median or not least <= share <= most:
            missed.append(name)
    return "\n".join(lines) + "\n", missed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=6, help="of each training")
    parser.add_argument("--families", default=",".join(families.FAMILIES))
    parser.add_argument("--minutes", type=float, default=0, help="begin no run after so many")
    parser.add_argument("--keep", default="", help="folder; the same call goes on where another was stopped")
    options = parser.parse_args()
    base = os.path.abspath(options.keep) if options.keep else tempfile.mkdtemp(prefix="stoker-family-steps-")
    os.makedirs(base, exist_ok=True)
    machine, began = Machine(options, base), time.monotonic()
    measured = os.path.join(base, "bench-done")
    if not os.path.exists(measured):
        machine.stoker.call("bench", "cpu", "--framework")
        open(measured, "w").close()
    # Families take turns, so that a bad minute of the machine is not one family's.
    todo = [("taught", family, size, 1) for size in TAUGHT for family in options.families.split(",")]
    todo += [("asked", family, size, turn) for turn in range(1, options.rounds + 1) for size in ASKED for family in options.families.split(",")]
    left = [each for each in todo if not machine.known(*each)]
    for number, each in enumerate(left):
        if options.minutes and time.monotonic() - began > 60 * options.minutes:
            print(f"after {options.minutes:g} minutes: {len(left) - number} runs were not begun")
            break
        machine.run(*each)
        last = machine.seen[-1]
        print(f"{len(todo) - len(left) + number + 1}/{len(todo)} {each[0]} {each[1]} x{each[2][0]:g}, {each[2][1]}, {each[2][2]} ranks:"
              f" {1e3 * last['step_s']:.1f} ms{'; not taught: ' + last['refused'][:200] if last['refused'] else ''}", flush=True)
    text, missed = table(machine.seen)
    print("\n" + machine.stoker.call("calibrate", "show") + "\n" + text)
    print(f"load {os.getloadavg()[0]:.1f}; " + ("every bar is met" if not missed else "NOT met: " + ", ".join(missed)))
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Are causes found in trainings that nobody tuned on? Six families of programs, four ways of telling steps, sizes drawn by a seed.

    ./dev bench families [--seed N] [--runs 60] [--kinds LIST] [--families LIST] [--ways LIST] [--keep DIR] [--minutes M] [--neighbours N]

Every run draws family, way, width and the size of its fault; the seed is printed and makes the same ones again. Twins are the same
without a fault, pairs have two at once. What a fault costs is told by the program's own clock. Prints a line for each run, and
figures: the right cause first, healthy runs accused, costs within 30 %, silent although the way tells what a rule needs.

With --keep it can be stopped, and the same call goes on: DIR/results.jsonl has a line for each run, DIR/table.md the figures so far."""
import argparse
import glob
import json
import os
import random
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import explain
import faults
import tally

FAMILIES, WAYS = ("decoder", "encoder", "cnn", "rnn", "mlp", "diffusion"), ("hook", "json", "pattern", "none")
STEPS = ("hook", "json", "pattern")
PARTS = ("hook", "json")
CPUS = faults.CPUS
SMALL = 0.06  # of a step


class Kind:
    """What is wrong (to zoo.py, to the run section, beside it), which causes are right as the first, in which ways of telling it can
    be known, and which figure of the program's own clock is its cost: a name, or "twin" for what the step has over its twin's."""
    def __init__(self, first, draw, ways=STEPS, cost=None, run=None, plan=None, burners=None, families=FAMILIES, cancel=0, shows=True, **case):
        self.first, self.draw, self.ways, self.cost = set(first), draw, ways, cost
        self.run, self.plan, self.burners = run or (lambda size: {}), plan or (lambda size: {}), burners or (lambda size: ())
        self.families, self.cancel, self.case, self.shows = families, cancel, case, shows


def threads(**named):
    return {"environment": {key: value for key, value in named.items()}}


def of(low, high, digits=0):
    return lambda rng: round(rng.uniform(low, high), digits) if digits else int(rng.uniform(low, high + 1))


def one_of(*values):
    return lambda rng: rng.choice(values)


KINDS = {
    "loader-slow": Kind(["starved-input"], of(12, 60), PARTS, "wait_s"),
    "loader-compute": Kind(["starved-input"], of(10, 40), PARTS, "wait_s"),
    "loader-files": Kind(["starved-input"], of(600, 2400), PARTS, "wait_s"),
    "loader-worker": Kind(["starved-input"], of(80, 200), PARTS, "wait_s"),
    "loader-rank": Kind(["starved-input"], of(15, 60), PARTS, "wait_s"),
    "loader-burst": Kind(["starved-input"], of(15, 40), PARTS, "wait_s"),
    "gc": Kind(["garbage-collection"], of(20, 60), ("hook",), "injected_s"),
    "evaluation": Kind(["pauses"], of(15, 50), STEPS, "injected_s"),
    "synced-log": Kind(["waits-for-disk"], of(2, 8), ("hook",), "injected_s"),
    "grows": Kind(["slower-with-time"], of(20, 60), STEPS, None),
    "turns": Kind(["slower-with-time"], of(15, 50), STEPS, None),
    "leak": Kind(["memory-leak"], of(3, 12), STEPS),
    "loss": Kind(["loss-not-finite"], one_of("nan", "inf"), STEPS),
    "ended-early": Kind(["ended-early"], of(40, 120), STEPS, plan=lambda size: {"steps": 40 * size}),
    "hang-sleep": Kind(["hung-collective"], one_of("sleep"), STEPS, cancel=34),
    "hang-stop": Kind(["hung-collective"], one_of("stop"), STEPS, cancel=34),
    "hang-spin": Kind(["hung-collective"], one_of("spin"), STEPS, cancel=52),
    "checkpoint": Kind(["checkpoint-stalls", "disk-slow"], of(40, 160), PARTS, "checkpoint_s"),
    "checkpoint-own": Kind(["checkpoint-stalls", "disk-slow"], of(60, 200), PARTS, "checkpoint_s"),
    "late-rank": Kind(["straggler"], of(15, 60), PARTS, "injected_s"),
    "quota": Kind(["cpu-limit"], of(0.5, 0.8, 2), STEPS, "twin", run=lambda size: {"cpus": size}),
    "small-quota": Kind(["cpu-limit"], of(0.25, 0.45, 2), STEPS, "twin", run=lambda size: {"cpus": size}),
    "omp-wide": Kind(["cpu-limit"], of(3, 12), STEPS, "twin", run=lambda size: {**faults.FREE, **threads(OMP_NUM_THREADS=size, OMP_WAIT_POLICY="ACTIVE")}),
    "blas-wide": Kind(["cpu-limit"], of(2, 6), STEPS, "twin", run=lambda size: threads(OPENBLAS_NUM_THREADS=size), families=("decoder", "encoder", "rnn", "mlp")),
    "both-wide": Kind(["cpu-limit"], of(2, 4), STEPS, "twin", run=lambda size: {"ranks": 1, "cpus": CPUS, **threads(OMP_NUM_THREADS=size * CPUS // 2, OPENBLAS_NUM_THREADS=size * CPUS, OMP_WAIT_POLICY="ACTIVE")}, families=("decoder", "encoder", "rnn", "mlp")),
    "set-threads": Kind(["cpu-limit"], of(4, 12), ("hook",), "twin", run=lambda size: faults.FREE),
    "few-threads": Kind(["cpu-limit"], one_of(CPUS), ("hook",), None, run=lambda size: {"ranks": 1, "cpus": size, **threads(OMP_NUM_THREADS=1)}),
    "pin": Kind(["cpu-limit"], one_of("0", "1"), STEPS, "twin", run=lambda size: faults.FREE),
    "pin-threads": Kind(["cpu-limit"], one_of("0", "1"), STEPS, "twin", run=lambda size: {"ranks": 1, "cpus": CPUS}),
    "neighbour": Kind(["noisy-neighbour"], of(2, 3), STEPS, "twin", run=lambda size: faults.FREE, burners=lambda size: ((None, 1.0, 0),) * size),
    "neighbours": Kind(["noisy-neighbour"], of(4, 6), STEPS, "twin", run=lambda size: faults.FREE, burners=lambda size: ((None, 1.0, 0),) * size),
    "neighbour-of-one": Kind(["straggler", "noisy-neighbour"], of(0.7, 1.0, 1), PARTS, "twin", burners=lambda size: ((1, size, 0),)),
    "batch-smaller": Kind(["batch-smaller"], of(0.3, 0.8, 2), PARTS),
    "batch-larger": Kind(["batch-smaller"], of(1.3, 2.0, 1), PARTS),
    "bf16": Kind(["other-precision"], one_of(1), ("hook",), families=("decoder", "mlp")),
    "recompute": Kind(["recompute-on"], one_of(1), ("hook",), "twin", families=("decoder", "encoder")),
    "eager": Kind(["eager-not-compiled"], one_of(1), ("hook",), plan=lambda size: {"compiled": True}),
    "first": Kind(["warm-up"], of(400, 900), STEPS),
    "full-disk": Kind(["disk-full"], of(16, 60), WAYS, tmpfs_mb=True, needs=("mount",)),
    "link": Kind(["slow-link"], of(60, 300), PARTS, "twin", namespace=True, link=True, needs=("tc",), families=("decoder", "encoder", "mlp")),
    "lock": Kind(["idle-in-step"], of(10, 40), PARTS, "injected_s"),
}
ZOO = {"ended-early", "hang-sleep", "hang-stop", "hang-spin"}  # named otherwise there
PAIRS = [("loader-slow", "checkpoint"), ("loader-compute", "gc"), ("loader-slow", "leak"), ("omp-wide", "loader-slow"), ("late-rank", "checkpoint"),
         ("batch-smaller", "loader-slow"), ("synced-log", "loader-slow"), ("loss", "loader-slow"), ("gc", "checkpoint-own"), ("recompute", "loader-slow"),
         ("evaluation", "checkpoint")]
TWINS = {"plain": ({}, {}), "free": ({}, faults.FREE), "worker": ({"workers": 1}, {"cpus": CPUS, "ranks": 1}), "alone": ({}, {"ranks": 1}),
         "threads": ({}, {"ranks": 1, "cpus": CPUS}), "small-checkpoints": ({"checkpoint": 1}, {}), "half": ({}, {"ranks": 1})}


class Model:
    """What a family is to the plan: its layers, or what stoker_torch.profile() counts."""
    def __init__(self, base):
        self.base, self.known = base, {}

    def of(self, family, width, batch):
        key = (family, width, batch)
        if key not in self.known:
            path = os.path.join(self.base, "-".join(str(each) for each in key) + ".json")
            if family == "decoder":
                hidden = 32 * int(4 * width)
                self.known[key] = ({"kind": "decoder", "layers": 3, "hidden": hidden, "heads": 4, "ffn": 4 * hidden, "vocab": 300, "gated": False,
                                    "norm": "layernorm", "learned_positions": 96, "tied_embeddings": False, "biases": True}, 6 * batch // 8)
            else:
                subprocess.run([explain.PYTHON, os.path.join(HERE, "zoo.py"), "--family", family, "--width", str(width), "--batch", str(batch),
                                "--profile", path], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
                with open(path) as file:
                    self.known[key] = {"config": path}, json.load(file)["samples"]
        return self.known[key]


def text_of(models, family, way, width, batch, wrong, run, plan):
    """The workload as JSON, which is YAML."""
    def text(seconds, case):
        model, samples = models.of(family, width, batch)
        section = {"folder": HERE, "ranks": 2, "cpus": 1, **case.run, **run}
        section["environment"] = {"PYTHONDONTWRITEBYTECODE": "1", **{key: str(value) for key, value in run.get("environment", {}).items()}}
        words = [explain.PYTHON, os.path.join(HERE, "zoo.py"), "--family", family, "--way", way, "--width", width, "--batch", batch, "--seconds", seconds,
                 "--faults", json.dumps(list(wrong.items()))]
        if "steps" in plan:
            words += ["--steps", plan["steps"] // 40]
        section["command"] = [str(each) for each in words]
        if way == "pattern" or "loss" in wrong:
            section["observe"] = {"step_pattern": "it {step} | loss {loss}"}
        steps, ranks = plan.get("steps", 20), section["ranks"]
        data = {"tokens": samples * ranks * 96 * steps, "sequence": 96} if family == "decoder" else {"examples": samples * ranks * steps, "epochs": 1}
        out = {"version": 1, "name": "zoo", "kind": "training", "model": model, "data": data, "batch": {"global_examples": samples * ranks},
               "precision": "fp32", "optimizer": "adamw", "framework": "pytorch", "where": {"cloud": "this-machine"}, "run": section}
        out.update({key: value for key, value in plan.items() if key != "steps"})
        return json.dumps(out)
    return text


def truth_of(folder):
    """By rank, what the programs' own clocks say."""
    found = {}
    for path in glob.glob(os.path.join(folder, "**", "truth.rank-*.json"), recursive=True):
        with open(path) as file:
            found[int(path.rsplit("-", 1)[1].split(".")[0])] = json.load(file)
    return found


def largest(truth, name):
    return max((each[name] for each in truth.values()), default=0.0)


def drawn_groups(seed, runs, wanted):
    """(group, names) of each run. The same of a seed, however many of them were run by another call."""
    rng, plan = random.Random(seed), []
    kinds = [each for each in KINDS if not wanted or each in wanted or "faults" in wanted]
    while len(plan) < runs:
        rng.shuffle(kinds)
        group = [("fault", (each,)) for each in kinds]
        if not wanted or "twins" in wanted:
            group += [("twin", (each,)) for each in rng.sample(sorted(TWINS), min(len(TWINS), 4 if kinds else 7))]
        if not wanted or "pairs" in wanted:
            group += [("pair", each) for each in rng.sample(PAIRS, 4)]
        rng.shuffle(group)
        plan += group
    return plan[:runs]


class Drawn:
    """One run: what it is, and what is done to it."""

    def __init__(self, rng, group, names, families, ways):
        self.group, self.names = group, names
        self.kinds = [KINDS[each] for each in names] if group != "twin" else []
        fits = [each for each in families if all(each in kind.families for kind in self.kinds)]
        self.fits = bool(fits)
        if not fits:
            return
        self.family, self.width, self.batch = rng.choice(fits), rng.choice((0.75, 1.0, 1.25, 1.5)), rng.choice((6, 8, 12))
        knowing = [each for each in ways if all(each in kind.ways for kind in self.kinds)]
        # One of six is told in a way that cannot know: then nothing may be named.
        self.way = rng.choice(knowing if knowing and (group == "pair" or rng.random() < 0.84) else ways)
        self.knowable = bool(self.kinds) and all(self.way in kind.ways and kind.first for kind in self.kinds)
        self.wrong, self.run, self.plan, self.burners, self.case = {}, {}, {}, (), {}
        for name, kind in zip(names, self.kinds):
            self.add(name, kind, kind.draw(rng))
        if group == "twin":
            self.wrong, self.run = dict(TWINS[names[0]][0]), dict(TWINS[names[0]][1])
        self.cancel = max((kind.cancel for kind in self.kinds), default=0)
        self.title = f"{'+'.join(names)} {json.dumps(self.wrong)} {self.family} x{self.width:g} batch {self.batch} by {self.way}"

    def add(self, name, kind, size):
        if name.startswith("hang-"):
            self.wrong["hang"] = size
        elif name in ("batch-smaller", "batch-larger"):
            self.wrong["batch"] = size
        elif name in ("pin", "pin-threads"):
            self.wrong["pin"] = size
        elif name == "neighbour-of-one":
            self.wrong["pin"] = "0,1"
        elif name == "full-disk":
            self.wrong["checkpoint"] = size
            self.case.update(tmpfs_mb=size, needs=("mount",))
        elif name == "link":
            self.case.update(namespace=True, link_mbit=size, needs=("tc",))
        elif name not in ZOO:
            self.wrong[name] = size
        self.run.update(kind.run(size))
        self.plan.update(kind.plan(size))
        self.burners += kind.burners(size)

    def needs(self):
        return {need for kind in self.kinds for need in kind.case.get("needs", ())}

    def text(self, models):
        return text_of(models, self.family, self.way, self.width, self.batch, self.wrong, self.run, self.plan)

    def healthy(self, models):
        """As many ranks and processors, and nothing wrong."""
        run = {"ranks": self.run.get("ranks", 2), **({"cpus": self.run["cpus"]} if self.run.get("ranks") == 1 else {})}
        return text_of(models, self.family, self.way, self.width, self.batch, {}, run, {})

    def verdict(self, named, noisy, failed):
        """And whether the right cause came first. Beside others' work a claim of neighbours is true."""
        meant = [each for each in named if each != "noisy-neighbour" or not noisy or any("noisy-neighbour" in kind.first for kind in self.kinds)]
        if failed:
            return "failed"
        if not self.kinds:
            return "wrong" if meant else "ok"
        if self.group == "pair":
            return "ok" if all(kind.first & set(named) for kind in self.kinds) else "wrong"
        if not self.knowable:
            return "wrong" if set(meant) - {"pauses", "waits-for-disk", "warm-up"} - self.kinds[0].first else "ok"
        return "silent" if not meant else "ok" if meant[0] in self.kinds[0].first else "wrong"


class Bench:
    def __init__(self, options, base):
        self.stoker, self.options, self.base = os.path.abspath(options.stoker), options, base
        self.models, self.twins = Model(base), {}
        self.neighbours = ((None, 1.0, 0),) * options.neighbours

    def once(self, title, text, burners=(), **case):
        made = faults.Case(title, text=text, burners=(*burners, *self.neighbours), **case)
        out = explain.carry_out(self.stoker, made, self.options.seconds, self.base, os.path.join(self.base, "cache"))
        truth = truth_of(out[2])
        if not self.options.keep_runs:
            explain.shutil.rmtree(out[2], ignore_errors=True)
        return out[0], out[1], truth

    def true_cost(self, drawn, truth):
        cost = drawn.kinds[0].cost
        if cost != "twin":
            return largest(truth, cost)
        key = (drawn.family, drawn.width, drawn.batch, drawn.way, drawn.run.get("ranks", 2))
        if key not in self.twins:
            self.twins[key] = self.once("twin", drawn.healthy(self.models))[2]
        return largest(truth, "step_s") - largest(self.twins[key], "step_s") if self.twins[key] else 0

    def judged(self, number, drawn):
        explanation, foreign, truth = self.once(drawn.title, drawn.text(self.models), drawn.burners, cancel_after_s=drawn.cancel, **drawn.case)
        named = [each["cause"] for each in explanation["causes"]]
        noisy = foreign > explain.QUIET or bool(self.neighbours)
        failed = explanation.get("error") if drawn.way != "none" and not drawn.cancel else None
        # A worker's queue costs steps of milliseconds more than the least that is claimed: what the program's own clock says is so.
        waits = truth and largest(truth, "wait_s") >= SMALL * largest(truth, "step_s")
        verdict = drawn.verdict([each for each in named if drawn.group != "twin" or each != "starved-input" or not waits], noisy, failed)
        record = {"number": number, "group": drawn.group, "names": drawn.names, "knowable": drawn.knowable, "verdict": verdict, "noisy": noisy,
                  "foreign": round(foreign, 3), "named": named, "truth": truth, "explanation": explanation}
        told = ""
        found = next((each for each in explanation["causes"] if drawn.kinds and each["cause"] in drawn.kinds[0].first), None)
        # Between a run and its twin others change what they do.
        known = drawn.group == "fault" and (drawn.kinds[0].cost not in (None, "twin") or foreign <= explain.QUIET)
        # No rule claims what takes less of a step than this: the smallest threshold in data/observe/diagnoses.tsv.
        if verdict == "silent" and drawn.kinds[0].cost not in (None, "twin") and truth and largest(truth, "step_s"):
            record["small"] = self.true_cost(drawn, truth) < SMALL * largest(truth, "step_s")
        if known and drawn.knowable and verdict == "ok" and drawn.kinds[0].cost and found and truth:
            true = self.true_cost(drawn, truth)
            if true > 0.002:
                record["near"] = abs(found["cost_s"] / true - 1) <= 0.3
                if found.get("cost_low_s") is not None:
                    record["held"] = found["cost_low_s"] <= true <= found["cost_high_s"]
                told = f"  cost {1e3 * found['cost_s']:.0f} told, {1e3 * true:.0f} ms true{'' if record['near'] else ' FAR'}"
        step = explain.step_of(explanation)
        record["line"] = (f"{number:3d} {drawn.group:5s} {verdict:6s} {drawn.title}: {', '.join(named) or '-'}  step {1e3 * step if step else 0:.0f} told,"
                          f" {1e3 * largest(truth, 'step_s'):.0f} ms own, others {foreign:.0%}{told}{'  ' + failed[:200] if failed else ''}")
        return record


def seed_of(options, base):
    """The one that is asked for, that of the call which this one goes on from, or a new one."""
    path = os.path.join(base, "seed")
    if os.path.exists(path):
        with open(path) as file:
            kept = int(file.read())
        if options.seed not in (0, kept):
            sys.exit(f"error: {base} has runs of seed {kept}: another folder, or that seed")
        return kept
    seed = options.seed or random.SystemRandom().randrange(1, 10**6)
    with open(path, "w") as file:
        file.write(str(seed))
    return seed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--seed", type=int, default=0, help="of another bench; left out: a new one, printed")
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--kinds", default="", help="comma-separated; also twins, pairs; left out: all")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--minutes", type=float, default=0, help="begin no run after so many")
    parser.add_argument("--neighbours", type=int, default=0, help="so many programs compute beside every run")
    parser.add_argument("--keep", default="", help="folder; the same call goes on where another was stopped")
    parser.add_argument("--keep-runs", action="store_true", help="with --keep: what each run left, too")
    options = parser.parse_args()
    wanted = [each for each in options.kinds.split(",") if each]
    unknown = set(wanted) - set(KINDS) - {"twins", "pairs", "faults"}
    if unknown:
        print(f"error: there is no {', '.join(sorted(unknown))}; there are twins, pairs, {', '.join(KINDS)}", file=sys.stderr)
        return 2
    explain.become_subreaper()
    explain.weight = explain.Weight(0)
    have = {"mount": os.geteuid() == 0, "tc": os.geteuid() == 0 and explain.shutil.which("tc") is not None}
    base = options.keep or tempfile.mkdtemp(prefix="stoker-families-")
    os.makedirs(os.path.join(base, "cache"), exist_ok=True)
    seed = seed_of(options, base)
    print(f"seed {seed}: the same runs again with --seed {seed}", flush=True)
    bench, seen, began = Bench(options, base), tally.Tally(base, explain.QUIET), time.monotonic()
    if seen.records:
        print(f"{len(seen.records)} runs are there already")
    for number, (group, names) in enumerate(drawn_groups(seed, options.runs, wanted), 1):
        if number in seen.records:
            continue
        if options.minutes and time.monotonic() - began > 60 * options.minutes:
            print(f"after {options.minutes:g} minutes: {options.runs - number + 1} runs were not begun")
            break
        drawn = Drawn(random.Random(f"{seed} {number}"), group, names, options.families.split(","), options.ways.split(","))
        if not drawn.fits or any(not have[need] for need in drawn.needs()):
            continue
        record = bench.judged(number, drawn)
        print(record["line"], flush=True)
        seen.add(record, f"Seed {seed}, runs of {options.seconds:g} s, {options.neighbours} neighbours of the bench's own.")
    print("\n" + seen.text())
    missed = seen.missed()
    print("every bar is met" if not missed else "NOT met: " + "; ".join(missed))
    if not options.keep:
        explain.shutil.rmtree(base, ignore_errors=True)
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())

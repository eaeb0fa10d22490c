#!/usr/bin/env python3
"""Are causes found in trainings that nobody tuned on? Six families of programs, four ways of telling steps, sizes drawn by a seed.

    ./dev bench families [--seed N] [--runs 60] [--kinds LIST] [--families LIST] [--ways LIST] [--keep DIR]

Every run draws family, way, width and the size of its fault; the seed is printed and makes the same ones again. Twins are the same
without a fault, pairs have two at once. What a fault costs is told by the program's own clock. Prints a line for each run, and
figures: the right cause first, healthy runs accused, costs within 30 %, silent although the way tells what a rule needs."""
import argparse
import collections
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

FAMILIES, WAYS = ("decoder", "encoder", "cnn", "rnn", "mlp", "diffusion"), ("hook", "json", "pattern", "none")
STEPS = ("hook", "json", "pattern")
PARTS = ("hook", "json")
CPUS = faults.CPUS
BARS = {"right first": 0.95, "healthy accused": 0.01, "costs within 30 %": 0.90, "silent": 0.03}


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
    # No rule knows this one: silence is right, a name is wrong.
    "lock": Kind([], of(10, 40), STEPS),
}
ZOO = {"ended-early", "hang-sleep", "hang-stop", "hang-spin"}  # named otherwise there
PAIRS = [("loader-slow", "checkpoint"), ("loader-compute", "gc"), ("loader-slow", "leak"), ("quota", "loader-slow"), ("late-rank", "checkpoint"),
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
    parser.add_argument("--keep", default="")
    options = parser.parse_args()
    stoker = os.path.abspath(options.stoker)
    seed = options.seed or random.SystemRandom().randrange(1, 10**6)
    rng = random.Random(seed)
    print(f"seed {seed}: the same runs again with --seed {seed}", flush=True)
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
    models = Model(base)
    plan = []  # group, names
    kinds = [each for each in KINDS if not wanted or each in wanted or "faults" in wanted]
    while len(plan) < options.runs:
        rng.shuffle(kinds)
        group = [("fault", (each,)) for each in kinds]
        if not wanted or "twins" in wanted:
            group += [("twin", (each,)) for each in rng.sample(sorted(TWINS), min(len(TWINS), 4 if kinds else 7))]
        if not wanted or "pairs" in wanted:
            group += [("pair", each) for each in rng.sample(PAIRS, 4)]
        rng.shuffle(group)
        plan += group
    families, ways = options.families.split(","), options.ways.split(",")
    count, lines, results, began, twins = collections.Counter(), [], [], time.monotonic(), {}

    def once(case):
        return explain.carry_out(stoker, case, options.seconds, base, os.path.join(base, "cache"))

    for number, (group, names) in enumerate(plan[:options.runs], 1):
        if options.minutes and time.monotonic() - began > 60 * options.minutes:
            print(f"after {options.minutes:g} minutes: {options.runs - number + 1} runs were not begun")
            break
        of_kind = [KINDS[each] for each in names] if group != "twin" else []
        fits = [each for each in families if all(each in kind.families for kind in of_kind)]
        if not fits or any(not have[need] for kind in of_kind for need in kind.case.get("needs", ())):
            continue
        family, width, batch = rng.choice(fits), rng.choice((0.75, 1.0, 1.25, 1.5)), rng.choice((6, 8, 12))
        knowing = [each for each in ways if all(each in kind.ways for kind in of_kind)]
        # One of six is told in a way that cannot know: then nothing may be named.
        way = rng.choice(knowing if knowing and (group == "pair" or rng.random() < 0.84) else ways)
        wrong, run, changes, burners, case = {}, {}, {}, (), {}
        for name, kind in zip(names, of_kind):
            size = kind.draw(rng)
            if name.startswith("hang-"):
                wrong["hang"] = size
            elif name in ("batch-smaller", "batch-larger"):
                wrong["batch"] = size
            elif name in ("pin", "pin-threads"):
                wrong["pin"] = size
            elif name == "neighbour-of-one":
                wrong["pin"] = "0,1"
            elif name == "full-disk":
                wrong["checkpoint"] = size
                case.update(tmpfs_mb=size, needs=("mount",))
            elif name == "link":
                case.update(namespace=True, link_mbit=size, needs=("tc",))
            elif name not in ZOO:
                wrong[name] = size
            run.update(kind.run(size))
            changes.update(kind.plan(size if name != "ended-early" else size))
            burners += kind.burners(size)
        if group == "twin":
            wrong, run = dict(TWINS[names[0]][0]), dict(TWINS[names[0]][1])
        title = f"{'+'.join(names)} {json.dumps(wrong)} {family} x{width:g} batch {batch} by {way}"
        cancel = max((kind.cancel for kind in of_kind), default=0)
        sick = faults.Case(title, text=text_of(models, family, way, width, batch, wrong, run, changes), burners=burners, cancel_after_s=cancel, **case)
        explanation, foreign, folder = once(sick)
        named = [each["cause"] for each in explanation["causes"]]
        noisy = foreign > explain.QUIET
        meant = [each for each in named if each != "noisy-neighbour" or not noisy or any("noisy-neighbour" in kind.first for kind in of_kind)]
        knowable = bool(of_kind) and all(way in kind.ways and kind.first for kind in of_kind)
        truth = truth_of(folder)
        verdict, told = "ok ", ""
        failed = explanation.get("error") if way != "none" and not cancel else None
        if failed:
            verdict = "???"
        elif not of_kind:
            verdict = "BAD" if meant else "ok "
            count["healthy"] += 1
            count["accused"] += bool(meant)
        elif group == "pair":
            every = all(kind.first & set(named) for kind in of_kind)
            verdict = "ok " if every else "BAD"
            count["pairs"] += 1
            count["pairs right"] += every
        elif not knowable:
            verdict = "BAD" if set(meant) - {"pauses", "waits-for-disk", "warm-up"} - (of_kind[0].first or set()) else "ok "
            count["not knowable"] += 1
            count["wrong where not knowable"] += verdict == "BAD"
        else:
            right = bool(meant) and meant[0] in of_kind[0].first
            verdict = "ok " if right else "---" if not meant else "BAD"
            count["faults"] += 1
            count["right"] += right
            count["silent"] += not meant
            found = next((each for each in explanation["causes"] if each["cause"] in of_kind[0].first), None)
            cost = of_kind[0].cost
            if right and cost and found and truth:
                true = largest(truth, cost) if cost != "twin" else 0
                if cost == "twin":
                    key = (family, width, batch, way, run.get("ranks", 2))
                    if key not in twins:
                        healthy = faults.Case("twin", text=text_of(models, family, way, width, batch, {}, {"ranks": run.get("ranks", 2), **({"cpus": run["cpus"]} if run.get("ranks") == 1 else {})}, {}))
                        twins[key] = truth_of(once(healthy)[2])
                    true = largest(truth, "step_s") - largest(twins[key], "step_s") if twins[key] else 0
                if true > 0.002:
                    near = abs(found["cost_s"] / true - 1) <= 0.3
                    count["costs"] += 1
                    count["costs near"] += near
                    told = f"  cost {1e3 * found['cost_s']:.0f} told, {1e3 * true:.0f} ms true{'' if near else ' FAR'}"
        step = explain.step_of(explanation)
        mine = largest(truth, "step_s")
        print(f"{number:3d}/{options.runs} {group:5s} {verdict} {title}: {', '.join(named) or '-'}  step {1e3 * step if step else 0:.0f} told, {1e3 * mine:.0f} ms own,"
              f" others {foreign:.0%}{told}{'  ' + failed[:200] if failed else ''}", flush=True)
        results.append({"group": group, "names": names, "title": title, "way": way, "family": family, "verdict": verdict, "named": named,
                        "foreign": foreign, "truth": truth, "explanation": explanation})
        with open(os.path.join(base, "results.json"), "w") as out:
            json.dump({"seed": seed, "results": results}, out, indent=1)
    share = lambda part, whole: count[part] / count[whole] if count[whole] else None
    figures = {"right first": share("right", "faults"), "healthy accused": share("accused", "healthy"), "costs within 30 %": share("costs near", "costs"),
               "silent": share("silent", "faults")}
    print(f"\n{dict(count)}")
    status = 0
    for name, value in figures.items():
        if value is None:
            continue
        met = value >= BARS[name] if BARS[name] > 0.5 else value <= BARS[name]
        status |= not met
        print(f"{name}: {value:.0%}, bar {BARS[name]:.0%}: {'met' if met else 'NOT met'}")
    if count["pairs"]:
        print(f"pairs with both named: {share('pairs right', 'pairs'):.0%} of {count['pairs']}")
    print(f"others used {sum(each['foreign'] for each in results) / max(1, len(results)):.0%} of the machine on average; above {explain.QUIET:.0%}, a claim of "
          "noisy-neighbour is taken as true")
    if not options.keep:
        explain.shutil.rmtree(base, ignore_errors=True)
    return status


if __name__ == "__main__":
    sys.exit(main())

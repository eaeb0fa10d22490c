#!/usr/bin/env python3
"""Are the causes found? Real PyTorch runs under the shipped binary, with faults of known size and healthy twins.

    ./dev bench explain [--repeats 5] [--faults LIST] [--sizes held-out|training] [--keep DIR] [--seconds S]

Prints a line for each run and a table; exit 1 when a figure misses its bar. What others compute on the machine meanwhile is
measured from outside: a run that was disturbed is repeated, and where the machine is never quiet, a claim of
noisy-neighbour is taken as true, and such runs are counted apart."""
import argparse
import collections
import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import faults

BARS = {"faults": 0.95, "twins": 0.95, "pairs": 0.80}
QUIET = 0.10  # share of the machine that others may use
PYTHON = "/usr/bin/python3"
TICKS = os.sysconf("SC_CLK_TCK")


def become_subreaper():
    """Keepers outlive the command that started them: their processor time counts as ours, not as a stranger's."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def reap():
    end = time.monotonic() + 3
    while time.monotonic() < end:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.02)
        except ChildProcessError:
            return


def machine_busy_s():
    with open("/proc/stat") as file:
        fields = [int(each) for each in file.readline().split()[1:9]]
    return (sum(fields[:3]) + fields[5] + fields[6]) / TICKS


def own_cpu_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    mine = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime + mine.ru_utime + mine.ru_stime


GROUPS = "/sys/fs/cgroup/cpu"


class Weight:
    """On a machine that others use too: runs and burners each get so many shares against the 1024 of everything else."""

    def __init__(self, shares):
        self.before = {}
        if not shares:
            return
        for name in ("stoker", "stoker-bench-burners"):
            folder = os.path.join(GROUPS, name)
            os.makedirs(folder, exist_ok=True)
            with open(folder + "/cpu.shares") as file:
                self.before[folder] = file.read()
            with open(folder + "/cpu.shares", "w") as file:
                file.write(str(shares if name == "stoker" else shares // 2))  # a rank against a burner: half each

    def add(self, pid):
        for folder in self.before:
            if folder.endswith("burners"):
                with open(folder + "/cgroup.procs", "w") as file:
                    file.write(str(pid))

    def close(self):
        for folder, text in self.before.items():
            with open(folder + "/cpu.shares", "w") as file:
                file.write(text)
            if folder.endswith("burners"):
                os.rmdir(folder)


weight = None

BURNER = """
import os, sys, time
cpu, share, nice = sys.argv[1:4]
if cpu != "None": os.sched_setaffinity(0, {int(cpu)})
os.setpriority(os.PRIO_PROCESS, 0, int(nice))
share, period = float(share), 0.1
while True:
    end = time.thread_time() + share * period
    while time.thread_time() < end: pass
    if share < 1: time.sleep((1 - share) * period)
"""


def workload(case, seconds, repository):
    if case.text is not None:
        return case.text(seconds, case)
    words = [PYTHON, os.path.join(HERE, "train.py"), "--seconds", seconds, *case.words]
    run = {"folder": HERE, "command": [str(each) for each in words], "ranks": 2, **faults.ONE, **case.run}
    run.setdefault("environment", {})
    run["environment"] = {**{key: str(value) for key, value in run["environment"].items()}, "PYTHONDONTWRITEBYTECODE": "1"}
    ranks = run["ranks"]
    plan = {"version": 1, "name": "bench-explain", "kind": "training",
            "model": {"layers": 4, "hidden": 128, "heads": 4, "ffn": 352, "vocab": 259, "gated": True, "norm": "rmsnorm",
                      "tied_embeddings": False},
            "data": {"tokens": 8 * ranks * 128 * 200, "sequence": 128}, "batch": {"global_examples": 8 * ranks},
            "precision": "fp32", "optimizer": "adamw", "framework": "pytorch", "where": {"cloud": "this-machine"},
            **case.plan, "run": run}
    return json.dumps(plan)


def carry_out(stoker, case, seconds, base, cache):
    """One run; its explanation, and the share of the machine that others used."""
    folder = tempfile.mkdtemp(prefix="run-", dir=base)
    mounted = None
    if case.tmpfs_mb:
        mounted = os.path.join(folder, "small")
        os.mkdir(mounted)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={case.tmpfs_mb}m", "tmpfs", mounted], check=True)
        case = faults.dataclasses.replace(case, run={**case.run, "checkpoint": {"folder": mounted}})
    swap = os.path.join(folder, "swap")
    if case.swap_mb:
        subprocess.run(["dd", "if=/dev/zero", f"of={swap}", "bs=1M", f"count={case.swap_mb}", "status=none"], check=True)
        os.chmod(swap, 0o600)
        subprocess.run(["mkswap", swap], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["swapon", swap], check=True)
    environment = dict(os.environ, STOKER_FOLDER=os.path.join(folder, "state"), XDG_CACHE_HOME=cache, NO_COLOR="1")
    environment.pop("STOKER_SERVER", None)
    node_file = os.path.join(folder, "second-node")
    case = faults.dataclasses.replace(case, words=tuple(str(each).replace("{node}", node_file) for each in case.words))
    file = os.path.join(folder, "run.yaml")
    with open(file, "w") as out:
        out.write(workload(case, seconds, HERE))
    command = [stoker, "run", file, "-o", "json", "--quiet"]
    if case.namespace:
        shape = "ip link set lo up"
        if case.nodes:
            shape += ("; unshare -n sleep %d > /dev/null 2>&1 < /dev/null & n=$!; echo $n > %s; sleep 0.2; for i in fast slow; do"
                      " ip link add ${i}0 type veth peer name ${i}0 netns $n; ip link set ${i}0 up; nsenter -t $n -n ip link set ${i}0 up; done;"
                      " nsenter -t $n -n ip link set lo up; ip addr add 10.77.0.1/24 dev fast0; ip addr add 10.77.1.1/24 dev slow0;"
                      " nsenter -t $n -n ip addr add 10.77.0.2/24 dev fast0; nsenter -t $n -n ip addr add 10.77.1.2/24 dev slow0; true"
                      % (seconds + 60, node_file))
        for device in ("slow0" if case.nodes else "lo",) if case.link_mbit else ():
            # Segments as a device would send them: a bucket smaller than one of loopback's 64 KiB would drop all.
            limit = "tc qdisc add dev %s root tbf rate %gmbit burst 128k latency 200ms" % (device, case.link_mbit)
            shape += " && ip link set %s mtu 1500 gso_max_size 1500 2>/dev/null; %s" % (device, limit)
            if case.nodes:
                shape += " && nsenter -t $n -n ip link set %s mtu 1500 gso_max_size 1500 2>/dev/null; nsenter -t $n -n %s" % (device, limit)
        command = ["unshare", "-n", "bash", "-c", shape + ' && exec "$0" "$@"', *command]
    burners = [subprocess.Popen([PYTHON, "-c", BURNER, str(cpu), str(share), str(nice)]) for cpu, share, nice in case.burners]
    for burner in burners:
        weight.add(burner.pid)
    began, busy, own = time.monotonic(), machine_busy_s(), own_cpu_s()
    child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True)
    try:
        if case.cancel_after_s:
            time.sleep(case.cancel_after_s)
            child.send_signal(signal.SIGINT)
        output, complaint = child.communicate(timeout=seconds + 150)
    except subprocess.TimeoutExpired:
        child.kill()
        output, complaint = child.communicate()
    except KeyboardInterrupt:
        child.send_signal(signal.SIGINT)  # stoker stops its run, and then there is nothing left of it
        child.wait(timeout=60)
        raise
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    took = time.monotonic() - began
    reap()
    foreign = max(0.0, machine_busy_s() - busy - (own_cpu_s() - own)) / took / faults.CPUS
    asked = subprocess.run([stoker, "explain", "r-1", "-o", "json"], env=environment, capture_output=True, text=True, timeout=60)
    if case.swap_mb:
        subprocess.run(["swapoff", swap], check=True)
        os.remove(swap)
    if case.nodes:
        with open(node_file) as file:
            os.kill(int(file.read()), signal.SIGTERM)  # the second node
    if mounted:
        subprocess.run(["umount", "-l", mounted], check=False)
    for controller in ("blkio", "memory"):
        groups = "/sys/fs/cgroup/" + controller
        for name in os.listdir(groups) if os.path.isdir(groups) else []:
            if name.startswith("stoker-bench-") and name != "stoker-bench-burners":
                try:
                    os.rmdir(os.path.join(groups, name))
                except OSError:
                    pass
    try:
        explanation = json.loads(asked.stdout)
    except ValueError:
        explanation = {"causes": [], "terms": [], "error": (complaint or asked.stderr)[-2000:]}
    if not explanation.get("steps") and not case.cancel_after_s:
        explanation["error"] = "no steps: " + (complaint or "")[-1500:]
    return explanation, foreign, folder


def step_of(explanation):
    for term in explanation["terms"]:
        if term["term"] == "step":
            return term.get("measured")


def main():
    global weight
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--repeats", type=int, default=5, help="of each fault and twin")
    parser.add_argument("--first", type=int, default=0, help="begin with the size of this number, from 0")
    parser.add_argument("--faults", default="", help="comma-separated; also twins, pairs, or names of them; left out: all")
    parser.add_argument("--sizes", choices=["held-out", "training"], default="held-out")
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--tries", type=int, default=3, help="of a run that others disturb")
    parser.add_argument("--weight", type=int, default=0, help="cpu.shares of the runs, where others compute (cgroup v1)")
    parser.add_argument("--keep", default="", help="folder for the runs and results.json")
    options = parser.parse_args()
    stoker = os.path.abspath(options.stoker)
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode != 0:
        print("error: /usr/bin/python3 has no torch: apt-get install python3-torch", file=sys.stderr)
        return 3
    have = {"mount": os.geteuid() == 0, "swap": os.geteuid() == 0 and shutil.which("swapon") is not None, "tc": os.geteuid() == 0 and shutil.which("tc") is not None}
    become_subreaper()
    wanted = [each.strip() for each in options.faults.split(",") if each.strip()]
    unknown = set(wanted) - set(faults.FAULTS) - set(faults.TWINS) - set(faults.PAIRS) - {"twins", "pairs", "faults"}
    if unknown:
        print(f"error: there is no {', '.join(sorted(unknown))}; there are {', '.join([*faults.FAULTS, *faults.TWINS, *faults.PAIRS])}",
              file=sys.stderr)
        return 2
    cases = []  # (group, name, case), interleaved: the same minute has all of them
    for repeat in range(options.first, options.first + options.repeats):
        for name, (make, training, held_out) in faults.FAULTS.items():
            if not wanted or name in wanted or "faults" in wanted:
                sizes = training if options.sizes == "training" else held_out
                cases.append(("faults", name, make(*sizes[repeat % len(sizes)])))
        for group, table in (("twins", faults.TWINS), ("pairs", faults.PAIRS)):
            for name, case in table.items():
                if not wanted or name in wanted or group in wanted:
                    cases.append((group, name, case))
    base = options.keep or tempfile.mkdtemp(prefix="stoker-explain-")
    os.makedirs(base, exist_ok=True)
    cache = os.path.join(base, "cache")
    os.makedirs(cache, exist_ok=True)
    weight = Weight(options.weight)
    results, right, all_of, disturbed = [], collections.Counter(), collections.Counter(), 0
    try:
        for number, (group, name, case) in enumerate(cases, 1):
            missing = [each for each in case.needs if not have[each]]
            if missing:
                print(f"{number:3d}/{len(cases)} {group:6s} {case.name}: not tried, this place has no {', '.join(missing)}")
                continue
            for attempt in range(options.tries):
                explanation, foreign, folder = carry_out(stoker, case, options.seconds, base, cache)
                if foreign <= QUIET and not explanation.get("error"):
                    break
            noisy = foreign > QUIET
            disturbed += noisy
            named = [each["cause"] for each in explanation["causes"]]
            meant = [each for each in named if each != "noisy-neighbour" or not noisy or "noisy-neighbour" in case.first]
            if group == "twins":
                good = not meant and not explanation.get("error")
            elif group == "pairs":
                good = all(each in named for each in case.first)
            else:
                good = bool(meant) and meant[0] in case.first
            right[group, name] += good
            all_of[group, name] += 1
            step = step_of(explanation)
            print(f"{number:3d}/{len(cases)} {group:6s} {'ok ' if good else 'BAD'} {case.name}: {', '.join(named) or '-'}"
                  f"  step {1e3 * step if step else 0:.0f} ms, others {foreign:.0%}"
                  + (f"  {explanation['error']}" if explanation.get("error") else ""), flush=True)
            results.append({"group": group, "fault": name, "case": case.name, "words": case.words, "first": case.first,
                            "right": good, "foreign": foreign, "noisy": noisy, "explanation": explanation})
            if not options.keep:
                shutil.rmtree(folder, ignore_errors=True)
    finally:
        weight.close()
        with open(os.path.join(base, "results.json"), "w") as out:
            json.dump(results, out, indent=1)
        if not options.keep:
            shutil.rmtree(base, ignore_errors=True)
    print(f"\n{'':24s} right  of")
    for key in all_of:
        print(f"{key[0]:6s} {key[1]:24s} {right[key]:3d} {all_of[key]:3d}")
    status = 0
    for group, bar in BARS.items():
        total = sum(count for key, count in all_of.items() if key[0] == group)
        if total:
            share = sum(count for key, count in right.items() if key[0] == group) / total
            print(f"{group}: {share:.1%} of {total} right, bar {bar:.0%}: {'met' if share >= bar else 'NOT met'}")
            status |= share < bar
    print(f"disturbed by others: {disturbed} of {len(results)}; sizes: {options.sizes}")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())

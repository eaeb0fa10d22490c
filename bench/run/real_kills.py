#!/usr/bin/env python3
"""kill -9 of the real server at random moments while real processes run, again and again.

    ./dev bench real_kills      or: python3 bench/run/real_kills.py --stoker build/release/stoker [--kills 1000]
                                        [--minutes 20] [--most 120] [--seed 1]

A scenario is 50 runs: gangs of one to four ranks of 0.1 to 2 s, one of them a graph of four steps, programs that fail and
are started again, programs that fail for good, runs that are cancelled and one that is evicted. A client submits them
with Idempotency-Keys and repeats whatever was not answered. Each rank writes down its start and its end, and whether a
process of the same run and rank was still there. The first scenario is played without kills; every other one has to end
in the same states: nothing lost, nothing submitted twice, nothing running twice at once, no process left, a journal that
verifies. Exit code 0: all of it held."""

import argparse
import collections
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bench import Connection, Folder, Server  # noqa: E402

# $1 folder, $2 seconds, $3 attempts that fail, $4 how it leaves then. The lock makes looking and writing one step.
RANK = r"""
import fcntl, os, signal, sys, time
folder, seconds, fails = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
name = os.environ["STOKER_RUN"] + "." + os.environ["RANK"]
attempt = int(os.environ["STOKER_ATTEMPT"].rsplit(".", 1)[-1])
def note(word):
    with open(folder + "/marks", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        mine = folder + "/alive/" + name
        if word == "start":
            try:
                pid, born = open(mine).read().split()
                if open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[19] == born:
                    file.write(f"twice {name} {attempt} {os.getpid()} beside {pid}\n")
            except (OSError, IndexError):
                pass
            born = open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19]
            open(mine, "w").write(f"{os.getpid()} {born}")
        file.write(f"{word} {name} {attempt} {os.getpid()} {time.time():.6f}\n")
def end(*_):
    note("stopped")
    os._exit(143)
signal.signal(signal.SIGTERM, end)
note("start")
time.sleep(seconds)
note("end")
sys.exit(3 if attempt <= fails else 0)
"""


def scenario(seed, folder):
    """(name, spec, what is done to it) of each run."""
    draw = random.Random(seed)

    def command(seconds, fails=0):
        return ["python3", "-S", "-E", "-c", RANK, folder, f"{seconds:.2f}", str(fails)]

    def spec(name, **more):
        return dict(dict(name=name, per_rank={"cpu_milli": 100}, grace_s=5), **more)
    runs = []
    for i in range(20):
        runs.append((spec(f"one-{i}", command=command(draw.uniform(0.1, 2))), None))
    for i in range(12):
        runs.append((spec(f"gang-{i}", ranks=draw.randint(2, 4), command=command(draw.uniform(0.1, 2))), None))
    for i in range(7):
        runs.append((spec(f"again-{i}", ranks=draw.randint(1, 2), max_restarts=3,
                          command=command(draw.uniform(0.1, 0.6), draw.randint(1, 2))), None))
    for i in range(4):
        runs.append((spec(f"broken-{i}", max_restarts=1, command=command(draw.uniform(0.1, 0.5), 1000)), None))
    for i in range(5):
        runs.append((spec(f"cancel-{i}", ranks=draw.randint(1, 3), command=command(600)), "cancel"))
    runs.append((spec("evict", ranks=2, command=command(2)), "evict"))
    step = dict(per_rank={"cpu_milli": 100}, grace_s=5)
    runs.append((dict(name="graph", kind="graph", steps=[
        {"name": "a", "run": dict(step, name="a", command=command(0.3))},
        {"name": "b", "depends_on": ["a"], "run": dict(step, name="b", command=command(0.5))},
        {"name": "c", "depends_on": ["a"], "retries": 2, "run": dict(step, name="c", command=command(0.2, 1))},
        {"name": "d", "depends_on": ["b", "c"], "run": dict(step, name="d", command=command(0.1))}]), None))
    draw.shuffle(runs)
    return runs


class Client:
    """Somebody who does not give up: what was not answered is asked again of whoever serves then."""

    def __init__(self, state):
        self.state = state
        self.stopped = False

    def ask(self, method, path, body=None, key=None, limit_s=240):
        end = time.monotonic() + limit_s
        said = "nothing"
        while time.monotonic() < end and not self.stopped:
            try:
                url = json.load(open(self.state + "/server.json"))["url"].removeprefix("http://")
                token = open(self.state + "/token").read().strip()
                connection = http.client.HTTPConnection(url, timeout=10)
                headers = {"Authorization": "Bearer " + token}
                if key:
                    headers["Idempotency-Key"] = key
                if body is not None:
                    headers["Content-Type"] = "application/json"
                connection.request(method, path, None if body is None else json.dumps(body), headers)
                answer = connection.getresponse()
                text = answer.read()
                connection.close()
                if answer.status not in (503, 504):
                    return answer.status, json.loads(text)
                said = f"{answer.status} {text[:200]}"
            except (OSError, http.client.HTTPException, ValueError) as error:
                said = repr(error)
            time.sleep(0.02)
        raise RuntimeError(f"{method} {path}: no answer in {limit_s} s, last {said}")


def all_runs(client):
    items, cursor = [], ""
    while True:
        _, page = client.ask("GET", "/api/v1/runs?limit=500" + (f"&cursor={cursor}" if cursor else ""))
        items += page["items"]
        cursor = page.get("next_cursor")
        if not cursor:
            return items


ENDED = ("succeeded", "failed", "cancelled")
# From the last kill to the end of all runs. A gang that failed by chance waits 10 s, then 20 s; what the engine has lost
# is found within 15 s.
GRACE_S = 180


def told(client, run):
    """What is known of a run that did not end: its state, what it waits for, and its last events."""
    _, view = client.ask("GET", f"/api/v1/runs/{run['id']}")
    _, events = client.ask("GET", f"/api/v1/runs/{run['id']}/events?limit=500")
    lines = [f"{run['id']} {run['name']} is {run['state']}; why: {json.dumps(view.get('why'))}; "
             f"attempts: {json.dumps(view.get('attempts'))}"]
    lines += ["    " + json.dumps(each) for each in events.get("items", [])[-30:]]
    return "\n".join(lines)


def play(o, seed, kills, draw, until):
    """(kills done, problems, final states by name, attempts)."""
    problems, done = [], 0
    with Folder(o.folder) as folder:
        os.mkdir(folder + "/alive")
        state = folder + "/state"
        client = Client(state)
        runs = scenario(o.seed, folder)
        ids, finished, resting = {}, threading.Event(), []

        def people():
            try:
                for spec, deed in runs:
                    status, answer = client.ask("POST", "/api/v1/runs", spec, key=f"key-{seed}-{spec['name']}")
                    if status != 201:
                        problems.append(f"{spec['name']} was answered {status}: {answer}")
                        continue
                    ids[spec["name"]] = answer["run"]
                    time.sleep(0.02)
                for spec, deed in runs:
                    run = ids.get(spec["name"])
                    if deed is None or run is None:
                        continue
                    for _ in range(2000):
                        _, view = client.ask("GET", f"/api/v1/runs/{run}")
                        if view["run"]["state"] == "running" or view["run"]["state"] in ENDED:
                            break
                        time.sleep(0.05)
                    body = {"notice_s": 1} if deed == "evict" else None
                    status, answer = client.ask("POST", f"/api/v1/runs/{run}/{deed}", body)
                    if status not in (200, 202, 409):
                        problems.append(f"{deed} of {run} was answered {status}: {answer}")
                while not (resting and time.monotonic() > resting[0] + GRACE_S):
                    if all(each["state"] in ENDED for each in all_runs(client)):
                        return
                    time.sleep(0.1)
                left = [each for each in all_runs(client) if each["state"] not in ENDED]
                problems.append(f"{len(left)} runs had not ended {GRACE_S} s after the last kill")
                problems.extend(told(client, each) for each in left)
            except Exception as error:  # told with the rest
                problems.append(repr(error))
            finally:
                finished.set()
        thread = threading.Thread(target=people)
        words = [o.stoker, "up", "--azure-events", "off", "--virtual-nodes", "2"]
        environment = dict(os.environ, STOKER_FOLDER=state, HOME=folder)
        errors = open(folder + "/err", "a+")
        thread.start()
        server = None
        while not finished.is_set():
            server = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
            # Most kills hit a server at work, some one that is just starting; a rest lets things get on.
            wait = 1e9 if done >= kills or time.monotonic() > until else draw.choice(
                (draw.uniform(0, 0.05), draw.uniform(0.03, 0.3), draw.uniform(0.1, 0.6), draw.uniform(0.1, 0.6)))
            if wait == 1e9 and not resting:
                resting.append(time.monotonic())
            end = time.monotonic() + wait
            while not finished.is_set() and time.monotonic() < end and server.poll() is None:
                finished.wait(max(0.0, min(0.05, end - time.monotonic())))
            if finished.is_set():
                break
            if server.poll() is not None:
                errors.seek(0)
                problems.append(f"the server left with {server.returncode}: {errors.read()[-500:]}")
                time.sleep(0.2)
                if len(problems) > 20:
                    client.stopped = True
                    break
                continue
            server.kill()
            server.wait()
            done += 1
        thread.join()
        final, attempts = {}, 0
        if server is not None and server.poll() is None:
            listed = all_runs(client)
            names = collections.Counter(each["name"] for each in listed)
            problems += [f"{name} is there {count} times" for name, count in names.items() if count != 1]
            problems += [f"{name} ({run}) was acknowledged and is gone" for name, run in ids.items()
                         if run not in {each["id"] for each in listed}]
            final = {each["name"]: (each["state"], each.get("cause", "")) for each in listed}
            attempts = sum(each["attempts"] for each in listed)
            time.sleep(0.3)
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                problems.append("the server did not end within 20 s of TERM")
                server.kill()
                server.wait()
        for _ in range(100):
            left = processes_of(folder)
            if not left:
                break
            time.sleep(0.1)
        problems += [f"process {pid} is left: {what}" for pid, what in left]
        for pid, _ in left:
            os.kill(pid, signal.SIGKILL)
        verified = subprocess.run([o.stoker, "journal", "verify"], env=environment, capture_output=True, text=True)
        if verified.returncode != 0:
            problems.append("journal verify: " + verified.stderr)
        problems += check_marks(folder + "/marks")
        if problems and o.keep:
            subprocess.run(["cp", "-a", folder, f"{o.keep}/seed-{seed}"], check=False)
    return done, problems, final, attempts


def check_marks(path):
    """No rank may begin beside a process of its own run and number."""
    marks = open(path).read().splitlines() if os.path.exists(path) else []
    return ["running twice at once: " + line for line in marks if line.startswith("twice")]


def processes_of(folder):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid():
            continue
        try:
            text = open(f"/proc/{pid}/environ", "rb").read() + open(f"/proc/{pid}/cmdline", "rb").read()
            state = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if folder.encode() in text and state != "Z":
            found.append((int(pid), open(f"/proc/{pid}/cmdline", "rb").read().replace(b"\0", b" ")[:100].decode(errors="replace")))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--folder", default=None)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--most", type=int, default=120, help="kills in one scenario; then the server is left alone")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="copy the folder of a scenario with problems here")
    o = parser.parse_args()
    o.stoker = os.path.abspath(o.stoker)
    until = time.monotonic() + o.minutes * 60
    began = time.monotonic()
    _, problems, twin, attempts = play(o, 0, 0, random.Random(0), until)
    print(f"undisturbed: {len(twin)} runs, {attempts} attempts, {time.monotonic() - began:.1f} s, {len(problems)} problems",
          flush=True)
    for problem in problems:
        print("  " + problem)
    kills, scenarios, broken, other = 0, 0, len(problems), 0
    draw = random.Random(o.seed)
    while kills < o.kills and time.monotonic() < until:
        scenarios += 1
        done, problems, final, attempts = play(o, scenarios, min(o.most, o.kills - kills), draw, until)
        kills += done
        different = [f"{name}: {final.get(name)} instead of {state}" for name, state in twin.items() if final.get(name) != state]
        other += len(different)
        broken += len(problems)
        print(f"scenario {scenarios}: {done} kills, {len(final)} runs, {attempts} attempts, {len(different)} other states, "
              f"{len(problems)} problems", flush=True)
        for each in different + problems:
            print("  " + each, flush=True)
    print(f"{kills} kills -9 of the server in {scenarios} scenarios of 50 submissions: {broken} problems (lost, twice, left "
          f"behind, journal), {other} other final states; {time.monotonic() - began:.0f} s", flush=True)
    print(json.dumps({"figure": "kills of the real server", "kills": kills, "scenarios": scenarios, "problems": broken,
                      "other_states": other, "seed": o.seed}))
    sys.exit(0 if broken + other == 0 and kills > 0 else 1)


if __name__ == "__main__":
    main()

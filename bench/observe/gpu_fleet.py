#!/usr/bin/env python3
"""What a fleet of agents costs its server: processor time, memory and disk for each agent, and how quick its charts are.

    ./dev bench gpu_fleet    or: python3 bench/observe/gpu_fleet.py --stoker build/release/stoker [--agents 1000] [--minutes 5]

One real agent on the double of NVIDIA's library (8 boards) tells a server. What it said last is told on, with figures that
move, as so many nodes every ten seconds, over kept connections as agents have them. The senders' own time is not counted.
"""
import argparse
import http.client
import json
import multiprocessing
import os
import random
import sys
import time
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from gpu_test import DOUBLE, build_double  # noqa: E402
from harness import Stoker, wait_for  # noqa: E402

EVERY_S, BOARDS, SENDERS = 10, 8, 8
MEASURES = ("gpu_util", "gpu_sm", "gpu_tensor", "gpu_dram", "gpu_memory", "gpu_power", "gpu_temperature", "gpu_clock", "gpu_pcie",
            "gpu_nvlink", "gpu_held_heat", "gpu_held_power", "gpu_held_brake", "gpu_lost")
STEADY = {"gpu_held_heat": 0, "gpu_held_brake": 0, "gpu_lost": 0}
SCALE = {"gpu_memory": 8e10, "gpu_power": 700, "gpu_temperature": 80, "gpu_clock": 1.98e9, "gpu_pcie": 2e10, "gpu_nvlink": 3e11}


def cpu_s(pid):
    words = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def status_bytes(pid, key):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    return 0


def disk(folder):
    """Bytes of content, and of whole blocks of the file system, and files."""
    content = blocks = files = 0
    for base, _, names in os.walk(folder):
        for name in names:
            state = os.stat(os.path.join(base, name))
            content, blocks, files = content + state.st_size, blocks + state.st_blocks * 512, files + 1
    return content, blocks, files


def real_report(t, key, at):
    t.environment.update(STOKER_NVML_GPUS=str(BOARDS), STOKER_NVML_PROFILE=os.path.join(DOUBLE, "profiles", "h100.profile"),
                         STOKER_NVML_LIBRARY=build_double())
    agent = t.start("agent", "--listen", "127.0.0.1:0", "-q", "--node", "real", "--server", at, "--token-file", key, "--tell-every", "1")
    told = wait_for("the real agent tells", lambda: next((each for each in t.json("top", "--fleet", "--once")["items"]
                                                          if each["present"] == BOARDS), None))
    report = t.json("top", "--fleet", told["node"], "--once")[0]["gpus"]
    agent.terminate()
    agent.wait(20)
    return report


# In processes of their own: what asks for charts must not wait for what makes reports.
def send(host, port, token, report, nodes, until, begin, told):
    counts = []
    report = dict(report)
    connection = http.client.HTTPConnection(host, port, timeout=60)
    draw = random.Random(nodes[0])
    # Each node at its own moment of the ten seconds.
    due = sorted((begin + EVERY_S * draw.random(), node, 1) for node in nodes)
    while due and due[0][0] < until:
        at, node, number = due.pop(0)
        time.sleep(max(0, at - time.time()))
        boards = [{"index": index, "values": {name: STEADY.get(name, SCALE.get(name, 1) * draw.random()) for name in MEASURES}}
                  for index in range(BOARDS)]
        report.update(agent=f"agent-{node}", began_us=1, every_s=EVERY_S, sent_us=int(time.time() * 1e6),
                      points=[{"ago_s": 0.1, "boards": boards, "number": number}])
        body = json.dumps(report, sort_keys=True, separators=(",", ":"))
        began = time.monotonic()
        connection.request("POST", f"/api/v1/nodes/node-{node}/gpus", body,
                           {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        counts.append((answer.status, time.monotonic() - began, len(body), time.time() - at))
        if answer.status != 200:
            print(text, file=sys.stderr)
        due.append((at + EVERY_S, node, number + 1))
    told.put(counts)


def ask(host, port, token, path):
    connection = http.client.HTTPConnection(host, port, timeout=60)
    connection.connect()
    began = time.monotonic()
    connection.request("GET", path, headers={"Authorization": "Bearer " + token})
    answer = connection.getresponse()
    body = answer.read()
    took = time.monotonic() - began
    connection.close()
    return answer.status, took, len(body)


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stoker", default=os.path.join(ROOT, "build/release/stoker"))
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=5)
    options = parser.parse_args()
    t = Stoker(os.path.abspath(options.stoker))
    try:
        server = t.up("--health-gate", "off")
        token = open(os.path.join(t.folder, "token")).read().strip()
        address = urllib.parse.urlparse(json.load(open(os.path.join(t.folder, "server.json")))["url"])
        key = t.write("key", t.json("key", "make", "agents", "--service", "--role", "agent", "--of-provider")["secret"])
        report = real_report(t, key, address.geturl())
        time.sleep(1)
        before = {"rss": status_bytes(server.pid, "VmRSS"), "cpu": cpu_s(server.pid), "disk": disk(os.path.join(t.folder, "node-series"))}
        counts, senders, told = [], [], multiprocessing.Queue()
        begin = time.time()
        until = begin + 60 * options.minutes
        for sender in range(SENDERS):
            nodes = list(range(sender, options.agents, SENDERS))
            senders.append(multiprocessing.Process(target=send, args=(address.hostname, address.port, token, report, nodes, until, begin, told)))
            senders[-1].start()
        charts, wholes, scrapes = [], [], []
        time.sleep(EVERY_S * 2)
        while time.time() < until - 1:
            node = random.randrange(options.agents)
            charts.append(ask(address.hostname, address.port, token, f"/api/v1/nodes/node-{node}/gpus/series?metric=gpu_util,gpu_power"))
            if len(charts) % 10 == 0:
                wholes.append(ask(address.hostname, address.port, token, "/api/v1/gpus"))
                scrapes.append(ask(address.hostname, address.port, token, "/metrics"))
            time.sleep(0.3)
        for _ in senders:
            counts += told.get(timeout=120)
        for each in senders:
            each.join()
        wall = time.time() - begin
        used = cpu_s(server.pid) - before["cpu"]
        rss = status_bytes(server.pid, "VmRSS") - before["rss"]
        server.terminate()
        server.wait(60)
        content, blocks, files = disk(os.path.join(t.folder, "node-series"))
        bad = sum(status != 200 for status, *_ in counts)
        print(f"{options.agents} agents x {BOARDS} boards, a report every {EVERY_S} s of {sum(c[2] for c in counts) / len(counts) / 1024:.1f} KiB, "
              f"{wall:.0f} s, {len(counts)} reports, {bad} refused; load {os.getloadavg()[0]:.1f}")
        print(f"processor: {100 * used / wall:.1f} % of a core, {1e3 * used / len(counts):.2f} ms a report, charts and lists included")
        print(f"memory: {rss / options.agents / 1024:.0f} KiB an agent ({rss / 2**20:.0f} MiB)")
        print(f"disk: {content / options.agents / 1024:.0f} KiB an agent in {files / options.agents:.1f} files "
              f"({blocks / options.agents / 1024:.0f} KiB of blocks) after {wall / 60:.0f} min")
        print(f"answers to reports: p50 {1e3 * quantile([c[1] for c in counts], 0.5):.1f} ms, p99 {1e3 * quantile([c[1] for c in counts], 0.99):.1f} ms; "
              f"sent late by at most {max(c[3] for c in counts):.1f} s")
        for name, asked in (("chart of a node, two measures of 8 boards, an hour", charts), ("the list of all nodes", wholes), ("/metrics", scrapes)):
            if asked:
                print(f"{name}: p50 {1e3 * quantile([a[1] for a in asked], 0.5):.1f} ms, p99 {1e3 * quantile([a[1] for a in asked], 0.99):.1f} ms, "
                      f"{len(asked)} times, {asked[-1][2] / 1024:.0f} KiB")
    finally:
        t.close()


if __name__ == "__main__":
    main()

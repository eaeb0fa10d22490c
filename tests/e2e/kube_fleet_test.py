#!/usr/bin/env python3
"""Gangs on a large Kubernetes: the real API server, scheduler and controllers, and nodes of eight GPUs that kwok plays. Pods are placed, told
to begin and said to end well; nothing is executed. More gangs than there is room for: each gets all of its nodes or none.

    python3 tests/e2e/kube_fleet_test.py --stoker build/release/stoker
    STOKER_E2E_NODES=1000     how many nodes (24)"""

import http.client
import json
import os
import time

import kube
from harness import Skipped, check, main, wait_for

NODES = int(os.environ.get("STOKER_E2E_NODES", "24"))
PER_GANG = 8
LIMIT_S = 240 + NODES
PODS = "/api/v1/namespaces/default/pods"

SERVER = """engine:
  kind: kubernetes
  config: {config}
  image: x
  measures: false
  gpu_models: [{{name: NVIDIA-H100-80GB-HBM3, model: H100-SXM5-80GB}}]
"""


def used(pid):
    """Seconds of processors so far, and MiB of memory."""
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    memory = next(int(line.split()[1]) for line in open(f"/proc/{pid}/status") if line.startswith("VmRSS"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), memory / 1024


def test_gangs_get_all_of_their_nodes_or_none(t):
    try:
        program = kube.program()
    except kube.Missing as why:
        raise Skipped(str(why))
    with kube.Cluster(program) as cluster:
        for i in range(NODES):
            cluster.create(kube.gpu_node(f"gpu-{i:04}"))
        t.write("server.yaml", SERVER.format(config=cluster.path("kubeconfig")))
        server = t.up("--config", os.path.join(t.work, "server.yaml"))
        wait_for("all nodes", lambda: len(t.json("nodes")) == NODES, LIMIT_S)
        rest = used(server.pid)
        t.write("gang.yaml", f"version: 1\nname: gang\nrun: {{command: train, ranks: {8 * PER_GANG}, nodes: {PER_GANG}, gpus: 1}}\n")
        fit = NODES // PER_GANG
        begun = time.monotonic()
        runs = [t.call("submit", "gang.yaml").stdout.strip() for _ in range(fit + max(1, fit // 4))]
        submitted = time.monotonic() - begun
        seen, most, half = set(), 0, 0.0

        def running():
            """Runs that have begun; of each gang that holds nodes all pods hold one, or it is the one being placed."""
            nonlocal most, half
            time.sleep(NODES / 100)  # all pods are read: the asker is not to be what the machine is busy with
            now = [run for run in t.json("ps", "--all") if run["id"] in runs]
            seen.update(run["id"] for run in now if run["state"] in ("running", "succeeded"))
            most = max(most, sum(run["state"] == "running" for run in now))
            check(not [run for run in now if run["state"] == "failed"], f"failed: {now}")
            if not half and 2 * len(seen) >= fit:
                half = time.monotonic() - begun
            held = {}
            try:
                pods = cluster.request("GET", PODS)[1]["items"]
            except (OSError, http.client.HTTPException):  # an API server that is busy answers the next time
                return len(seen) >= fit
            for pod in pods:
                if pod["spec"].get("nodeName") and pod["status"]["phase"] in ("Pending", "Running"):
                    name = pod["metadata"]["labels"]["stoker/operation"]
                    held[name] = held.get(name, 0) + 1
            check(sum(held.values()) <= NODES, f"more pods than nodes: {held}")
            return len(seen) >= fit
        try:
            wait_for("as many gangs as there are nodes for", running, LIMIT_S)
        finally:
            print(f"   {len(seen)} gangs begun after {time.monotonic() - begun:.1f} s, load {os.getloadavg()[0]:.0f}", flush=True)
        placed = time.monotonic() - begun
        wait_for("all gangs", lambda: running() and len(seen) == len(runs), LIMIT_S)
        for run in runs:
            t.wait_state(run, "succeeded", limit_s=LIMIT_S)
        ended = time.monotonic() - begun
        wait_for("no pods and Jobs", lambda: not cluster.request("GET", PODS)[1]["items"], LIMIT_S)
        cpu, memory = used(server.pid)
        # One of all nodes: what is written of it in each pod may not grow with its ranks.
        t.write("whole.yaml", f"version: 1\nname: whole\nrun: {{command: train, ranks: {8 * NODES}, nodes: {NODES}, gpus: 1}}\n")
        whole = time.monotonic()
        run = t.call("submit", "whole.yaml").stdout.strip()
        t.wait_state(run, "running", limit_s=LIMIT_S)
        whole = time.monotonic() - whole
        pod = max(len(json.dumps(each)) for each in cluster.request("GET", PODS)[1]["items"])
        check(pod < 100_000, f"a pod of {8 * NODES} ranks is {pod} bytes")
        t.wait_state(run, "succeeded", limit_s=LIMIT_S)
        print(f"   one gang of all: {8 * NODES} ranks run after {whole:.1f} s, a pod is {pod} bytes")
        print(f"   {NODES} nodes x 8 GPUs: {len(runs)} gangs of {PER_GANG} nodes submitted in {submitted:.1f} s, half of {fit} begun by {half:.1f} s, {fit} by {placed:.1f} s, all ended "
              f"by {ended:.1f} s; most at once {most}; server {memory:.0f} MiB ({rest[1]:.0f} before), {(cpu - rest[0]) / ended:.3f} of a core")


if __name__ == "__main__":
    main(globals())

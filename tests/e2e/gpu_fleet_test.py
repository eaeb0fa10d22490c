"""GPUs of other machines, end to end: a real server and several real agents on the double of NVIDIA's library, which stand for
as many machines. What an agent tells is shown, takes its node out, and is told again after the server was away."""

import json
import os
import re
import time
import urllib.request

from gpu_test import DOUBLE, build_double
from gpu_gate_test import in_memory, out_of_memory, say, stand_in_for_smi
from harness import check, main, wait_for

EVERY_S = 0.5


class Fleet:
    def __init__(self, t, nodes, gate="off"):
        self.t, self.gate = t, gate
        stand_in_for_smi(t, 2)
        in_memory(t)
        listed = [{"name": name, "vcpus": 1, "memory": "1GiB", "gpus": 2, "gpu": "H100"} for name in nodes]
        self.nodes = t.write("nodes.yaml", json.dumps({"nodes": listed}))
        self.server = t.up("--nodes", self.nodes, "--health-gate", gate, "--listen", t.own_address())
        made = t.json("key", "make", "agents", "--service", "--role", "agent", "--of-provider")
        self.key = t.write("agent.key", made["secret"])
        self.at = json.load(open(os.path.join(t.folder, "server.json")))["url"]
        self.ports, self.agents = {}, {}

    def boards(self, node):
        return os.path.join(self.t.base, "boards-" + node)

    def agent(self, node, script=""):
        """The server's own machine has no GPU: the double is in the environment of the agents alone."""
        say(self.boards(node), script)
        port = os.path.join(self.t.base, f"port-{time.monotonic_ns()}")
        kept = dict(self.t.environment)
        self.t.environment.update(STOKER_NVML_GPUS="2", STOKER_NVML_PROFILE=os.path.join(DOUBLE, "profiles", "h100.profile"),
                                  STOKER_NVML_LIBRARY=build_double(), STOKER_NVML_SCRIPT=self.boards(node))
        try:
            started = self.t.start("agent", "--listen", "127.0.0.1:0", "--port-file", port, "-q", "--period", "0.2", "--node", node,
                                   "--server", self.at, "--token-file", self.key, "--tell-every", str(EVERY_S))
        finally:
            self.t.environment = kept
        wait_for("the agent listens", lambda: os.path.exists(port))
        self.ports[node], self.agents[node] = int(open(port).read()), started
        return started

    def metric(self, node, name):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[node]}/metrics", timeout=10) as answer:
            return float(re.search(rf"^{name} (\S+)$", answer.read().decode(), re.M).group(1))

    def told(self):
        return {each["node"]: each for each in self.t.json("top", "--fleet", "--once")["items"]}

    def node(self, name):
        return next(each for each in self.t.json("nodes") if each["name"] == name)

    def answered(self, path):
        token = open(os.path.join(self.t.folder, "token")).read().strip()
        asked = urllib.request.Request(self.at + path, headers={"Authorization": "Bearer " + token})
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return answer.read().decode()


def with_a_fleet(test):
    def run(t):
        try:
            test(t)
        finally:
            out_of_memory(t)
    return run


@with_a_fleet
def test_the_agents_of_three_machines_tell_one_server(t):
    fleet = Fleet(t, ["n1", "n2"])
    for name in ("n1", "n2", "n3"):
        fleet.agent(name, "set * util 37" if name == "n2" else "")
    wait_for("three agents tell", lambda: sum(node["present"] == 2 for node in fleet.told().values()) == 3)
    wait_for("what n2 does", lambda: fleet.told()["n2"].get("busy") == 0.37)
    shown = t.call("top", "--fleet", "--once").stdout
    check("3 nodes, 6 of 6 GPUs answer" in shown and "37 %" in shown, shown)
    boards = t.call("top", "--fleet", "n2", "--once").stdout
    check(boards.count("H100") == 2 and "driver 580" in boards, boards)
    check("GPUs, as the agent there told" in t.call("nodes", "describe", "n2").stdout, "nodes describe")
    metrics = fleet.answered("/metrics")
    check('stoker_gpu_agents{state="telling"} 3\n' in metrics and "stoker_fleet_gpus_answering 6\n" in metrics, metrics)
    # The key tells, and looks at nothing.
    for words in (("ps",), ("top", "--fleet", "--once"), ("nodes", "drain", "n1")):
        refused = t.call(*words, "--token-file", fleet.key, exit=None)
        check(refused.returncode != 0 and "agent" in refused.stderr, f"{words}: {refused.returncode} {refused.stderr}")
    # Nothing of it fills the audit trail.
    audit = os.path.join(t.folder, "audit", "requests.jsonl")
    check(not re.search(r'/gpus".*"status":200', open(audit).read()), open(audit).read())


@with_a_fleet
def test_an_error_of_a_board_elsewhere_takes_its_node_out(t):
    fleet = Fleet(t, ["n1", "n2"], "quick")
    for name in ("n1", "n2"):
        fleet.agent(name)
    wait_for("both tell", lambda: sum(node["present"] == 2 for node in fleet.told().values()) == 2)
    wait_for("both are checked", lambda: all(fleet.node(name).get("check") for name in ("n1", "n2")))
    check(all(fleet.node(name)["state"] != "quarantined" for name in ("n1", "n2")), "healthy boards")
    say(fleet.boards("n2"), "xid 1 95 1")
    wait_for("the quarantine", lambda: fleet.node("n2")["state"] == "quarantined")
    check(fleet.node("n1")["state"] != "quarantined", "the other node")
    told = t.call("nodes", "describe", "n2").stdout
    check("Xid 95" in told and "GPU 1" in told, told)
    wait_for("the table", lambda: "gpu-xid-reset-gpu" in t.call("top", "--fleet", "--once").stdout)
    # A check of it looks at its boards through the agent.
    t.call("nodes", "check", "n2", "--wait", exit=1)
    failed = [each["name"] for each in fleet.node("n2")["check"]["not_passed"] if each["verdict"] == "fail"]
    check("gpu-xid-reset-gpu" in failed, json.dumps(fleet.node("n2")["check"]))
    check(re.search(r"node/n2 +node\.checked +gpus +node_unhealthy", t.call("journal", "show").stdout), "who said so")


@with_a_fleet
def test_what_a_server_missed_is_told_when_it_is_back(t):
    fleet = Fleet(t, ["n1"])
    agent = fleet.agent("n1")
    wait_for("it tells", lambda: fleet.told().get("n1", {}).get("present") == 2)
    fleet.server.terminate()
    fleet.server.wait(30)
    began = time.time()
    wait_for("points wait", lambda: fleet.metric("n1", "stoker_agent_points_waiting") >= 8)
    check(fleet.metric("n1", "stoker_agent_tell_failures_total") > 0, "failures are counted")
    waited = fleet.metric("n1", "stoker_agent_points_waiting")
    fleet.server = t.up("--nodes", fleet.nodes, "--health-gate", fleet.gate, "--listen", fleet.at.split("//")[1])
    wait_for("it is heard again", lambda: fleet.metric("n1", "stoker_agent_points_waiting") <= 1)
    series = json.loads(fleet.answered("/api/v1/nodes/n1/gpus/series?metric=gpu_util&gpu=1&max_points=3600"))["series"]
    kept = sum(count for at, _, _, _, count in series[0]["points"] if at >= int(began) - 1)
    check(kept >= waited, f"{kept} points are kept since {began:.0f}, and {waited} waited for the server")
    check(fleet.metric("n1", "stoker_agent_points_lost_total") == 0, "nothing was lost")
    said = open(agent.err_path).read()
    check(said.count("does not hear") == 1 and said.count("again") == 1, said)
    # A second agent of the same name: the one that began later is heard, and the other is told.
    fleet.agent("n1")
    wait_for("the first is told", lambda: "another agent, which began later" in open(agent.err_path).read())
    check(fleet.metric("n1", "stoker_agent_tell_failures_total") == 0, "the second is heard")


if __name__ == "__main__":
    main(dict(globals()))

"""The health gate with real links: nodes in network namespaces, one of them behind a shaped veth. A slow link is found
before a gang is placed on it, the gang waits with the reason or goes to the other nodes, and starts when it is gone.

Needs root, `ip` and `tc`; says so and passes where they are missing."""

import json
import os
import shutil
import signal
import subprocess

from harness import Failure, check, main, wait_for

NODES = ("a", "b", "c")
PORT = 7411


def words(*arguments, ok=True):
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=30)
    if ok and done.returncode != 0:
        raise Failure(f"{' '.join(arguments)}: {done.stderr}")
    return done


class Network:
    """A namespace for each node with a veth to this host, and a doctor in it; gone with close()."""

    def __init__(self, t):
        self.t = t
        self.tag = f"s{os.getpid() % 10000}"
        self.doctors = []
        self.token = os.path.join(t.work, "link.token")
        with open(self.token, "w") as file:
            file.write("0123456789abcdef0123456789abcdef\n")

    def name(self, node):
        return f"{self.tag}{node}"

    def address(self, node, end):
        return f"10.{200 + os.getpid() % 50}.{10 + NODES.index(node)}.{end}"

    def open(self):
        for node in NODES:
            name = self.name(node)
            words("ip", "netns", "add", name)
            words("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
            words("ip", "addr", "add", self.address(node, 1) + "/24", "dev", name)
            words("ip", "link", "set", name, "up")
            words("ip", "-n", name, "addr", "add", self.address(node, 2) + "/24", "dev", "eth0")
            words("ip", "-n", name, "link", "set", "eth0", "up")
            words("ip", "-n", name, "link", "set", "lo", "up")
            out = open(os.path.join(self.t.work, f"doctor-{node}.out"), "w+")
            self.doctors.append(subprocess.Popen(
                ["ip", "netns", "exec", name, self.t.binary, "doctor", "serve", "--listen",
                 f"{self.address(node, 2)}:{PORT}", "--link-token", self.token],
                stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=self.t.environment,
                start_new_session=True))
            wait_for(f"the doctor of {node}", lambda: "answers network tests" in open(out.name).read())

    def shape(self, node, rate):
        """Both directions, as a port that fell back to a slower speed."""
        name = self.name(node)
        limit = ["root", "tbf", "rate", rate, "burst", "32kbit", "latency", "100ms"]
        words("tc", "qdisc", "replace", "dev", name, *limit)
        words("ip", "netns", "exec", name, "tc", "qdisc", "replace", "dev", "eth0", *limit)

    def unshape(self, node):
        name = self.name(node)
        words("tc", "qdisc", "del", "dev", name, "root")
        words("ip", "netns", "exec", name, "tc", "qdisc", "del", "dev", "eth0", "root")

    def close(self):
        for process in self.doctors:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        for node in NODES:
            words("ip", "netns", "del", self.name(node), ok=False)
            words("ip", "link", "del", self.name(node), ok=False)


def impossible():
    if os.geteuid() != 0:
        return "this is not root"
    for tool in ("ip", "tc"):
        if shutil.which(tool) is None:
            return f"there is no {tool}"
    probe = f"s{os.getpid() % 10000}probe"
    if words("ip", "netns", "add", probe, ok=False).returncode != 0:
        return "network namespaces cannot be made here"
    words("ip", "netns", "del", probe)
    return ""


def node(t, name):
    return next(each for each in t.json("nodes") if each["name"] == name)


def gang(t, name, nodes, script="sleep 0.2"):
    t.write(f"{name}.yaml", f"version: 1\nname: {name}\nrun:\n  command: [sh, -c, '{script}']\n  ranks: {nodes}\n"
                            f"  nodes: {nodes}\n  cpus: 0.1\n  memory: 64MiB\n")
    return t.call("submit", f"{name}.yaml").stdout.strip()


def test_a_slow_link_is_quarantined_and_its_gang_waits_goes_elsewhere_and_starts(t):
    why = impossible()
    if why:
        print(f"   left out: {why}")
        return
    network = Network(t)
    try:
        network.open()
        network.shape("b", "50mbit")
        t.write("nodes.yaml", "nodes:\n" + "".join(
            f"  - {{name: {each}, vcpus: 1, memory: 1GiB, ethernet_gbps: 1, doctor: '{network.address(each, 2)}:{PORT}'}}\n"
            for each in NODES))
        t.up("--nodes", "nodes.yaml", "--health-gate", "quick", "--doctor-token-file", network.token)
        wait_for("every node was checked", lambda: all(each.get("check") for each in t.json("nodes")))
        slow = node(t, "b")
        check(slow["state"] == "quarantined" and slow["cause"] == "node_unhealthy", json.dumps(slow))
        failed = slow["check"]["not_passed"][0]
        check(failed["verdict"] == "fail" and failed["measured"] < failed["expected"], json.dumps(failed))
        check("quarantined" in t.call("nodes").stdout, "the list says so")
        described = t.call("nodes", "describe", "b").stdout
        check("expected" in described and "stoker nodes ready b" in described, described)
        for well in ("a", "c"):
            check(node(t, well)["state"] == "ready", json.dumps(node(t, well)))

        # Over two nodes: not over b.
        run = gang(t, "two", 2)
        ended = t.wait_state(run, "succeeded")
        used = {rank["node"] for attempt in ended["attempts"] for rank in attempt["ranks"]}
        check(used == {"a", "c"}, str(used))
        said = t.call("doctor", run, exit=None).stdout
        check("a checked 20" in said and "c checked 20" in said and "b checked" not in said, said)

        # Over all three: it waits, and says for what and what to do.
        run = gang(t, "three", 3)
        view = wait_for("its reason", lambda: (lambda v: v if v.get("why") else None)(t.describe(run)))
        check(view["why"]["code"] == "node_unhealthy", json.dumps(view["why"]))
        check("b is quarantined" in view["why"]["text"] and "expected" in view["why"]["text"], view["why"]["text"])
        check(any("stoker nodes" in each and " b" in each for each in view["why"]["unblock"]), json.dumps(view["why"]))

        # It is checked again and is still slow: the answer is no.
        again = t.call("nodes", "check", "b", "--wait", exit=1)
        check("fail" in again.stdout, again.stdout)
        network.unshape("b")
        now = t.call("nodes", "check", "b", "--wait")
        check("it is ready now" in now.stdout, now.stdout)
        t.wait_state(run, "succeeded")
    finally:
        network.close()


def test_a_person_overrides_repairs_and_drains(t):
    t.up("--virtual-nodes", "2", "--health-gate", "off")
    names = wait_for("the nodes", lambda: [each["name"] for each in t.json("nodes")])
    check(len(names) == 2, str(names))
    first = names[0]
    check("draining" in t.call("nodes", "drain", first).stdout, "drained")
    check("ready" in t.call("nodes", "ready", first).stdout, "and back")
    for _ in range(3):
        t.call("nodes", "repaired", first)
    lemon = node(t, first)
    check(lemon["state"] == "quarantined" and lemon["cause"] == "node_lemon", json.dumps(lemon))
    run = gang(t, "both", 2)
    view = wait_for("its reason", lambda: (lambda v: v if v.get("why") else None)(t.describe(run)))
    check(view["why"]["code"] == "node_unhealthy" and f"stoker nodes ready {first}" in json.dumps(view["why"]["unblock"]),
          json.dumps(view["why"]))
    # Also after kill -9: it stands in the journal.
    t.servers[-1].kill()
    t.servers[-1].wait()
    t.up("--virtual-nodes", "2", "--health-gate", "off")
    check(wait_for("the node", lambda: node(t, first))["state"] == "quarantined", "quarantine outlives the server")
    answer = t.json("nodes", "ready", first)
    check(answer["state"] == "ready" and answer["cause"] == "node_override", json.dumps(answer))
    t.wait_state(run, "succeeded")
    check("node_override" in t.call("journal", "show").stdout, "the journal says who wanted it")
    for wrong in (("describe", "nosuchnode"), ("check", "nosuchnode"), ("drain", "nosuchnode")):
        check(t.call("nodes", *wrong, exit=None).returncode != 0, str(wrong))
    check("NAME" in t.call("nodes", "drain", exit=2).stderr, "what is missing is said")
    t.call("nodes", "explode", first, exit=2)
    t.call("nodes", "drain", first, "--full", exit=2)


if __name__ == "__main__":
    main(dict(globals()))

#!/usr/bin/env python3
"""stoker doctor on real links, disks and runs: a link that was cut to 200 Mbit/s is measured and fails, a full one passes,
a wrong MTU, a closed port and a wrong token are told, a throttled disk fails, and a run's slow link is named first.

Links are veth pairs between network namespaces, cut with tc's token bucket. Where that is not permitted the tests are
skipped, and the reason is printed."""
import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import harness
from harness import check, wait_for

NUMBERS = itertools.count()
HERE, THERE = "10.251.77.1", "10.251.77.2"


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=30)


@contextlib.contextmanager
def linked(mtu=1500, far_mtu=None, mbit=None):
    """Two network namespaces with a veth pair between them, cut to `mbit` both ways; None: not permitted here."""
    tag = f"stk{os.getpid()}n{next(NUMBERS)}"
    near, far = tag + "a", tag + "b"
    shape = lambda space: ("ip", "netns", "exec", space, "tc", "qdisc", "add", "dev", "v0", "root", "tbf", "rate",
                           f"{mbit}mbit", "burst", "128k", "latency", "50ms")
    steps = [("ip", "netns", "add", near), ("ip", "netns", "add", far),
             ("ip", "link", "add", "v0", "netns", near, "mtu", str(mtu), "type", "veth", "peer", "name", "v0", "netns", far,
              "mtu", str(far_mtu or mtu)),
             ("ip", "-n", near, "addr", "add", HERE + "/24", "dev", "v0"), ("ip", "-n", far, "addr", "add", THERE + "/24", "dev", "v0"),
             ("ip", "-n", near, "link", "set", "v0", "up"), ("ip", "-n", far, "link", "set", "v0", "up"),
             ("ip", "-n", near, "link", "set", "lo", "up"), ("ip", "-n", far, "link", "set", "lo", "up")]
    if mbit:
        steps += [shape(near), shape(far)]
    try:
        for step in steps:
            done = run(*step)
            if done.returncode:
                print(f"no shaped link here ({' '.join(step)}: {done.stderr.strip()[:100]}): not tried")
                yield None
                return
        yield near, far
    finally:
        run("ip", "netns", "del", near)
        run("ip", "netns", "del", far)


def has_namespaces():
    if os.geteuid() == 0 and shutil.which("ip") and shutil.which("tc"):
        return True
    print("needs root, ip and tc: not tried")
    return False


def serve(t, space, *words, address=THERE):
    """stoker doctor serve in a namespace; where it listens."""
    out = os.path.join(t.base, f"serve-{next(NUMBERS)}")
    prefix = ["ip", "netns", "exec", space] if space else []
    process = subprocess.Popen([*prefix, t.binary, "doctor", "serve", "--listen", address + ":0", *words, "-o", "json"], cwd=t.work,
                               env=t.environment, stdin=subprocess.DEVNULL, stdout=open(out, "w"), stderr=open(out + ".err", "w"),
                               text=True)
    process.err_path = out + ".err"
    t.servers.append(process)

    def said():
        check(process.poll() is None, f"serve ended: {open(out + '.err').read()}")
        with contextlib.suppress(ValueError):
            return json.load(open(out))
    address = wait_for("doctor serve listens", said)
    return f"{address['address']}:{address['port']}", process


def look(t, space, *words, exit=None):
    prefix = ["ip", "netns", "exec", space] if space else []
    done = subprocess.run([*prefix, t.binary, "doctor", *words, "-o", "json"], cwd=t.work, env=t.environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    if exit is not None:
        check(done.returncode == exit, f"doctor {' '.join(words)}: exit {done.returncode}, expected {exit}\n{done.stdout}\n{done.stderr}")
    return json.loads(done.stdout)


def named(report, name):
    found = [each for each in report["checks"] if each["name"] == name]
    check(found, f"{name} is not in {[each['name'] for each in report['checks']]}")
    return found[0]


def token_file(t, name="link.token", text="correct horse battery"):
    return t.write(name, text + "\n")


def test_a_full_link_passes_and_a_cut_one_fails(t):
    if not has_namespaces():
        return
    token = token_file(t)
    with linked() as spaces:
        if not spaces:
            return
        peer, server = serve(t, spaces[1], "--link-token", token)
        report = look(t, spaces[0], "network", "--peer", peer, "--link-token", token, "--link-gbps", "1", exit=0)
        link = named(report, "link-bandwidth")
        check(link["verdict"] == "pass" and link["measured"] > 1e9 / 8, str(link))
        check(link["peer"] == peer and "v0" in link["detail"], str(link))
        check(named(report, "link-mtu")["measured"] == 1500, str(report))
        check(0 < named(report, "link-latency")["measured"] < 0.01, str(report))
        server.send_signal(signal.SIGTERM)
        check(server.wait(30) == 0, "serve does not end in order")
        check("0 with a wrong token" in open(server.err_path).read(), open(server.err_path).read())
    with linked(mbit=200) as spaces:
        if not spaces:
            return
        peer, _ = serve(t, spaces[1], "--link-token", token)
        words = ("network", "--peer", peer, "--link-token", token, "--link-gbps", "1")
        for level in ((), ("--full",)):
            report = look(t, spaces[0], *words, *level, exit=1)
            link = named(report, "link-bandwidth")
            mbit = link["measured"] * 8e-6
            print(f"200 Mbit/s measured as {mbit:.1f} ({report['level']}, {report['seconds']:.1f} s)")
            check(180 <= mbit <= 220, f"measured {mbit:.1f} Mbit/s of 200: {link}")
            check(link["verdict"] == "fail" and "tc qdisc" in link["fix"] and "--link-gbps 1" in link["source"], str(link))
            check(report["to_blame"] == {"layer": "network", "check": "link-bandwidth", "fix": link["fix"]}, str(report["to_blame"]))
        text = subprocess.run(["ip", "netns", "exec", spaces[0], t.binary, "doctor", *words], cwd=t.work, env=t.environment,
                              capture_output=True, text=True, timeout=60)
        check(text.returncode == 1 and "FAIL" in text.stdout and "fix: " in text.stdout and "Mbit/s" in text.stdout, text.stdout)
        check(max(map(len, text.stdout.splitlines())) <= 100, "wider than 100 columns:\n" + text.stdout)


def test_a_smaller_mtu_is_told(t):
    if not has_namespaces():
        return
    token = token_file(t)
    with linked(mtu=1500) as spaces:
        if not spaces:
            return
        peer, _ = serve(t, spaces[1], "--link-token", token)
        mtu = named(look(t, spaces[0], "network", "--peer", peer, "--link-token", token, "--mtu", "9000", exit=1), "link-mtu")
        check(mtu["verdict"] == "fail" and mtu["measured"] == 1500 and mtu["expected"] == 9000 and "mtu 9000" in mtu["fix"], str(mtu))
    # One end has jumbo frames, the other has not.
    with linked(mtu=9000, far_mtu=1500) as spaces:
        if not spaces:
            return
        peer, _ = serve(t, spaces[1], "--link-token", token)
        mtu = named(look(t, spaces[0], "network", "--peer", peer, "--link-token", token, exit=1), "link-mtu")
        check(mtu["verdict"] == "fail" and mtu["measured"] == 1500 and mtu["expected"] == 9000, str(mtu))


def test_peers_that_cannot_be_measured_are_told_apart(t):
    token, wrong = token_file(t), token_file(t, "wrong.token", "some other secret")
    peer, server = serve(t, None, "--link-token", token, address="127.0.0.1")
    denied = named(look(t, None, "network", "--peer", peer, "--link-token", wrong, exit=3), "link-bandwidth")
    check(denied["verdict"] == "skipped" and "token" in denied["detail"], str(denied))
    check("token" in named(look(t, None, "network", "--peer", peer, exit=3), "link-bandwidth")["detail"], "without a token")
    server.send_signal(signal.SIGINT)
    check(server.wait(30) == 0, "serve does not end on ctrl-c")
    check("2 with a wrong token" in open(server.err_path).read(), open(server.err_path).read())
    closed = named(look(t, None, "network", "--peer", peer, exit=3), "link-bandwidth")
    check(closed["verdict"] == "skipped" and "stoker doctor serve --listen" in closed["fix"], str(closed))
    if not has_namespaces():
        return
    with linked() as spaces:
        if not spaces:
            return
        # Nobody has this address: it is asked for and does not answer.
        begin = time.monotonic()
        report = look(t, spaces[0], "network", "--peer", "10.251.77.9:7411", exit=1)
        check(time.monotonic() - begin < 30, "a silent peer holds it")
        reach = named(report, "link-reach")
        check(reach["verdict"] == "fail" and report["to_blame"]["layer"] == "network", str(report))
        unknown = named(look(t, spaces[0], "network", "--peer", "10.99.99.99:7411", exit=1), "link-reach")
        check("ip route get" in unknown["fix"], str(unknown))


def test_serving_elsewhere_needs_a_token(t):
    refused = t.call("doctor", "serve", "--listen", "0.0.0.0:0", exit=2)
    check("token" in refused.stderr, refused.stderr)
    peer, _ = serve(t, None, "--link-token", "made.token", address="0.0.0.0")
    made = os.path.join(t.work, "made.token")
    check(os.stat(made).st_mode & 0o777 == 0o600 and len(open(made).read().strip()) >= 32, "the token that was made")
    named(look(t, None, "network", "--peer", peer.replace("0.0.0.0", "127.0.0.1"), "--link-token", made, "--link-gbps", "0.001",
               exit=0), "link-bandwidth")
    t.write("short.token", "abc\n")
    check("no token" in t.call("doctor", "serve", "--link-token", "short.token", exit=2).stderr, "a short token")


def test_usage_is_checked(t):
    for words, part in ((("--peer", "nowhere"), "HOST:PORT"), (("disk", "--disk", "/no/such"), "no folder"), (("dsk",), "did you mean"),
                        (("--size", "Standard_ND96isr_H100_v9"), "did you mean"), (("--link-gbps", "fast"), "link-gbps"),
                        (("--listen", "127.0.0.1:1"), "serve"), (("--server", "http://127.0.0.1:1"), "RUN"), (("r-1", "--baseline"), "baseline"),
                        (("--link-token", "missing"), "missing")):
        error = t.call("doctor", *words, exit=2).stderr
        check(part in error, f"{words}: {error}")
    t.call("doctor", "r-1", exit=2)


def test_this_machine_and_what_is_usual_here(t):
    """Figures of a busy machine vary: what is checked is what is told, not how fast it is."""
    report = look(t, None, "--disk", t.work)
    print(f"quick took {report['seconds']:.2f} s")
    check(report["seconds"] < 30, f"quick took {report['seconds']} s")
    for name in ("memory-bandwidth", "matmul"):
        each = named(report, name)
        check(each["verdict"] == "skipped" and each["measured"] > 1e8 and "nobody says" in each["detail"], str(each))
    check(named(report, "gpu-count")["verdict"] in ("skipped", "pass"), str(report))
    look(t, None, "cpu", "--baseline", exit=0)
    kept = look(t, None, "cpu")
    check(all(each["verdict"] != "skipped" and "this machine on" in each["source"] for each in kept["checks"]), str(kept))
    t.call("doctor", "--forget")
    check(look(t, None, "cpu", exit=3)["verdict"] == "skipped", "still expected something")
    # What the catalogue says of another machine does not fit this one.
    other = look(t, None, "--size", "nd96isr-h100-v5", "--disk", t.work, exit=1)
    check(named(other, "processors")["verdict"] == "fail" and "node_checks.tsv" in named(other, "processors")["source"], str(other))
    check(named(other, "gpu-count")["verdict"] == "fail", str(named(other, "gpu-count")))
    check(os.listdir(t.work) == [], f"left behind: {os.listdir(t.work)}")
    text = t.call("doctor", "--disk", t.work, exit=None).stdout
    check(max(map(len, text.splitlines())) <= 100, text)


def test_disks(t):
    if os.path.isdir("/dev/shm") and run("stat", "-f", "-c", "%T", "/dev/shm").stdout.strip() == "tmpfs":
        memory = named(look(t, None, "disk", "--disk", "/dev/shm"), "disk-write")
        check(memory["verdict"] == "skipped" and memory["measured"] > 0 and "memory, not a disk" in memory["detail"], str(memory))
        check(not [each for each in os.listdir("/dev/shm") if "stoker-doctor" in each], "left behind")
    # Killed in the middle: nothing stays.
    process = t.start("doctor", "disk", "--full", "--disk", t.work)
    time.sleep(0.5)
    process.kill()
    process.wait()
    check(os.listdir(t.work) == [], f"left behind: {os.listdir(t.work)}")
    device = os.stat(t.work).st_dev
    group = f"/sys/fs/cgroup/blkio/stoker-doctor-{os.getpid()}"
    try:
        os.makedirs(group)
        for way in ("read", "write"):
            with open(f"{group}/blkio.throttle.{way}_bps_device", "w") as file:
                file.write(f"{os.major(device)}:{os.minor(device)} 5000000")
    except OSError as error:
        print(f"no throttled disk here ({error}): not tried")
        with contextlib.suppress(OSError):
            os.rmdir(group)
        return

    def enter():
        with open(group + "/cgroup.procs", "w") as file:
            file.write(str(os.getpid()))
    try:
        done = subprocess.run([t.binary, "doctor", "disk", "--disk", t.work, "--full", "-o", "json"], cwd=t.work, env=t.environment,
                              capture_output=True, text=True, timeout=120, preexec_fn=enter)
        check(done.returncode == 1, f"exit {done.returncode}: {done.stdout}{done.stderr}")
        write = named(json.loads(done.stdout), "disk-write")
        print(f"5 MB/s measured as {write['measured'] / 1e6:.2f} MB/s")
        check(write["verdict"] == "fail" and 3e6 < write["measured"] < 8e6 and write["fix"], str(write))
    finally:
        wait_for("the group is empty", lambda: not open(group + "/cgroup.procs").read())
        os.rmdir(group)


# Two ranks that tell steps of 0.2 s, of which 0.09 s in collectives that wait for nobody, and 0.03 s for data.
STEPS = """
import json, os, sys, time
name = os.environ["STOKER_METRICS_FILE"]
rank = int(os.environ.get("RANK", "0"))
if rank:
    stem, ending = os.path.splitext(name)
    name = f"{stem}.rank-{rank}{ending}"
with open(name, "a") as file:
    for step in range(int(sys.argv[1])):
        file.write(json.dumps({"step": step + 1, "step_s": 0.2, "wait_s": 0.03, "allreduce_s": 0.09, "time": time.time()}) + "\\n")
        file.flush()
        time.sleep(0.2)
"""


def submit_slow_link(t, steps):
    t.write("steps.py", STEPS)
    return t.write("slow.yaml", json.dumps({"version": 1, "name": "slow", "run": {
        "folder": t.work, "ranks": 2, "command": [sys.executable, "steps.py", str(steps)]}}))


def test_a_run_with_a_slow_link_names_the_network_first(t):
    t.call("run", submit_slow_link(t, 60), limit_s=180)
    report = look(t, None, "r-1", exit=1)
    check(report["to_blame"]["layer"] == "network" and report["to_blame"]["check"] == "slow-link", str(report["to_blame"]))
    layers = [each["layer"] for each in report["checks"]]
    check(layers == sorted(layers, key=["network", "device", "model"].index), str(layers))
    check(report["share_of_step"] > 0.2 and not report["goes_on"], str(report))
    text = t.call("doctor", "r-1", exit=1).stdout
    lines = text.splitlines()
    check(max(map(len, lines)) <= 100, text)
    check(any(line.startswith("diagnosis") and "the network: slow-link" in line for line in lines), text)
    check(any(line.startswith("fix") for line in lines), text)
    t.up()
    served = look(t, None, "r-1", exit=1)
    check(served["to_blame"] == report["to_blame"], "a server says something else than the folder")


def test_a_run_that_goes_on_is_left_alone(t):
    t.up()
    t.call("submit", submit_slow_link(t, 3000))
    t.wait_state("r-1", "running")
    wait_for("steps are seen", lambda: any(row.get("step_s") for row in json.loads(t.call("top", "-o", "json").stdout)))
    peer, _ = serve(t, None, address="127.0.0.1")
    report = look(t, None, "r-1", "--peer", peer)
    link = named(report, "link-bandwidth")
    check(link["verdict"] == "skipped" and "left out" in link["detail"], str(link))
    check(named(report, "link-latency")["measured"] > 0, str(report))
    check(report["goes_on"] and report["level"] == "gentle", str(report))
    for name in ("memory-bandwidth", "matmul", "disk-write"):
        check(named(report, name)["verdict"] == "skipped" and "left out" in named(report, name)["detail"], str(report))
    t.call("cancel", "r-1")


if __name__ == "__main__":
    harness.main(dict(globals()))

"""A server that is replaced while work runs, a socket that somebody else holds, a journal that is made small."""

import http.client
import json
import os
import socket
import subprocess
import threading
import urllib.request

from harness import check, main, wait_for


def test_an_upgrade_refuses_nobody(t):
    """A new server takes the place of the one that runs: the port answers all the time, a follower sees each line once, the
    work has one attempt; and a new one that cannot start leaves the old one alone."""
    old = t.up("--listen", "127.0.0.1:0")
    port = int(json.load(open(os.path.join(t.folder, "server.json")))["url"].rsplit(":", 1)[1])
    script = "import time\nfor i in range(40): print('line', i, flush=True); time.sleep(0.1)\n"
    run = t.call("submit", "--name", "talker", "--", "python3", "-c", script).stdout.split()[0]
    t.wait_state(run, "running")
    logs = t.start("logs", "-f", run)
    refused = t.call("up", "--replace", "--listen", "127.0.0.1:1", exit=2)
    check(f"port {port}" in refused.stderr and old.poll() is None, refused.stderr)
    t.write("bad.yaml", "max_queud: 1\n")
    refused = t.call("up", "--replace", "--config", "bad.yaml", exit=2)
    check("max_queud" in refused.stderr and old.poll() is None, refused.stderr)
    outcomes, stop = [], threading.Event()

    def knock():
        while not stop.is_set():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=30) as answer:
                    outcomes.append(answer.status)
            except (OSError, http.client.HTTPException) as error:
                outcomes.append(repr(error))
    knocker = threading.Thread(target=knock)
    knocker.start()
    try:
        t.up("--replace")
        check(old.wait(timeout=60) == 0 and "takes over" in open(old.err_path).read(), open(old.err_path).read())
        before = len(outcomes)
        wait_for("answers of the new one", lambda: len(outcomes) > before + 3)
    finally:
        stop.set()
        knocker.join()
    # One that was being answered when the old one closed may be cut off; none is refused.
    check(not any("refused" in str(each) for each in outcomes), str([each for each in outcomes if each != 200]))
    check(json.load(open(os.path.join(t.folder, "server.json")))["url"].endswith(f":{port}"), "the same port")
    check(logs.wait(timeout=60) == 0, open(logs.err_path).read())
    check(open(logs.out_path).read() == "".join(f"line {i}\n" for i in range(40)), open(logs.out_path).read())
    check(len(t.wait_state(run, "succeeded")["attempts"]) == 1, "nothing was started again")


def test_a_service_manager_may_hold_the_socket(t):
    """As systemd does with stoker.socket: the server listens on what it is given, and on nothing else."""
    with socket.socket() as given:
        given.bind(("127.0.0.1", 0))
        given.listen()
        port = given.getsockname()[1]
        script = 'eval "exec 3<&$1"; export LISTEN_PID=$$ LISTEN_FDS=1; exec "$0" up'
        server = subprocess.Popen(["sh", "-c", script, t.binary, str(given.fileno())], cwd=t.work, env=t.environment,
                                  pass_fds=(given.fileno(),), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=60) as answer:
            check(answer.status == 200, "it answers")
        file = os.path.join(t.folder, "server.json")
        wait_for("its address", lambda: os.path.exists(file))
        address = json.load(open(file))["url"]
        check(address == f"http://127.0.0.1:{port}", address)
        check(t.json("ps") == [], "and clients find it")
    finally:
        server.terminate()
        check(server.wait(timeout=60) == 0, "it ends as told")


def test_a_journal_is_made_small(t):
    """Somebody's stoker.db has grown: old records go into a file of their own, and nothing is lost by it."""
    for i in range(3):
        t.call("run", "--quiet", "--", "true")
    server = t.up()
    check("in use by process" in t.call("journal", "compact", exit=2).stderr, "a server has it")
    server.terminate()
    server.wait()
    before = t.call("journal", "show", "--limit", "1000").stdout
    told = t.json("journal", "compact")
    check(told["first"] == 1 and os.path.dirname(told["archive"]).endswith("/archive"), str(told))
    check(os.stat(told["archive"]).st_mode & 0o077 == 0, "for its owner only")
    check(t.call("journal", "show", "--limit", "1000").stdout == before, "all is there")
    check("checked too" in t.call("journal", "verify").stdout, "verified")
    check("nothing to archive" in t.call("journal", "compact", exit=2).stderr, "once")
    check([run["id"] for run in t.json("ps", "--all")] != [], "runs are known")
    t.up()
    check(t.call("submit", "--", "true").stdout.split()[0] == "r-4", "numbers go on")


if __name__ == "__main__":
    main(dict(globals()))

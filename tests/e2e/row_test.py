#!/usr/bin/env python3
"""Runs that are edited, repeated, told of, entered and watched: by the shipped binary, on a server of its own."""

import http.server
import json
import os
import signal
import stat
import threading

from harness import check, main, wait_for


class Receiver:
    """Takes POSTs; refuses as many as it is told to."""

    def __init__(self, refuse=0):
        self.got, self.refuse = [], refuse
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.got.append((self.headers["Idempotency-Key"], json.loads(body)))
                outer.refuse -= 1
                self.send_response(503 if outer.refuse >= 0 else 204)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/in"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def describe(t, run):
    return json.loads(t.call("describe", run, "-o", "json").stdout)


def test_an_end_is_told_to_the_web_and_to_the_program(t):
    """A night of work that failed is known in the morning, also when the receiver was away for a moment."""
    bin_folder = os.path.join(t.base, "bin")
    os.mkdir(bin_folder)
    told = os.path.join(t.base, "told.txt")
    for name in ("tell",):
        path = os.path.join(bin_folder, name)
        with open(path, "w") as file:
            file.write(f'#!/bin/sh\n{{ echo "{name} $*"; cat; }} >> {told}\n')
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    config = os.path.join(t.base, "server.yaml")
    with open(config, "w") as file:
        file.write(f"notify: {{program: {bin_folder}/tell}}\n")
    receiver = Receiver(refuse=1)
    t.up("--config", config)
    t.call("submit", "-n", "works", "--notify", receiver.url + ",failed", "--", "true")
    t.call("submit", "-n", "breaks", "--notify", receiver.url + ",failed", "--notify", "program", "--", "false")
    wait_for("the POST, tried again", lambda: len(receiver.got) >= 2)
    check([key for key, _ in receiver.got] == [receiver.got[0][0]] * 2, f"one id for one end: {receiver.got}")
    body = receiver.got[1][1]
    check(body["name"] == "breaks" and body["state"] == "failed" and body["cause"] == "user_error", f"{body}")
    wait_for("the program", lambda: os.path.exists(told) and '"run":"r-2"' in open(told).read().replace(" ", ""))
    bad = t.call("submit", "--notify", "anna@b\nBcc: x", "--", "true", exit=2)
    check("nobody that can be told" in bad.stderr, bad.stderr)


def test_a_run_without_a_server_tells_its_end_before_it_leaves(t):
    """stoker run carries its own engine, which ends with it: nobody comes back for what was not told."""
    receiver = Receiver()
    t.call("run", "--notify", receiver.url, "--", "true")
    check([body["state"] for _, body in receiver.got] == ["succeeded"], f"{receiver.got}")


def test_what_waits_is_edited_and_what_has_begun_is_not(t):
    """A typo in a run that waits costs no place in the queue."""
    t.up()
    run = t.call("submit", "--begin", "2h", "--", "false").stdout.strip()
    t.call("edit", run, "--name", "better", "--priority", "7", "-e", "LR=1e-4", "--begin", "now", "--", "sh", "-c", 'test "$LR" = 1e-4')
    wait_for("its end", lambda: describe(t, run)["run"]["state"] == "succeeded")
    check(describe(t, run)["run"]["name"] == "better", "the new name")
    late = t.call("edit", run, "--priority", "1", exit=2)
    check("only what waits" in late.stderr, late.stderr)
    check("what is to be changed" in t.call("edit", run, exit=2).stderr, "nothing said is an error")


def test_a_run_is_held_from_its_first_moment(t):
    """As sbatch --hold: nothing of it starts before somebody says so, not even on a fleet that is free."""
    t.up()
    run = t.call("submit", "--hold", "--", "true").stdout.strip()
    later = t.call("submit", "--", "true").stdout.strip()
    wait_for("the one behind it", lambda: describe(t, later)["run"]["state"] == "succeeded")
    view = describe(t, run)["run"]
    check(view["held"] and view["state"] == "queued", f"{view}")
    check(not describe(t, run)["attempts"], "it was started")
    t.call("release", run)
    wait_for("its end", lambda: describe(t, run)["run"]["state"] == "succeeded")


def test_a_row_has_its_next_in_the_queue_until_that_is_cancelled(t):
    """Who looks at the queue sees what comes tonight."""
    t.up()
    t.call("submit", "-n", "row", "--every", "1h", "--times", "3", "--", "true")
    wait_for("the next", lambda: '"r-2"' in t.call("ps", "--all", "-o", "json").stdout)
    text = t.call("describe", "r-2").stdout
    check("repeats" in text and "number 2 of 3" in text and "r-1" in text, text)
    t.call("cancel", "r-2")
    wait_for("its end", lambda: describe(t, "r-1")["run"]["state"] == "succeeded")
    check('"r-3"' not in t.call("ps", "--all", "-o", "json").stdout, "the row went on")
    check("cron" in t.call("submit", "--every", "0 0 31 2 *", "--", "true", exit=2).stderr, "a day that never comes")


def test_a_program_runs_beside_a_rank_and_attach_ends_with_it(t):
    """Somebody looks into a run that hangs without stopping it."""
    t.up()
    run = t.call("submit", "-e", "COLOUR=blue", "-C", t.work, "--", "sh", "-c", "echo here; while ! test -e go; do sleep 0.05; done; exit 3")
    run = run.stdout.strip()
    wait_for("it runs", lambda: describe(t, run)["run"]["state"] == "running")
    seen = t.call("exec", run, "--", "sh", "-c", 'echo "$COLOUR $STOKER_RUN"; pwd')
    check(seen.stdout.split() == ["blue", run, t.work], seen.stdout)
    left = t.call("exec", run, "--", "sh", "-c", "exit 5", exit=5)
    check("left with 5" in left.stderr, left.stderr)
    check("there is no program" in t.call("exec", run, "--", "nosuchprogram", exit=2).stderr, "a program that is not there")
    check("has 1 rank" in t.call("exec", run, "--rank", "7", "--", "true", exit=2).stderr, "a rank that is not there")
    with open(os.path.join(t.work, "go"), "w"):
        pass
    watched = t.call("attach", run, exit=1)
    check("here" in watched.stdout and "failed" in watched.stderr, watched.stdout + watched.stderr)
    check("nothing of it runs" in t.call("exec", run, "--", "true", exit=2).stderr, "a run that has ended")


def test_a_keeper_that_is_stopped_is_named_while_cancel_waits(t):
    """Who cancels and waits reads which process to wake."""
    t.up()
    run = t.call("submit", "--", "sleep", "600").stdout.strip()
    wait_for("it runs", lambda: describe(t, run)["run"]["state"] == "running")
    launches = os.path.join(t.folder, "run")
    keeper = json.load(open(os.path.join(launches, os.listdir(launches)[0], "keeper.json")))["pid"]
    os.kill(keeper, signal.SIGSTOP)
    try:
        t.call("cancel", run)
        wait_for("the word", lambda: f"kill -CONT {keeper}" in t.call("describe", run).stdout)
    finally:
        os.kill(keeper, signal.SIGCONT)
    wait_for("its end", lambda: describe(t, run)["run"]["state"] == "cancelled")


if __name__ == "__main__":
    main(globals())

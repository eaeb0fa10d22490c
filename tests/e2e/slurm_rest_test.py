#!/usr/bin/env python3
"""A real slurmrestd as sites offer it over the network: https, and a token that ends (tests/e2e/slurm_front.py stands before it). What a
person sees of a token that is over, of one that nobody made, and of a certificate that nobody vouches for; and that none of it costs a run.
Where the packages are missing it says so and passes.

    python3 tests/e2e/slurm_rest_test.py --stoker build/release/stoker [NAME...]"""

import json
import os
import pwd
import re

import slurm_cluster
from harness import Skipped, check, wait_for
from slurm_front import Front, certificate

CLUSTER = None
LIMIT_S = 240
USER = pwd.getpwuid(os.getuid()).pw_name


def renew(t, front, lives_s=600, text="SLURM_JWT={}\n", user=USER):
    """As `scontrol token username=... > FILE`, in one piece."""
    token = front.token(user, lives_s)
    with open(os.path.join(t.base, "token.new"), "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(text.format(token))
    os.replace(file.name, os.path.join(t.base, "slurm.token"))
    return token


def up(t, front, trusted=None):
    CLUSTER.resume_nodes()
    t.write("server.yaml", f"""engine:
  kind: slurm
  partition: main
  config: {CLUSTER.config}
  rest: {{url: "{front.url}", user: {USER}, token_file: {t.base}/slurm.token, ca_file: {trusted or front.trusted}}}
""")
    return t.up("--config", os.path.join(t.work, "server.yaml"))


def front_of(t):
    if why := CLUSTER.why_no_rest():
        raise Skipped(why)
    return Front(t.base, CLUSTER.rest_url())


def submit(t, *words):
    return t.call("submit", *words).stdout.strip()


def told(t, words):
    """What whoever looks after the server hears, on one line."""
    def log():
        found = re.search(words, " ".join(open(t.servers[-1].err_path).read().split()))
        return found.group(0) if found else ""
    return wait_for(f"the word of it: {words}", log, LIMIT_S)


def test_over_https_with_a_token_a_run_is_the_same(t):
    front = front_of(t)
    try:
        token = renew(t, front)
        up(t, front)
        wait_for("the nodes of the cluster", lambda: len(t.json("nodes")) == 2, LIMIT_S)
        run = submit(t, "--ranks", "2", "--", "sh", "-c", "echo rank $RANK on $SLURMD_NODENAME; env")
        view = t.wait_state(run, "succeeded", "failed", limit_s=LIMIT_S)
        check(view["run"]["state"] == "succeeded", json.dumps(view))
        check("rank 0 on n1" in t.call("logs", run).stdout, t.call("logs", run).stdout)
        endless = submit(t, "--", "sleep", "600")
        t.wait_state(endless, "running", limit_s=LIMIT_S)
        t.call("cancel", endless)
        t.wait_state(endless, "cancelled", limit_s=LIMIT_S)
        check(front.seen == {token}, "it asked with another token than the one in its file")
        # It is a key to all that its user has in the cluster.
        kept = [os.path.join(folder, name) for folder, _, names in os.walk(t.folder) for name in names]
        with_it = [path for path in kept if os.path.isfile(path) and token.split(".")[2].encode() in open(path, "rb").read()]
        check(not with_it, f"the token was written into {with_it}")
    finally:
        front.close()


def test_a_token_that_ends_costs_no_run(t):
    front = front_of(t)
    try:
        renew(t, front)
        up(t, front)
        wait_for("the nodes of the cluster", lambda: len(t.json("nodes")) == 2, LIMIT_S)
        for way in ("controller", "gateway"):
            front.refuses_as = way
            go = os.path.join(t.work, "go-" + way)
            running = submit(t, "--", "sh", "-c", f"echo here >> {t.work}/{way}-running; while [ ! -e {go} ]; do sleep 0.1; done")
            t.wait_state(running, "running", limit_s=LIMIT_S)
            renew(t, front, lives_s=-3)
            said = "401: Authentication failure" if way == "gateway" else "500: Protocol authentication error"
            told(t, rf"the token in \S+/slurm.token ended at 20\S+Z; a new one: scontrol token username={USER} > \S+/slurm.token .slurmrestd says {said}")
            wait_for("the word of it beside the nodes", lambda: "the engine does not answer: the token in" in t.call("nodes").stdout, LIMIT_S)
            late = submit(t, "--", "sh", "-c", f"echo here >> {t.work}/{way}-late")
            wait_for("why it waits", lambda: "ended at" in t.call("describe", late).stdout, LIMIT_S)
            check(t.describe(running)["run"]["state"] == "running", "what runs was given up")
            check(t.describe(late)["run"]["state"] not in ("failed", "cancelled"), json.dumps(t.describe(late)["run"]))
            renew(t, front, text="{}")  # the token alone
            open(go, "w").close()
            for run in (running, late):
                view = t.wait_state(run, "succeeded", "failed", limit_s=LIMIT_S)
                check(view["run"]["state"] == "succeeded", json.dumps(view))
            for name in ("running", "late"):
                check(open(f"{t.work}/{way}-{name}").read() == "here\n", f"{name} ran more than once")
        # One that is good by its own word, and that the cluster did not make.
        front.key = b"another key"
        told(t, f"is not taken for {USER}; a new one: scontrol token")
    finally:
        front.close()


def test_a_certificate_that_nobody_vouches_for_is_said(t):
    front = front_of(t)
    try:
        renew(t, front)
        other, _ = certificate(t.base, "other")
        up(t, front, trusted=other)
        told(t, rf"the certificate of 127.0.0.1:\d+ is not trusted: .*; who is trusted: {other} .engine.rest.ca_file")
        wait_for("the word of it beside the nodes", lambda: "the engine does not answer" in (said := t.call("nodes").stdout) and other in said, LIMIT_S)
        # The right one is put there under the same name: a server reads it when it starts.
        with open(other, "w") as file:
            file.write(open(front.trusted).read())
        t.servers[-1].terminate()
        t.servers[-1].wait(60)
        t.up()
        run = submit(t, "--", "true")
        t.wait_state(run, "succeeded", limit_s=LIMIT_S)
    finally:
        front.close()


if __name__ == "__main__":
    slurm_cluster.main(globals())

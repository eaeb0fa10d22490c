#!/usr/bin/env python3
"""A real Slurm with slurmdbd and its database: QOS that preempt each other, limits of accounts and QOS as reasons of a wait, and our account held
against that of the cluster. Where the packages are missing it says so and passes.

    python3 tests/e2e/slurm_accounting_test.py --stoker build/release/stoker [NAME...]

STOKER_SLURMDBD_ROOT=FOLDER: where they were unpacked (apt-get download ...; dpkg -x), instead of installed."""

import json
import os

import slurm_cluster
from harness import check, wait_for

LIMIT_S = 120
CLUSTER = None
# low gives way to high. Of lab nobody has more than 8 GPUs at once, of single one job runs at a time.
ACCOUNTS = ("add account lab Description=lab Organization=lab", "add qos low PreemptMode=requeue Priority=1",
            "add qos high Preempt=low PreemptMode=off Priority=100", "add qos single MaxJobsPerUser=1", "add qos small MaxTRESPerJob=gres/gpu=1",
            "modify account lab set GrpTRES=gres/gpu=8", "add user root account=lab",
            "modify user root set qos=normal,low,high,single,small")


def up(t, **engine):
    """A server whose jobs are of this QOS or account."""
    t.write("server.yaml", json.dumps({"engine": {"kind": "slurm", "partition": "main", "config": CLUSTER.config, "notice": "5s", **engine}}))
    server = t.up("--config", os.path.join(t.work, "server.yaml"))
    wait_for("the nodes of the cluster", lambda: len(t.json("nodes")) == 2, LIMIT_S)
    return server


def submit(t, *words):
    return t.call("submit", *words).stdout.strip()


def end(t, server):
    wait_for("an empty queue", CLUSTER.quiet, LIMIT_S)
    server.terminate()
    server.wait(60)


def test_usage_agrees_with_the_cluster_s_own_accounting(t):
    """sacct, of slurmdbd, counts what we count: time, nodes, CPUs and, where the cluster accounts for them, GPUs. Comes first: to this server, jobs of others
    are jobs without a try."""
    server = up(t)
    done = submit(t, "--ranks", "2", "--nodes", "2", "--gpus", "2", "--cpus", "1.5", "--", "sleep", "2")
    failed = submit(t, "--ranks", "1", "--gpus", "1", "--", "sh", "-c", "sleep 1; exit 3")
    for run, state in ((done, "succeeded"), (failed, "failed")):
        t.wait_state(run, state, limit_s=LIMIT_S)
    names = ["stoker-" + attempt["operation"] for run in (done, failed) for attempt in t.describe(run)["attempts"]]
    for name in names:
        wait_for(f"{name} in the accounting", lambda: CLUSTER.say("sacct", "-X", "-n", "-P", f"--name={name}", "-S", "now-1days", "-o", "State,End").split("|")[0] in ("COMPLETED", "FAILED"), LIMIT_S)
    t.environment["SLURM_CONF"] = CLUSTER.config
    said = t.call("usage", "--against", "sacct", exit=None)
    check(said.returncode == 0 and f"{len(names)} of {len(names)} tries that have ended agree" in said.stdout, said.stdout + said.stderr)
    check("counts no GPUs" not in said.stdout, said.stdout)
    end(t, server)


def test_a_higher_qos_takes_the_nodes_and_gives_them_back(t):
    """A job of the QOS above requeues nobody's work for good: the attempt ends as preempted, and the run goes on from what it wrote."""
    server = up(t, qos="low")
    script = f"""trap 'echo told >> {t.work}/told' USR1
at=$(cat {t.work}/at 2>/dev/null || echo 0)
while [ $at -lt 100 ]; do at=$((at + 1)); echo $at > {t.work}/at; [ ! -e {t.work}/go ] || exit 0; sleep 0.2; done"""
    run = submit(t, "--nodes", "2", "--ranks", "2", "--gpus", "8", "--", "sh", "-c", f"[ $RANK = 0 ] || {{ while [ ! -e {t.work}/go ]; do sleep 0.1; done; exit 0; }}\n{script}")
    t.wait_state(run, "running", limit_s=LIMIT_S)
    wait_for("its first steps", lambda: os.path.exists(os.path.join(t.work, "at")), LIMIT_S)
    CLUSTER.run("sbatch", "--qos=high", "-p", "main", "-N", "2", "--exclusive", "--chdir=/", "--output=/dev/null", "--wrap=sleep 2")
    view = wait_for("the preemption", lambda: (lambda v: v if any(each.get("cause") == "preempted" for each in v["attempts"]) else None)(t.describe(run)), LIMIT_S)
    view = wait_for("its second attempt", lambda: (lambda v: v if len(v["attempts"]) == 2 and v["run"]["state"] == "running" else None)(t.describe(run)), LIMIT_S)
    open(os.path.join(t.work, "go"), "w").close()
    view = t.wait_state(run, "succeeded", "failed", limit_s=LIMIT_S)
    check(view["run"]["state"] == "succeeded" and len(view["attempts"]) == 2, json.dumps(view["attempts"]))
    end(t, server)


def test_limits_of_accounts_and_qos_are_why_a_run_waits(t):
    """Slurm's word for it, our cause and what it means; what no end of another job changes is told apart."""
    for number, (engine, runs, reason, meaning) in enumerate((
            ({"qos": "single"}, 2, "QOSMaxJobsPerUserLimit", "its user or account has all that its QOS gives"),
            ({"account": "lab"}, 2, "AssocGrpGRES", "its account has all that it may in use"),
            ({"qos": "small"}, 1, "QOSMaxGRESPerJob", "it asks for more than its QOS gives to one job"))):
        server = up(t, **engine)
        go = os.path.join(t.work, f"go-{number}")
        all_of_them = [submit(t, "--gpus", "6", "--", "sh", "-c", f"while [ ! -e {go} ]; do sleep 0.1; done") for _ in range(runs)]
        said = wait_for(f"the word of {reason}", lambda: (lambda text: text if reason in text else None)(
            " ".join(t.call("describe", all_of_them[-1]).stdout.split())), LIMIT_S)
        check(meaning in said, said)
        waits = t.describe(all_of_them[-1])["attempts"][-1]["engine_wait"]
        check(waits["cause"] == "quota", json.dumps(waits))
        open(go, "w").close()
        if runs == 1:
            t.call("cancel", all_of_them[0])
        for run in all_of_them:
            t.wait_state(run, "succeeded", "cancelled", limit_s=LIMIT_S)
        end(t, server)


def test_what_ended_while_the_controller_forgot_is_known_from_the_accounting(t):
    """A job that was cancelled before it began leaves no word of its own, and its controller forgets it: sacct knows."""
    server = up(t)
    CLUSTER.run("scontrol", "update", "partitionname=main", "state=down")
    try:
        run = submit(t, "--", "true")
        wait_for("its job in the queue", lambda: CLUSTER.say("squeue", "-h", "-t", "pending", "-o", "%j").startswith("stoker-"), LIMIT_S)
        number = CLUSTER.say("squeue", "-h", "-t", "pending", "-o", "%A")
        CLUSTER.run("scancel", number)
        view = wait_for("its end", lambda: (lambda v: v if v["attempts"] and v["attempts"][0]["cause"] != "none" else None)(t.describe(run)), LIMIT_S)
        check(view["attempts"][0]["cause"] == "cancelled", json.dumps(view["attempts"]))
        check("CANCELLED" in CLUSTER.say("sacct", "-X", "-n", "-P", "-j", number, "-o", "State"), "sacct does not know it")
    finally:
        CLUSTER.run("scontrol", "update", "partitionname=main", "state=up")
    t.call("cancel", run, exit=None)
    end(t, server)


if __name__ == "__main__":
    slurm_cluster.main(globals(), accounts=ACCOUNTS)

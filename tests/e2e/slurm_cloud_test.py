#!/usr/bin/env python3
"""A Slurm that rents its nodes: 0, 2, and 0 again, by runs of the engine and by the programs that `stoker deploy --target slurm-cloud` writes
for slurmctld to call. Machines of Azure are slurmd of this machine, which a stand-in for az starts and ends. Where the packages are missing
it says so and passes.

    python3 tests/e2e/slurm_cloud_test.py --stoker build/release/stoker [NAME...]"""

import json
import os
import re
import shutil
import signal
import socket
import tempfile

import harness
import slurm_cluster
from harness import Skipped, check, wait_for
from render_slurm_test import SCRIPTS, render

LIMIT_S = 240
NODES = ("gang-0", "gang-1")
# slurmctld calls programs without an environment, ends what they leave behind, and blocks signals: a machine is started apart from all that, and
# comes a second later than it was asked for, as Slurm demands.
AZ = """#!/bin/sh
echo "$@" >>{base}/az.log
all="$*"; ids=${{all#*--instance-ids }}; ids=${{ids%% --no-wait*}}
for id in $ids; do
    case $2 in
    start) setsid -f sh -c "sleep 2; scontrol update nodename=gang-$id nodeaddr=127.0.0.1 nodehostname={host}
        exec perl -MPOSIX -e 'sigprocmask(SIG_SETMASK, POSIX::SigSet->new); exec @ARGV' slurmd -D -b -N gang-$id -f {base}/slurm.conf" </dev/null >/dev/null 2>&1;;
    deallocate) kill $(cat {base}/run/slurmd.gang-$id.pid);;
    esac
done
"""


class Rented:
    def __init__(self, t):
        self.base, host = tempfile.mkdtemp(prefix="stoker-slurm-"), socket.gethostname().split(".")[0]
        os.chmod(self.base, 0o755)
        self.written = render(t, f"version: 1\nname: gang\n{SCRIPTS['gang']}run: {{command: [python3, x.py]}}\n", "slurm-cloud", "rented")
        ports = slurm_cluster.free_ports(len(NODES))
        os.mkdir(f"{self.base}/bin")
        self.program("bin/az", AZ.format(base=self.base, host=host))
        for name in ("resume", "suspend"):
            self.program(f"{name}.sh", f"#!/bin/sh\nexport PATH={self.base}/bin:{slurm_cluster.PATH} SLURM_CONF={self.base}/slurm.conf\n"
                                       f'exec {self.written}/{name}.sh "$@" >>{self.base}/{name}.out 2>&1\n')
        lines = [f"ResumeProgram={self.base}/resume.sh", f"SuspendProgram={self.base}/suspend.sh", "ResumeTimeout=60", "SuspendTimeout=5",
                 "SuspendTime=5", "SuspendExcNodes=n1", "PrivateData=cloud", "SlurmctldParameters=idle_on_node_suspend,cloud_dns",
                 "CommunicationParameters=NoAddrCache"]
        lines += [f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} State=CLOUD" for name, port in zip(NODES, ports)]
        for name in NODES:
            os.makedirs(f"{self.base}/spool/{name}")
        self.cluster = slurm_cluster.Cluster(self.base, nodes=1, more=[*lines, f"PartitionName=rented Nodes={','.join(NODES)} MaxTime=UNLIMITED"])

    def program(self, name, text):
        with open(f"{self.base}/{name}", "w") as file:
            file.write(text)
        os.chmod(file.name, 0o755)

    def asked(self):
        """What Azure was asked for, line by line."""
        path = f"{self.base}/az.log"
        return open(path).read().splitlines() if os.path.exists(path) else []

    def running(self):
        return {name for name in NODES if (pid := self.cluster.pid(f"run/slurmd.{name}.pid")) and os.path.exists(f"/proc/{pid}")}

    def close(self):
        try:
            self.cluster.close()
        finally:
            for name in NODES:
                self.cluster.end(f"run/slurmd.{name}.pid", signal.SIGTERM)
            shutil.rmtree(self.base, ignore_errors=True)


def test_a_cluster_goes_from_no_node_to_two_and_back(t):
    if why := slurm_cluster.why_not():
        raise Skipped(why)
    rented = Rented(t)
    try:
        t.write("server.yaml", f"engine: {{kind: slurm, partition: rented, config: {rented.cluster.config}}}\n")
        t.up("--config", os.path.join(t.work, "server.yaml"))
        wait_for("nodes that sleep count as there", lambda: {node["name"] for node in t.json("nodes")} == set(NODES), LIMIT_S)
        check(not rented.running() and not rented.asked(), f"{rented.running()} {rented.asked()}")
        both = t.write("both.yaml", json.dumps({"version": 1, "name": "both", "run": {
            "command": ["sh", "-c", "echo rank $RANK on $SLURMD_NODENAME"], "ranks": 2, "nodes": 2}}))
        run = t.call("submit", both).stdout.strip()
        wait_for("that its nodes are being started", lambda: "its nodes are being started: gang-[0-1]" in " ".join(t.call("describe", run).stdout.split()), LIMIT_S)
        view = t.wait_state(run, "succeeded", "failed", limit_s=LIMIT_S)
        check(view["run"]["state"] == "succeeded" and len(view["attempts"]) == 1, json.dumps(view["run"]))
        for rank, name in enumerate(NODES):
            check(f"rank {rank} on {name}" in t.call("logs", "--rank", str(rank), run).stdout, t.call("logs", run).stdout)
        started = [line for line in rented.asked() if line.startswith("vmss start")]
        check(started == ["vmss start -g gang-rg -n gang --instance-ids 0 1 --no-wait"], str(started))
        # What nobody needs goes: nothing of ours holds it.
        wait_for("the machines are given back", lambda: {each for line in rented.asked() if "deallocate" in line for each in
                                                        re.search(r"--instance-ids ([\d ]+) ", line).group(1).split()} == {"0", "1"}, LIMIT_S)
        wait_for("no machine", lambda: not rented.running(), LIMIT_S)
        # And comes again, as many as are needed.
        wait_for("the node sleeps", lambda: all("POWERED_DOWN" in rented.cluster.say("scontrol", "show", "node", name) for name in NODES), LIMIT_S)
        again = t.call("submit", "--", "sh", "-c", "echo on $SLURMD_NODENAME").stdout.strip()
        view = t.wait_state(again, "succeeded", "failed", limit_s=LIMIT_S)
        check(view["run"]["state"] == "succeeded", json.dumps(view["run"]))
        last = [line for line in rented.asked() if line.startswith("vmss start")][-1]
        check(re.search(r"--instance-ids [01] --no-wait", last), last)
        used = t.json("usage", "--by", "run")["items"]
        check(all(each["cpu_hours"] * 3600 < 60 for each in used), f"the time in which machines came was charged: {used}")
    finally:
        rented.close()


if __name__ == "__main__":
    harness.main(globals())

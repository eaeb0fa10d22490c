"""A real Slurm of its own for tests: munged, slurmctld and slurmd of the installed packages in a folder, on free ports, as
whatever user this is. One node for each name; each has 16 CPUs and 8 GPUs that are none."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import harness

PATH = "/usr/sbin:/sbin:/usr/local/sbin:/usr/local/bin:/usr/bin:/bin"
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "scontrol", "sinfo")
PACKAGES = "slurm-wlm slurm-wlm-basic-plugins munge"


def why_not():
    missing = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    return f"{', '.join(missing)}: not installed (apt-get install {PACKAGES})" if missing else ""


# server.yaml of a server whose only engine is this cluster.
SERVER = """engine:
  kind: slurm
  partition: main
  config: {config}
  notice: 10s
  gpu_models: [{{name: a100, model: A100-SXM4-80GB}}]
"""


def free_ports(count):
    held = [socket.socket() for _ in range(count)]
    for each in held:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


class Cluster:
    def __init__(self, folder, nodes=2, more=()):
        """more: lines of slurm.conf, behind its nodes."""
        self.folder, self.nodes = folder, [f"n{i}" for i in range(1, nodes + 1)]
        self.config = f"{folder}/slurm.conf"
        self.environment = {"PATH": PATH, "HOME": "/", "SLURM_CONF": self.config, "SLURM_TIME_FORMAT": "%s"}
        for part in ("ctl", "log", "run", "munge"):
            os.makedirs(f"{folder}/{part}")
        os.chmod(f"{folder}/munge", 0o755)
        with open(f"{folder}/munge/key", "wb") as file:
            file.write(os.urandom(1024))
        os.chmod(f"{folder}/munge/key", 0o600)
        host, user, ports = socket.gethostname().split(".")[0], pwd.getpwuid(os.getuid()).pw_name, free_ports(nodes + 1)
        lines = [
            "ClusterName=test", f"SlurmctldHost={host}(127.0.0.1)", f"SlurmctldPort={ports[0]}", f"SlurmUser={user}",
            f"SlurmdUser={user}", "AuthType=auth/munge", f"AuthInfo=socket={folder}/munge/sock,cred_expire=5",
            f"StateSaveLocation={folder}/ctl", f"SlurmdSpoolDir={folder}/spool/%n",
            f"SlurmctldPidFile={folder}/run/slurmctld.pid", f"SlurmdPidFile={folder}/run/slurmd.%n.pid",
            f"SlurmctldLogFile={folder}/log/slurmctld.log", f"SlurmdLogFile={folder}/log/slurmd.%n.log",
            "MailProg=/bin/true", "MpiDefault=none", "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none",
            "SwitchType=switch/none", "MessageTimeout=3", "MaxJobCount=20000", "ReturnToService=2", "KillWait=10", "SlurmdParameters=config_overrides",
            "SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1", "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_Core", "GresTypes=gpu", "PreemptType=preempt/partition_prio",
            "PreemptMode=REQUEUE", "AccountingStorageType=accounting_storage/none",
            "NodeName=DEFAULT CPUs=16 SocketsPerBoard=2 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=16000 "
            "Gres=gpu:a100:8"]
        for name, port in zip(self.nodes, ports[1:]):
            os.makedirs(f"{folder}/spool/{name}")
            lines.append(f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port}")
        lines += [*more, f"PartitionName=main Nodes={','.join(self.nodes)} Default=YES PriorityTier=1 PreemptMode=CANCEL",
                  f"PartitionName=urgent Nodes={','.join(self.nodes)} PriorityTier=10 PreemptMode=OFF"]
        for name, text in (("slurm.conf", "\n".join(lines) + "\n"), ("gres.conf", "Name=gpu Type=a100 File=/dev/tty[0-7]\n"),
                           ("cgroup.conf", "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")):
            with open(f"{folder}/{name}", "w") as file:
                file.write(text)
        munge = f"{folder}/munge"
        self.run("munged", "--force", f"--key-file={munge}/key", f"--socket={munge}/sock", f"--pid-file={munge}/pid",
                 f"--log-file={munge}/log", f"--seed-file={munge}/seed")
        self.start_controller()
        for name in self.nodes:
            self.run("slurmd", "-N", name, "-f", self.config)
        self.wait("all nodes", lambda: self.say("sinfo", "-h", "-p", "main", "-t", "idle", "-o", "%D") == str(nodes))

    def run(self, *words):
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
        return done.stdout.strip()

    def say(self, *words):
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=60).stdout.strip()

    @staticmethod
    def wait(what, condition, limit_s=60):
        end = time.monotonic() + limit_s
        while not condition():
            if time.monotonic() > end:
                raise RuntimeError(f"not within {limit_s} s: {what}")
            time.sleep(0.05)

    def pid(self, name):
        try:
            return int(open(f"{self.folder}/{name}").read())
        except (OSError, ValueError):
            return 0

    def end(self, name, number=signal.SIGTERM):
        pid = self.pid(name)
        if pid:
            os.kill(pid, number)
            self.wait(f"the end of {name}", lambda: not os.path.exists(f"/proc/{pid}"))
            if os.path.exists(f"{self.folder}/{name}"):
                os.remove(f"{self.folder}/{name}")

    def start_controller(self):
        self.run("slurmctld", "-f", self.config)
        self.wait("the controller", lambda: self.say("scontrol", "ping"))

    @staticmethod
    def why_no_rest():
        return "" if shutil.which("slurmrestd", path=PATH) else "slurmrestd: not installed (apt-get install slurmrestd)"

    def rest_url(self):
        """A slurmrestd of this user's on a socket, started by the first who asks. It does not like to run as root or as the
        cluster's own user, which here own the folders of the runs."""
        path = f"{self.folder}/slurmrestd.sock"
        if not self.pid("run/slurmrestd.pid"):
            # By way of a shell, so that it is nobody's child who would have to wait for it.
            subprocess.run(["sh", "-c", f"slurmrestd -s openapi/v0.0.38 -f {self.config} -a rest_auth/local unix:{path} "
                            f">>{self.folder}/log/slurmrestd.log 2>&1 </dev/null & echo $! >{self.folder}/run/slurmrestd.pid"],
                           env=dict(self.environment, SLURMRESTD_SECURITY="disable_user_check"), check=True)
            self.wait("the socket of slurmrestd", lambda: os.path.exists(path))
        return f"unix:{path}"

    def kill_controller(self):
        self.end("run/slurmctld.pid", signal.SIGKILL)

    def resume_nodes(self):
        """A controller that was killed gives numbers a second time, and Slurm drains a node that sees one: "Duplicate jobid"."""
        for name in self.say("sinfo", "-h", "-N", "-t", "drain", "-o", "%N").split():
            self.say("scontrol", "update", f"NodeName={name}", "State=RESUME")

    def quiet(self):
        return self.say("squeue", "-h", "-t", "pending,running,completing,configuring") == ""

    def close(self):
        self.say("scancel", "--me")
        try:
            self.wait("an empty queue", self.quiet, 30)
        finally:
            self.end("run/slurmrestd.pid")
            for name in self.nodes:
                self.end(f"run/slurmd.{name}.pid")
            self.end("run/slurmctld.pid")
            self.end("munge/pid")


def main(tests):
    """harness.main over the tests of a module, with a cluster as its CLUSTER; without Slurm it says why not, and passes."""
    if why := why_not():
        print(f"no Slurm here: {why}\n0 passed, 0 failed")
        sys.exit(0)
    base = tempfile.mkdtemp(prefix="stoker-slurm-")
    os.chmod(base, 0o755)
    tests["CLUSTER"] = Cluster(base)
    try:
        harness.main(tests)
    finally:
        tests["CLUSTER"].close()
        shutil.rmtree(base, ignore_errors=True)

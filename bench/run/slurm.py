"""A real slurmctld with one node, as any user, on ports and a munge key of its own: what `sbatch` takes beside us."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "sinfo", "scancel")
INSTALL = "apt-get install --no-install-recommends slurmctld slurmd slurm-client munge slurm-wlm-basic-plugins"


def missing():
    """What is not installed; empty: all is there."""
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    gone = [name for name in PROGRAMS if not shutil.which(name, path=path)]
    return f"{', '.join(gone)} not installed ({INSTALL})" if gone else ""


class Slurm:
    def __init__(self, folder, port=27800):
        host = socket.gethostname().split(".")[0]
        user = subprocess.run(["id", "-un"], capture_output=True, text=True).stdout.strip()
        for each in ("ctl", "log", "run", "munge", "spool/n1"):
            os.makedirs(os.path.join(folder, each), exist_ok=True)
        key = os.path.join(folder, "munge/key")
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(secrets.token_bytes(1024))
        os.chmod(os.path.join(folder, "munge"), 0o755)
        os.chmod(folder, 0o755)
        conf = os.path.join(folder, "slurm.conf")
        with open(conf, "w") as file:
            file.write(f"""ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/sock,cred_expire=5
StateSaveLocation={folder}/ctl
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.%n.log
MailProg=/bin/true
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
ReturnToService=2
SlurmdParameters=config_overrides
MaxJobCount=200000
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={port + 1} CPUs=16 RealMemory=16000
PartitionName=all Nodes=ALL Default=YES
""")
        with open(os.path.join(folder, "cgroup.conf"), "w") as file:
            file.write("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        self.folder = folder
        self.script = os.path.join(folder, "job.sh")
        with open(self.script, "w") as file:
            file.write("#!/bin/sh\ntrue\n")
        self.environment = dict(os.environ, SLURM_CONF=conf, PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")
        try:
            munge = [f"--{name}={folder}/munge/{file}" for name, file in
                     (("key-file", "key"), ("socket", "sock"), ("pid-file", "pid"), ("log-file", "log"), ("seed-file", "seed"))]
            self._run("munged", "--force", *munge)
            self._run("slurmctld", "-f", conf)
            self._run("slurmd", "-N", "n1", "-f", conf)
            end = time.monotonic() + 30
            while self._run("sinfo", "-h", "-t", "idle", "-o", "%D").strip() != "1":
                if time.monotonic() > end:
                    raise RuntimeError("no idle node within 30 s: " + open(f"{folder}/log/slurmctld.log").read()[-500:])
                time.sleep(0.1)
        except BaseException:
            self.stop()
            raise

    def _run(self, *words):
        done = subprocess.run(words, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60)
        if done.returncode != 0 and words[0] not in ("sinfo", "squeue"):
            raise RuntimeError(f"{words[0]} left with {done.returncode}: {done.stderr.strip()[-300:]}")
        return done.stdout

    def version(self):
        return self._run("sinfo", "--version").strip()

    def controller_pid(self):
        return int(open(os.path.join(self.folder, "run/slurmctld.pid")).read())

    def jobs(self):
        return len(self._run("squeue", "-h", "-o", "%A").split())

    def stop(self):
        for name in ("run/slurmd.n1.pid", "run/slurmctld.pid", "munge/pid"):
            try:
                pid = int(open(os.path.join(self.folder, name)).read())
                os.kill(pid, signal.SIGTERM)
                for _ in range(100):
                    os.kill(pid, 0)
                    time.sleep(0.1)
                os.kill(pid, signal.SIGKILL)
            except (OSError, ValueError):
                pass


def submit_many(command, environment, count, at_once):
    """`count` times one process of `command`, so many at once; submissions a second."""
    began = time.monotonic()
    words = ["xargs", "-P", str(at_once), "-n", "1", *command]
    # Outside any git tree: stoker looks for the commit of the folder, which would be measured with it.
    done = subprocess.run(words, cwd="/", input="\n".join(f"{i}" for i in range(count)), env=environment, text=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: {done.stderr.strip()[-300:]}")
    return count / (time.monotonic() - began)

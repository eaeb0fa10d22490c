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


# Where the packages of the accounting were unpacked (dpkg -x), when they are not installed.
UNPACKED = os.environ.get("STOKER_SLURMDBD_ROOT", "")
ACCOUNTING = ("slurmdbd", "mariadbd", "sacctmgr", "sacct")
ACCOUNTING_PACKAGES = "slurmdbd slurm-wlm-mysql-plugin mariadb-server-core"
PLUGINS = "/usr/lib/x86_64-linux-gnu/slurm-wlm"


def accounting_program(name):
    return shutil.which(name, path=f"{UNPACKED}/usr/sbin:{UNPACKED}/usr/bin:{PATH}" if UNPACKED else PATH)


def why_no_accounting():
    missing = [name for name in ACCOUNTING if accounting_program(name) is None]
    if not missing and not any(os.path.exists(f"{root}{PLUGINS}/accounting_storage_mysql.so") for root in {UNPACKED, ""}):
        missing = ["accounting_storage_mysql.so"]
    return f"{', '.join(missing)}: not installed (apt-get install {ACCOUNTING_PACKAGES})" if missing else ""


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
    def __init__(self, folder, nodes=2, more=(), accounts=()):
        """more: lines of slurm.conf, behind its nodes. accounts: what sacctmgr is told, and with any there is a
        slurmdbd with a database of its own, limits are kept, and QOS preempt each other."""
        self.folder, self.nodes = folder, [f"n{i}" for i in range(1, nodes + 1)]
        self.config = f"{folder}/slurm.conf"
        self.environment = {"PATH": PATH, "HOME": "/", "SLURM_CONF": self.config, "SLURM_TIME_FORMAT": "%s"}
        self.accounts, self.database = accounts, None
        for part in ("ctl", "log", "run", "munge"):
            os.makedirs(f"{folder}/{part}")
        os.chmod(f"{folder}/munge", 0o755)
        with open(f"{folder}/munge/key", "wb") as file:
            file.write(os.urandom(1024))
        os.chmod(f"{folder}/munge/key", 0o600)
        host, user, ports = socket.gethostname().split(".")[0], pwd.getpwuid(os.getuid()).pw_name, free_ports(nodes + 3)
        lines = [
            "ClusterName=test", f"SlurmctldHost={host}(127.0.0.1)", f"SlurmctldPort={ports[0]}", f"SlurmUser={user}",
            f"SlurmdUser={user}", "AuthType=auth/munge", f"AuthInfo=socket={folder}/munge/sock,cred_expire=5",
            f"StateSaveLocation={folder}/ctl", f"SlurmdSpoolDir={folder}/spool/%n",
            f"SlurmctldPidFile={folder}/run/slurmctld.pid", f"SlurmdPidFile={folder}/run/slurmd.%n.pid",
            f"SlurmctldLogFile={folder}/log/slurmctld.log", f"SlurmdLogFile={folder}/log/slurmd.%n.log",
            "MailProg=/bin/true", "MpiDefault=none", "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none",
            "SwitchType=switch/none", "MessageTimeout=3", "MaxJobCount=20000", "ReturnToService=2", "KillWait=10", "SlurmdParameters=config_overrides",
            "SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1", "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_Core", "GresTypes=gpu", f"PreemptType=preempt/{'qos' if accounts else 'partition_prio'}",
            "PreemptMode=REQUEUE",
            *(["AccountingStorageType=accounting_storage/slurmdbd", "AccountingStorageHost=127.0.0.1", f"AccountingStoragePort={ports[-2]}",
               f"AccountingStoragePass={folder}/munge/sock",
               "AccountingStorageEnforce=limits,qos", "AccountingStorageTRES=gres/gpu"] if accounts else
              ["AccountingStorageType=accounting_storage/none"]),
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
        try:
            self.start(user, *ports[-2:])
        except BaseException:
            self.stop()
            raise

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

    def start(self, user, accounting_port, database_port):
        if self.accounts:
            self.start_accounting(user, accounting_port, database_port)
        self.start_controller()
        if self.accounts:  # it tells the accounting what there is to limit
            self.wait("GPUs in the accounting", lambda: "gres" in self.say("sacctmgr", "-n", "-P", "show", "tres", "format=type"))
        for words in self.accounts:
            self.run("sacctmgr", "-i", *words.split())
        for name in self.nodes:
            self.run("slurmd", "-N", name, "-f", self.config)
        self.wait("all nodes", lambda: self.say("sinfo", "-h", "-p", "main", "-t", "idle", "-o", "%D") == str(len(self.nodes)))

    def start_accounting(self, user, port, database_port):
        """mariadbd with a folder of its own and slurmdbd before it, as small as they can be had."""
        data, libraries = f"{self.folder}/database", {"LD_LIBRARY_PATH": f"{UNPACKED}/usr/lib/x86_64-linux-gnu"} if UNPACKED else {}
        os.makedirs(data)
        words = [accounting_program("mariadbd"), "--no-defaults"]
        more = [f"--datadir={data}", f"--user={user}", f"--lc-messages-dir={UNPACKED}/usr/share/mysql",
                f"--character-sets-dir={UNPACKED}/usr/share/mysql/charsets", "--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M",
                "--innodb-flush-log-at-trx-commit=0"]
        with open(f"{UNPACKED}/usr/share/mysql/mysql_system_tables.sql") as tables, open(f"{self.folder}/log/mariadbd.log", "w") as log:
            ways = {"env": {"PATH": PATH, **libraries}, "stdout": log, "stderr": log}
            # Slurm keeps procedures in it, which want the tables of the system.
            subprocess.run([*words, "--bootstrap", *more], input="create database mysql;\nuse mysql;\n" + tables.read(), text=True, check=True, timeout=120, **ways)
            self.database = subprocess.Popen([*words, *more, f"--socket={self.folder}/run/database.sock", f"--port={database_port}",
                                              "--bind-address=127.0.0.1", "--skip-grant-tables", f"--pid-file={self.folder}/run/mariadbd.pid"], **ways)

        def answers(at):
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", at)) == 0
        self.wait("the database", lambda: answers(database_port))
        path = f"{self.folder}/slurmdbd.conf"
        with open(path, "w") as file:
            file.write("\n".join([
                "AuthType=auth/munge", f"AuthInfo=socket={self.folder}/munge/sock", "DbdHost=localhost", "DbdAddr=127.0.0.1", f"DbdPort={port}",
                f"SlurmUser={user}", "StorageType=accounting_storage/mysql", "StorageHost=127.0.0.1", f"StoragePort={database_port}",
                "StorageUser=slurm", "StorageLoc=slurm_acct", f"LogFile={self.folder}/log/slurmdbd.log",
                f"PidFile={self.folder}/run/slurmdbd.pid", *([f"PluginDir={UNPACKED}{PLUGINS}:{PLUGINS}"] if UNPACKED else [])]) + "\n")
        os.chmod(path, 0o600)
        done = subprocess.run([accounting_program("slurmdbd")], env={**self.environment, **libraries}, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f"slurmdbd: {done.stderr}")
        self.wait("slurmdbd", lambda: answers(port))
        self.run("sacctmgr", "-i", "add", "cluster", "test")

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

    def wait_until_saved(self, name):
        """The state that a killed controller comes back with has the job of this name as it runs. It is written some
        seconds after something changed."""
        job = self.say("squeue", "-h", "--name", name, "-t", "running", "-o", "%A")
        changed = time.time()
        self.run("scontrol", "update", f"JobId={job}", "AdminComment=saved")
        state = f"{self.folder}/ctl/job_state"
        self.wait(f"a save of {name}", lambda: os.path.exists(state) and os.path.getmtime(state) > changed)

    def has_nodes(self):
        """True; where Slurm has drained all of them ("Duplicate jobid"), after an administrator has seen to it."""
        if len(self.say("sinfo", "-h", "-N", "-p", "main", "-t", "drain", "-o", "%N").split()) == len(self.nodes):
            self.resume_nodes()
        return True

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
            self.stop()

    def stop(self):
        self.end("run/slurmrestd.pid")
        for name in self.nodes:
            self.end(f"run/slurmd.{name}.pid")
        self.end("run/slurmctld.pid")
        if self.database:
            self.end("run/slurmdbd.pid")
            self.database.terminate()
            self.database.wait(60)
        self.end("munge/pid")


def main(tests, accounts=()):
    """harness.main over the tests of a module, with a cluster as its CLUSTER; without Slurm it says why not, and passes."""
    if why := why_not() or (accounts and why_no_accounting()):
        print(f"no Slurm here: {why}\n0 passed, 0 failed")
        sys.exit(0)
    base = tempfile.mkdtemp(prefix="stoker-slurm-")
    os.chmod(base, 0o755)
    tests["CLUSTER"] = Cluster(base, accounts=accounts)
    try:
        harness.main(tests)
    finally:
        tests["CLUSTER"].close()
        shutil.rmtree(base, ignore_errors=True)

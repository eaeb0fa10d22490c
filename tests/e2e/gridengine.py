"""A real Grid Engine for tests: a qmaster and nodes, each in a network of its own with a name of its own, all of it in one folder.

Debian's packages gridengine-master, -exec and -client; needs root and networks that can be made (ip netns). Nothing of an installed
cell is touched: SGE_ROOT, the spools and both ports are the test's."""

import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import time

from harness import Failure, wait_for

LIB = pathlib.Path("/usr/lib/gridengine")
SHARE = pathlib.Path("/usr/share/gridengine")
INSTALLED = pathlib.Path("/var/lib/gridengine")
LIMIT_S = 60
QUEUE = {"hostlist": "@allhosts", "slots": "8", "pe_list": "mpi", "shell": "/bin/bash", "load_thresholds": "NONE"}
PARALLEL = {"slots": "64", "allocation_rule": "1", "control_slaves": "TRUE", "job_is_first_task": "FALSE"}


def until(what, condition, seconds):
    """As wait_for, for questions that start a program on a machine: each is dear, so they are asked every half second."""
    def asked():
        time.sleep(0.5)
        return condition()
    return wait_for(what, asked, seconds)


def missing():
    """Why there can be none here, or nothing."""
    if not (LIB / "sge_qmaster").exists() or not (LIB / "sge_execd").exists() or not (LIB / "qsub").exists():
        return "Grid Engine is not installed (packages gridengine-master, gridengine-exec, gridengine-client)"
    if os.geteuid() != 0 or not shutil.which("ip"):
        return "networks of its own need root and iproute2"
    name = f"stk-probe-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    entered = made if made.returncode else subprocess.run(["ip", "netns", "exec", name, "unshare", "--uts", "true"], capture_output=True, text=True)
    subprocess.run(["ip", "netns", "del", name], capture_output=True)
    return f"no networks of its own: {(made.stderr or entered.stderr).strip()}" if made.returncode or entered.returncode else ""


class GridEngine:
    def __init__(self, nodes=2, gpus=8):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="stoker-sge-"))
        self.base.chmod(0o755)
        self.tag, self.nodes, net = f"stk{os.getpid()}", [f"node-{i}" for i in range(nodes)], random.randrange(16, 250)
        self.names = ["head", *self.nodes]
        self.environment = {"SGE_ROOT": str(self.base / "root"), "SGE_CELL": "default", "SGE_QMASTER_PORT": "36444", "SGE_EXECD_PORT": "36445",
                            "PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8", "HOME": str(self.base), "USER": "root", "LOGNAME": "root"}
        try:
            self.networks(f"10.231.{net}")
            self.cell()
            self.start(gpus)
        except BaseException:
            self.close()
            raise

    def at(self, name, *words, exit=0, cwd=None, environment=None, input=None):
        """A command on one of the machines."""
        done = subprocess.run(["ip", "netns", "exec", self.tag + name, "unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', name, *words],
                              capture_output=True, text=True, timeout=LIMIT_S, cwd=cwd or self.base, input=input,
                              env={**self.environment, **(environment or {})})
        if exit is not None and done.returncode != exit:
            raise Failure(f"{words} on {name}: exit {done.returncode}\n{done.stdout[-1500:]}{done.stderr[-1500:]}")
        return done

    def run(self, program, *words, **more):
        return self.at("head", str(LIB / program), *words, **more)

    def networks(self, net):
        def ip(*words):
            done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=LIMIT_S)
            if done.returncode:
                raise Failure(f"ip {' '.join(words)}: {done.stderr}")

        rows = "127.0.0.1 localhost\n" + "".join(f"{net}.{i + 1} {name}\n" for i, name in enumerate(self.names))
        for name in self.names:
            ip("netns", "add", self.tag + name)
            ip("-n", self.tag + name, "link", "set", "lo", "up")
            hosts = pathlib.Path("/etc/netns") / (self.tag + name)
            hosts.mkdir(parents=True, exist_ok=True)
            (hosts / "hosts").write_text(rows)  # what `ip netns exec` shows as /etc/hosts
        head = self.tag + "head"
        ip("-n", head, "link", "add", "br0", "type", "bridge")
        ip("-n", head, "addr", "add", f"{net}.1/24", "dev", "br0")
        ip("-n", head, "link", "set", "br0", "up")
        for i, name in enumerate(self.nodes):
            ip("-n", head, "link", "add", f"v{i}", "type", "veth", "peer", "name", "eth0", "netns", self.tag + name)
            ip("-n", head, "link", "set", f"v{i}", "master", "br0", "up")
            ip("-n", self.tag + name, "addr", "add", f"{net}.{i + 2}/24", "dev", "eth0")
            ip("-n", self.tag + name, "link", "set", "eth0", "up")

    def cell(self):
        root, spool = self.base / "root", self.base / "spool"
        common = root / "default" / "common"
        for folder in (common, spool / "qmaster", spool / "execd"):
            folder.mkdir(parents=True)
        for name in ("bin", "lib", "utilbin"):
            shutil.copytree(INSTALLED / name, root / name, symlinks=True)
        (root / "util").symlink_to(SHARE / "util")
        where = f"{common};{spool / 'qmaster'}"
        self.fill(SHARE / "default-bootstrap", common / "bootstrap", admin_user="root", spooling_method="classic", spooling_lib="libspoolc",
                  spooling_params=where, qmaster_spool_dir=spool / "qmaster", binary_path=LIB)
        (common / "act_qmaster").write_text("head\n")
        self.run("spoolinit", "classic", "libspoolc", where, "init")
        # Root may submit here; a test has no other user.
        self.fill(SHARE / "default-configuration", self.base / "conf", execd_spool_dir=spool / "execd", min_uid=0, min_gid=0,
                  load_report_time="00:00:01", login_shells="csh")  # with bash among them a profile of this machine sets PATH again
        for kind, path in (("configuration", self.base / "conf"), ("complexes", SHARE / "util/resources/centry"),
                           ("usersets", SHARE / "util/resources/usersets"), ("managers", "root")):
            self.run("spooldefaults", kind, str(path))

    @staticmethod
    def fill(source, target, **rows):
        lines = [line for line in source.read_text().splitlines() if line.split(" ", 1)[0] not in rows]
        target.write_text("\n".join([*lines, *(f"{key} {value}" for key, value in rows.items())]) + "\n")

    def start(self, gpus):
        self.at("head", str(LIB / "sge_qmaster"))
        wait_for("the qmaster", lambda: self.run("qconf", "-sconf", exit=None).returncode == 0, LIMIT_S)
        for node in self.nodes:
            self.run("qconf", "-ah", node)
        self.run("qconf", "-as", "head")
        self.given("-Mc", self.run("qconf", "-sc").stdout + "gpu gpu INT <= YES YES 0 0\n")
        self.given("-Ahgrp", f"group_name @allhosts\nhostlist {' '.join(self.nodes)}\n")
        for node in self.nodes:
            self.run("qconf", "-mattr", "exechost", "complex_values", f"gpu={gpus}", node)
        self.made("-ap", "mpi", PARALLEL)
        self.made("-aq", "all.q", QUEUE)
        for node in self.nodes:
            self.at(node, str(LIB / "sge_execd"))
        until("both nodes", lambda: self.run("qstat", "-f", exit=None).stdout.count("lx-amd64") >= len(self.nodes) and
                 " au" not in self.run("qstat", "-f", exit=None).stdout, LIMIT_S)

    def given(self, option, text):
        """qconf reads a whole object from a file."""
        path = self.base / "object"
        path.write_text(text)
        self.run("qconf", option, str(path))

    def made(self, option, name, attributes):
        """An object as Grid Engine proposes it in an editor, with these attributes changed."""
        editor = self.base / "editor"
        editor.write_text("#!/bin/sh\nexec sed -i -E " + " ".join(f"-e 's|^{key} .*|{key} {value}|'" for key, value in attributes.items()) + ' "$1"\n')
        editor.chmod(0o755)
        self.run("qconf", option, name, environment={"EDITOR": str(editor)})

    def submit(self, *words, **more):
        return self.run("qsub", "-terse", *words, **more).stdout.strip()

    def waits_or_runs(self, job):
        return self.run("qstat", "-j", job.split(".")[0], exit=None).returncode == 0

    def account(self, job):
        """What the cell wrote down of its tasks, as qacct tells it: [{exit_status, failed, hostname, ...}]."""
        done = self.run("qacct", "-j", job.split(".")[0], exit=None)
        tasks = [part for part in done.stdout.split("=" * 62) if part.strip()]
        rows = ([line.split(None, 1) for line in part.splitlines()] for part in tasks)
        whole = [{row[0]: row[1].strip() for row in task if len(row) == 2} for task in rows]
        return [task for task in whole if "exit_status" in task]  # a row that is being written has none yet

    def ended(self, job, seconds=LIMIT_S):
        until(f"the end of job {job}", lambda: not self.waits_or_runs(job), seconds)
        until(f"the account of job {job}", lambda: self.account(job), seconds)
        return self.account(job)

    def close(self):
        for name in self.names:
            inside = subprocess.run(["ip", "netns", "pids", self.tag + name], capture_output=True, text=True).stdout.split()
            if inside:
                subprocess.run(["kill", "-9", *inside], capture_output=True)
            subprocess.run(["ip", "netns", "del", self.tag + name], capture_output=True)
            shutil.rmtree(pathlib.Path("/etc/netns") / (self.tag + name), ignore_errors=True)
        shutil.rmtree(self.base, ignore_errors=True)

#!/usr/bin/env python3
"""What stoker deploy renders for Slurm, on a real Slurm: sbatch takes every script, and one trains with PyTorch, is told to stop,
resumes, and ends as one that was left alone. The torchrun script trains by itself.

    python3 tests/e2e/render_slurm_test.py --stoker build/release/stoker [NAME...]

Skipped, with the reason, where Slurm or PyTorch are not installed."""

import glob
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from harness import Skipped, check, main, wait_for

SOURCE = pathlib.Path(__file__).resolve().parents[2]
TRAIN = SOURCE / "examples" / "train-tiny" / "train.py"
PYTHON = "/usr/bin/python3"
LIMIT_S = 120
NODES = 16  # as many as the largest plan here asks for

PLAN = """version: 1
name: tiny
kind: training
model: {{layers: 2, hidden: 64, heads: 4, ffn: 176, vocab: 259, gated: true, norm: rmsnorm, tied_embeddings: false}}
data: {{tokens: 327680, sequence: 128}}
batch: {{global_examples: 16}}
precision: fp32
framework: pytorch
layout: {{data: {gpus}}}
where: {{cloud: on-prem, nodes: nodes.yaml, gpus: {gpus}}}
run:
  folder: .
  command: [{python}, {train}, --dim, 64, --layers, 2, --heads, 4, --ctx, 64, --batch, 8, --steps, {steps}]
  environment: {{OMP_NUM_THREADS: 1, OPENBLAS_NUM_THREADS: 1, GLOO_SOCKET_IFNAME: lo, PYTHONDONTWRITEBYTECODE: 1}}
  checkpoint: {{folder: checkpoints, keep: 3}}
"""
NODE_FILE = """nodes:
  - {name: lab, gpu: A100-SXM-80GB, gpus: 2, vcpus: 16, memory: 16GiB, nvlink: true, ethernet_gbps: 25, count: 2, price_per_hour: $4}
"""
SCRIPTS = {
    "gang": "kind: training\nmodel: llama-3-8b\ndata: {tokens: 1B, sequence: 8192}\n"
            "where: {sizes: [Standard_ND96isr_H100_v5], nodes: 2, regions: [eastus]}\n",
    "large": "kind: training\nmodel: llama-3-70b\nframework: megatron\ndata: {tokens: 100B, sequence: 8192}\n"
             "where: {sizes: [Standard_ND96isr_H100_v5], nodes: 16, regions: [eastus]}\nrun: {command: [python3, x.py], topology: require}\n",
    "pile": "kind: batch-inference\nmodel: llama-3-8b\ntraffic: {requests: 10M, prompt_tokens: 1000, output_tokens: 200}\n"
            "objective: {deadline: 12h}\nwhere: {regions: [eastus]}\nrun: {command: [python3, x.py]}\n",
    "files": "kind: preprocessing\nvcpu_hours: 200\nmemory: 8GiB\nobjective: {deadline: 12h}\nwhere: {regions: [eastus]}\n"
             "run: {command: [python3, x.py]}\n",
}


def missing():
    for program in ("sbatch", "squeue", "munged"):
        if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin"):
            return f"no {program} here: Slurm's packages are not installed"
    return "" if os.path.exists("/usr/sbin/slurmctld") and os.path.exists("/usr/sbin/slurmd") else "no slurmctld or slurmd here"


def no_torch():
    done = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, timeout=120)
    return "" if done.returncode == 0 else "no PyTorch here"


def free_ports(count):
    """A run of ports that nobody listens on, below those that the system hands out."""
    for first in range(21000 + os.getpid() % 7000, 31000, count + 1):
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
    raise AssertionError("no free ports")


class Slurm:
    """A cluster of its own: no root, one folder, its own ports, key and daemons, which end with it."""

    def __init__(self, nodes):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="stoker-slurm-"))
        base, port, host, user = self.base, free_ports(nodes + 1), socket.gethostname().split(".")[0], os.popen("id -un").read().strip()
        for name in ("ctl", "log", "run", "munge", *(f"spool/n{i}" for i in range(1, nodes + 1))):
            (base / name).mkdir(parents=True)
        (base / "munge").chmod(0o755)
        (base / "munge/key").write_bytes(os.urandom(1024))
        (base / "munge/key").chmod(0o600)
        lines = {"ClusterName": "render", "SlurmctldHost": f"{host}(127.0.0.1)", "SlurmctldPort": port, "SlurmUser": user, "SlurmdUser": user,
                 "AuthType": "auth/munge", "AuthInfo": f"socket={base}/munge/sock,cred_expire=5", "StateSaveLocation": base / "ctl",
                 "SlurmdSpoolDir": base / "spool/%n", "SlurmctldPidFile": base / "run/slurmctld.pid", "SlurmdPidFile": base / "run/slurmd.%n.pid",
                 "SlurmctldLogFile": base / "log/slurmctld.log", "SlurmdLogFile": base / "log/slurmd.%n.log", "MailProg": "/bin/true",
                 "MpiDefault": "none", "ProctrackType": "proctrack/linuxproc", "TaskPlugin": "task/none", "SwitchType": "switch/none",
                 "ReturnToService": 2, "KillWait": 5, "SlurmdParameters": "config_overrides",
                 "SchedulerParameters": "sched_interval=1,sched_min_interval=0,bf_interval=1", "SelectType": "select/cons_tres",
                 "SelectTypeParameters": "CR_Core", "GresTypes": "gpu", "JobRequeue": 1, "AccountingStorageType": "accounting_storage/none"}
        text = "".join(f"{key}={value}\n" for key, value in lines.items())
        text += "NodeName=DEFAULT CPUs=192 SocketsPerBoard=2 CoresPerSocket=96 ThreadsPerCore=1 RealMemory=16000 Gres=gpu:8\n"
        for i in range(1, nodes + 1):
            text += f"NodeName=n{i} NodeHostname={host} NodeAddr=127.0.0.1 Port={port + i}\n"
        text += "PartitionName=work Nodes=ALL Default=YES MaxTime=UNLIMITED\n"
        (base / "slurm.conf").write_text(text)
        (base / "gres.conf").write_text("Name=gpu File=/dev/tty[0-7]\n")
        (base / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        self.environment = dict(os.environ, SLURM_CONF=str(base / "slurm.conf"), PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")
        self.run("munged", "--force", f"--key-file={base}/munge/key", f"--socket={base}/munge/sock", f"--pid-file={base}/munge/pid",
                 f"--log-file={base}/munge/log", f"--seed-file={base}/munge/seed")
        self.run("slurmctld", "-f", str(base / "slurm.conf"))
        for i in range(1, nodes + 1):
            self.run("slurmd", "-N", f"n{i}", "-f", str(base / "slurm.conf"))
        wait_for("idle nodes", lambda: self.run("sinfo", "-h", "-t", "idle", "-o", "%D", exit=None).stdout.strip() == str(nodes), LIMIT_S)

    def run(self, *words, exit=0, **more):
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, env=self.environment | more.pop("environment", {}), **more)
        check(exit is None or done.returncode == exit, f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def state(self, job):
        found = re.search(r"JobState=(\w+)", self.run("scontrol", "show", "job", job, exit=None).stdout)
        return found.group(1) if found else "gone"

    def close(self):
        jobs = self.run("squeue", "-h", "-o", "%A", exit=None).stdout.split()
        if jobs:
            self.run("scancel", *jobs, exit=None)
            end = time.monotonic() + 30
            while self.run("squeue", "-h", exit=None).stdout.strip() and time.monotonic() < end:
                time.sleep(0.1)
        for path in [*glob.glob(f"{self.base}/run/*.pid"), f"{self.base}/munge/pid"]:
            try:
                os.kill(int(open(path).read()), signal.SIGTERM)
            except (OSError, ValueError):
                pass
        shutil.rmtree(self.base, ignore_errors=True)


def render(t, text, target, name="plan"):
    folder = os.path.join(t.base, name + "-" + target)
    with open(os.path.join(t.work, "nodes.yaml"), "w") as file:
        file.write(NODE_FILE)
    path = os.path.join(t.work, name + ".yaml")
    with open(path, "w") as file:
        file.write(text)
    t.call("deploy", path, "--render", folder, "--target", target, "--catalog", str(SOURCE / "tests/golden/catalog"))
    return pathlib.Path(folder)


def wrapped_torchrun(t):
    """Debian's torchrun fails with its own defaults on Python 3.11 (-r and -t); the same program with them said."""
    folder = os.path.join(t.base, "bin")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "torchrun")
    with open(path, "w") as file:
        file.write(f"#!/bin/sh\nexec {shutil.which('torchrun')} -r 1 -t 1 \"$@\"\n")
    os.chmod(path, 0o755)
    return folder + ":" + os.environ["PATH"]


def weights(text):
    return re.findall(r"done: .* weights sha256 (\w+)", text)


def test_sbatch_takes_every_script(t):
    if why := missing():
        raise Skipped(why)
    slurm = Slurm(NODES)
    try:
        for name, text in SCRIPTS.items():
            folder = render(t, f"version: 1\nname: {name}\n{text}", "slurm", name)
            # What sbatch would do with it, asked of the controller; nothing is started.
            done = slurm.run("sbatch", "--test-only", str(folder / f"{name}.sbatch"), "python3", "x.py", cwd=folder)
            check(" to start at " in done.stderr, done.stderr)
            nodes = re.search(r"#SBATCH --nodes=(\d+)", (folder / f"{name}.sbatch").read_text()).group(1)
            told = re.search(r"on nodes (\S+)", done.stderr).group(1)
            count = slurm.run("scontrol", "show", "hostnames", told).stdout.split()
            check(len(count) == int(nodes), f"{name}: {done.stderr}")
    finally:
        slurm.close()


# Lines that slurmctld refuses, or a program that starts another machine than the one whose node was asked for: either way a job waits
# for ever, and machines are paid for.
def test_slurm_starts_the_nodes_that_it_rents(t):
    if why := missing():
        raise Skipped(why)
    folder = render(t, f"version: 1\nname: gang\n{SCRIPTS['gang']}run: {{command: [python3, x.py]}}\n", "slurm-cloud", "rented")
    base = pathlib.Path(tempfile.mkdtemp(prefix="stoker-slurm-"))
    (base / "bin").mkdir()
    (base / "bin/az").write_text(f'#!/bin/sh\necho "$@" >> {base}/az.log\n')  # writes down what Azure would be asked
    (base / "bin/az").chmod(0o755)
    for name in ("gres.conf", "topology.conf"):
        shutil.copy(folder / name, base / name)
    for name in ("resume", "suspend"):
        (base / f"{name}.sh").write_text(f"#!/bin/sh\nexport PATH={base}/bin:/usr/sbin:$PATH SLURM_CONF={base}/slurm.conf\n"
                                         f'exec {folder}/{name}.sh "$@" >> {base}/{name}.out 2>&1\n')
        (base / f"{name}.sh").chmod(0o755)
    port, host, user = free_ports(2), socket.gethostname().split(".")[0], os.popen("id -un").read().strip()
    own = (f"ClusterName=rented\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser={user}\nAuthType=auth/none\nCredType=cred/none\n"
           f"SlurmctldPort={port}\nSlurmdPort={port + 1}\nStateSaveLocation={base}\nSlurmctldPidFile={base}/pid\n"
           f"SlurmctldLogFile={base}/log\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMailProg=/bin/true\n")
    (base / "slurm.conf").write_text(own + (folder / "slurm-cloud.conf").read_text().replace("/etc/slurm/", f"{base}/"))
    environment = dict(os.environ, SLURM_CONF=str(base / "slurm.conf"), PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")

    def run(*words):
        return subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, env=environment, cwd=folder)

    daemon = subprocess.Popen(["slurmctld", "-D", "-f", str(base / "slurm.conf")], env=environment, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        wait_for("slurmctld", lambda: run("scontrol", "ping").stdout.count("UP"), LIMIT_S)
        job = run("sbatch", "--parsable", "gang.sbatch")
        check(job.returncode == 0, job.stderr)
        wait_for("the programs", lambda: (base / "az.log").exists() and
                 "NodeAddr=gang000001" in run("scontrol", "show", "node", "gang-1").stdout, LIMIT_S)
        asked = (base / "az.log").read_text()
        check(asked == "vmss start -g gang-rg -n gang --instance-ids 0 1 --no-wait\n", asked)
    finally:
        daemon.terminate()
        daemon.wait(LIMIT_S)
        shutil.rmtree(base, ignore_errors=True)


def test_a_rendered_job_trains_stops_and_resumes(t):
    if why := missing() or no_torch():
        raise Skipped(why)
    path = wrapped_torchrun(t)
    text = PLAN.format(gpus=4, python=PYTHON, train=TRAIN, steps=150)
    slurm = Slurm(2)
    # Both nodes are this machine, so that the first is found by its address.
    environment = {"PATH": path + ":/usr/sbin", "MASTER_ADDR": "127.0.0.1"}
    try:
        alone = render(t, text, "slurm", "alone")
        # Stopped and resumed it has to end with the same weights as one that ran through: the same name, another folder.
        job = slurm.run("sbatch", "--parsable", "--wait", str(alone / "tiny.sbatch"), cwd=alone, environment=environment).stdout.strip()
        through = weights((alone / f"tiny-{job}.out").read_text())
        check(len(through) == 1, (alone / f"tiny-{job}.out").read_text()[-2000:])

        stopped = render(t, text, "slurm", "stopped")
        job = slurm.run("sbatch", "--parsable", str(stopped / "tiny.sbatch"), cwd=stopped, environment=environment).stdout.strip()
        out = stopped / f"tiny-{job}.out"
        wait_for("the first steps", lambda: out.exists() and "step 30/150" in out.read_text(), LIMIT_S)
        slurm.run("scancel", "--signal=USR1", "--batch", job)  # what Slurm sends before the time limit
        wait_for("the job is back in the queue", lambda: "Restarts=1" in slurm.run("scontrol", "show", "job", job).stdout, LIMIT_S)
        written = sorted(os.listdir(stopped / "checkpoints"))
        check(written and written[-1] != "done", f"no checkpoint: {written}\n{out.read_text()[-2000:]}")
        # A requeued job waits two minutes for its credential otherwise. In the second of its requeue it would get one that is
        # revoked, and fail.
        slurm.run("scontrol", "update", f"jobid={job}", "StartTime=now+3seconds", exit=None)
        wait_for("its end", lambda: slurm.state(job) in ("COMPLETED", "FAILED", "gone"), LIMIT_S)
        told = slurm.run("scontrol", "show", "job", job, exit=None).stdout
        check("JobState=COMPLETED" in told, f"{told}\n{out.read_text()[-3000:]}")
        check("resumed from step" in out.read_text(), out.read_text()[-3000:])
        check(weights(out.read_text()) == through, f"{weights(out.read_text())} and {through}\n{out.read_text()[-3000:]}")
    finally:
        slurm.close()


def test_a_rendered_torchrun_script_trains(t):
    if why := no_torch():
        raise Skipped(why)
    folder = render(t, PLAN.format(gpus=2, python=PYTHON, train=TRAIN, steps=20), "torchrun", "here")
    done = subprocess.run([str(folder / "tiny.sh")], cwd=folder, env=dict(os.environ, PATH=wrapped_torchrun(t)), capture_output=True, text=True,
                          timeout=LIMIT_S)
    check(done.returncode == 0 and len(weights(done.stdout)) == 1, done.stdout[-1500:] + done.stderr[-1500:])
    check((folder / "checkpoints" / "done").exists(), str(list(folder.iterdir())))


if __name__ == "__main__":
    main(globals())

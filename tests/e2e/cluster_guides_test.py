#!/usr/bin/env python3
"""docs/guides/slurm.md, kubernetes.md and migrating.md as somebody new follows them: their blocks from an empty folder, in order, on a real
Slurm and a real Kubernetes, and then every command of their tables. Only what a reader has to change is changed: names of the partition and
of the shared folder, and what takes the place of r-7, train.yaml and the like.

    python3 tests/e2e/cluster_guides_test.py --stoker build/release/stoker [NAME...]"""

import base64
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile

import harness
import kube
import slurm_cluster
from harness import Skipped, check, wait_for
from kubernetes_test import Cluster as Pods

GUIDES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "guides")
LIMIT_S = 240
BLOCK = re.compile(r"^```(\w*) ?([^\n]*)\n(.*?)^```$", re.S | re.M)
# What readers have.
FILES = {
    "train.py": "import os\nprint('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])\n",
    "train.yaml": "version: 1\nname: train\nrun:\n  command: python3 train.py\n  ranks: 2\n",
    "image.yaml": "version: 1\nname: image\nrun:\n  command: python3 train.py\n  image: registry.example/trainer:1.4\n",
    "job.sbatch": "#!/bin/sh\n#SBATCH --ntasks=2\n#SBATCH --time=10\nsrun python3 train.py\n",
    "task.sky.yaml": "name: task\nnum_nodes: 2\nrun: |\n  echo here\n",
}
# A command that a table only begins.
COMPLETED = {
    "stoker submit --after r-7:ok": "-- true", "stoker submit --begin 22:00": "-- true", "stoker submit --dry-run": "train.yaml",
    "stoker whatif": "-- true", "stoker edit r-7": "--priority 5", "stoker describe": "r-7", "stoker logs -f": "r-7", "stoker cancel": "r-7",
    "stoker deploy FILE --render DIR": "--target slurm,kubernetes", "stoker exec": "r-7 -- true", "stoker plan": "train.yaml",
}
# Nothing to run by itself; what needs an accounting or a node that may be drained; a checkpoint that nobody wrote.
LEFT_OUT = {"stoker up", "stoker usage --against sacct", "stoker nodes drain", "stoker run --resume r-7", "stoker plan"}
WAITS = {"cancel", "hold", "release", "edit"}


def guide(name, **changes):
    text = open(os.path.join(GUIDES, name + ".md")).read()
    for before, after in changes.values():
        check(before in text, f"{name}.md has no {before!r} any more")
        text = text.replace(before, after)
    return text


def newcomer(t, folder):
    """Nobody told the commands anything; files lie where people work."""
    t.folder = folder
    t.environment.pop("STOKER_FOLDER")
    programs = os.path.join(t.base, "programs")
    os.makedirs(programs, exist_ok=True)
    os.symlink(os.path.abspath(t.binary), os.path.join(programs, "stoker"))
    t.environment["PATH"] = programs + ":" + t.environment["PATH"]
    for name, text in FILES.items():
        t.write(name, text)
    return programs


def run_block(t, text):
    """A line at a time, as it is typed; what is exported stays."""
    for line in text.splitlines():
        line = re.sub(r"\s+#.*", "", line)
        if exported := re.fullmatch(r"export (\w+)=(\S+)", line):
            t.environment[exported[1]] = exported[2]
        elif line.startswith("stoker up") and line.endswith("&"):
            t.up(*shlex.split(line[:-1])[2:])
            wait_for("its nodes", lambda: t.json("nodes"), LIMIT_S)
        elif line:
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", line], cwd=t.work, env=t.environment, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=LIMIT_S)
            check(done.returncode == 0, f"exit {done.returncode} of {line}\n{done.stdout[-600:]}{done.stderr[-1500:]}")
            yield line, done.stdout.strip()


def follow(t, text):
    """All blocks; the answers of its commands."""
    answers = {}
    for kind, name, block in BLOCK.findall(text):
        if name:
            t.write(name, block)
        elif kind == "sh":
            answers.update(run_block(t, block))
        elif kind == "":
            for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
                command, _, expected = part.partition("\n")
                answers.update(run_block(t, command))
                check(answers[command] == expected.strip(), f"{command} says {answers[command]!r}")
    return answers


def try_the_commands(t, text, on=""):
    """Every `stoker ...` of a text, with a run of ours for r-7; on: the engine has ranks on other machines."""
    ended = t.call("submit", "--", "true").stdout.strip()
    running = t.call("submit", "--", "sh", "-c", "while :; do sleep 0.2; done").stdout.strip()
    t.wait_state(ended, "succeeded", limit_s=LIMIT_S)
    t.wait_state(running, "running", limit_s=LIMIT_S)
    tried = 0
    for command in sorted(set(re.findall(r"`(stoker [^`]*)`", text)) - LEFT_OUT):
        words = shlex.split(command.replace("FILE", "image.yaml" if "deploy" in command else "train.yaml").replace("DIR", "out").replace("NAME", "true").replace("-- prog", "-- true") + " "
                            + COMPLETED.get(command, ""))[1:]
        verb = words[0]
        run = running if verb == "exec" else ended
        if verb in WAITS:
            run = t.call("submit", "--hold", "--", "true").stdout.strip()
        words = [word.replace("r-7", run) for word in words]
        if words[:2] == ["nodes", "describe"]:
            words[2] = t.json("nodes")[0]["name"]
        done = t.call(*words, exit=None, limit_s=LIMIT_S)
        if verb == "exec" and on:
            check(on in done.stderr, f"{command}: {done.stderr}")
        else:
            check(done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout[-300:]}{done.stderr[-800:]}")
        tried += 1
    check(tried > 5, f"{tried} commands")
    t.call("cancel", running)
    t.wait_state(running, "cancelled", limit_s=LIMIT_S)


# A guide whose third command fails is a guide that nobody followed.
def test_the_guide_of_slurm(t):
    if why := slurm_cluster.why_not():
        raise Skipped(why)
    base = tempfile.mkdtemp(prefix="stoker-slurm-")
    os.chmod(base, 0o755)
    cluster = slurm_cluster.Cluster(base)
    try:
        shared = os.path.join(t.base, "shared")
        text = guide("slurm", partition=("partition: gpu\n", f"partition: main\n  config: {cluster.config}\n"), shared=("/shared/", shared + "/"))
        newcomer(t, os.path.join(shared, "stoker"))
        answers = follow(t, text)
        check("n1" in answers["stoker nodes"] and "8/8" in answers["stoker nodes"], answers["stoker nodes"])
        for line, run in answers.items():
            if line.startswith("stoker submit"):
                t.wait_state(run, "succeeded", limit_s=LIMIT_S)
        try_the_commands(t, text)
    finally:
        cluster.close()
        shutil.rmtree(base, ignore_errors=True)


RIGHTS = [  # as the guide has them
    ("Role", {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "get", "list", "watch", "patch", "delete"]}),
    ("Role", {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "patch", "delete"]}),
    ("Role", {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}),
    ("Role", {"apiGroups": [""], "resources": ["services"], "verbs": ["create"]}),
    ("Role", {"apiGroups": [""], "resources": ["events", "resourcequotas"], "verbs": ["list"]}),
    ("ClusterRole", {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]}),
]


def give_rights(pods, space):
    """An account of the namespace with what the guide asks for and nothing else; its token."""
    pods.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "stoker", "namespace": space}})
    group = "rbac.authorization.k8s.io"
    for kind in ("Role", "ClusterRole"):
        meta = {"name": "stoker", **({"namespace": space} if kind == "Role" else {})}
        pods.create({"apiVersion": group + "/v1", "kind": kind, "metadata": meta, "rules": [rule for at, rule in RIGHTS if at == kind]})
        pods.create({"apiVersion": group + "/v1", "kind": kind + "Binding", "metadata": meta,
                     "roleRef": {"apiGroup": group, "kind": kind, "name": "stoker"},
                     "subjects": [{"kind": "ServiceAccount", "name": "stoker", "namespace": space}]})
    return wait_for("a token", lambda: pods.tell("kubectl", "create", "token", "stoker", "-n", space).strip(), LIMIT_S)


def test_the_guide_of_kubernetes(t):
    pods = Pods()
    try:
        shared = os.path.join(t.base, "shared")
        os.makedirs(shared)
        text = guide("kubernetes", shared=("/shared", shared))
        programs = newcomer(t, os.path.join(shared, "stoker"))
        pods.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "research"}})
        pods.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "registry-key", "namespace": "research"}, "type": "kubernetes.io/dockerconfigjson",
                     "data": {".dockerconfigjson": base64.b64encode(b'{"auths":{}}').decode()}})
        volume = {"accessModes": ["ReadWriteMany"], "storageClassName": "shared"}
        pods.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "shared"},
                     "spec": {**volume, "capacity": {"storage": "1Gi"}, "hostPath": {"path": shared}}})
        pods.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "stoker", "namespace": "research"},
                     "spec": {**volume, "resources": {"requests": {"storage": "1Gi"}}}})
        config = json.load(open(pods.config))
        admin = pods.config
        config["users"] = [{"name": "admin", "user": {"token": give_rights(pods, "research")}}]
        os.makedirs(os.path.join(t.base, ".kube"))
        with open(os.path.join(t.base, ".kube", "config"), "w") as file:
            json.dump(config, file)
        answers = follow(t, text)
        check("k1" in answers["stoker nodes"] and "8/8" in answers["stoker nodes"], answers["stoker nodes"])
        for line, run in answers.items():
            if line.startswith("stoker submit"):
                t.wait_state(run, "succeeded", limit_s=LIMIT_S)
        try_the_commands(t, text, on="kubectl exec")
        # The server goes for good: its Jobs are let go as the guide says.
        t.wait_state(t.call("submit", "--", "sh", "-c", "while :; do sleep 0.2; done").stdout.strip(), "running", limit_s=LIMIT_S)
        t.servers[-1].kill()
        t.servers[-1].wait()
        with open(os.path.join(programs, "kubectl"), "w") as file:
            file.write(f"#!/bin/sh\nexec {shlex.quote(kube.program())} kubectl --kubeconfig {shlex.quote(admin)} -n research \"$@\"\n")
        os.chmod(file.name, 0o755)
        away = " ".join(re.search(r"`(kubectl get jobs [^`]*)`", text)[1].split())
        for line in (away, "kubectl delete jobs --all --wait=false"):
            list(run_block(t, line))
        wait_for("no Jobs", lambda: pods.tell("kubectl", "get", "jobs", "-n", "research", "-o", "name").strip() == "", LIMIT_S)
    finally:
        pods.close()


def test_the_words_of_others_have_ours(t):
    text = guide("migrating")
    newcomer(t, os.path.join(t.base, ".local", "state", "stoker"))
    t.write("server.yaml", "nodes: [{name: box, vcpus: 16, memory: 8GiB, gpu: A100-SXM4-80GB, gpus: 8}]\n")
    t.up("--config", os.path.join(t.work, "server.yaml"))
    try_the_commands(t, text)
    ours = [row.split(" | ")[-1] for row in text.splitlines() if row.startswith("| ")]
    keys = [each for row in ours for each in re.findall(r"`(\w+: [^`…]+)`", row)]
    check(len(keys) >= 6, f"{keys}")
    for key in keys:
        name = key.split(":")[0]
        if name == "parallel":
            key = "{NAME: [1, 2]}\n  ".join(("sweep: ", key))
        if name == "nodes":
            key = "ranks: 2\n  " + key
        t.write("one.yaml", f"version: 1\nrun:\n  command: 'true'\n  {key}\n")
        told = t.call("submit", "--dry-run", "one.yaml", exit=None)  # 1: it would wait
        check(told.returncode in (0, 1) and "error" not in told.stderr, f"{key}: {told.stdout}{told.stderr}")


if __name__ == "__main__":
    harness.main(globals())

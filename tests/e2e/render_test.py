#!/usr/bin/env python3
"""What stoker deploy renders is read by who will read it: every target, of plans of every kind and cloud.

    python3 tests/e2e/render_test.py --stoker build/release/stoker [NAME...]

Readers that are really run here: bash, shellcheck, Python, parsers of JSON, YAML and TOML, stoker check, kubectl's kustomize,
terraform fmt, ajv with the ARM schemas, and the API server of tests/kube where it was built. Options of Megatron-LM, SGLang, TGI and
vLLM, and keys of DeepSpeed and Accelerate, are held against the lists of their sources (render/*.txt). STOKER_PLANS=all takes every template and example as well.
render_slurm_test.py has Slurm and PyTorch, render_readers_test.py Terraform and the operators of Kubernetes, render_programs_test.py the programs themselves."""

import ast
import atexit
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import time

import yaml

import harness
import kube
from arm_schema_test import ajv
from harness import Skipped, check, main

HERE = pathlib.Path(__file__).resolve().parent
FROZEN = HERE.parent / "golden" / "catalog"
COMMAND = "run: {command: [python3, work.py, --name, \"it's $HOME\"], image: registry.example/work:1.4}\n"
TRAIN = "version: 1\nname: train\nkind: training\nmodel: llama-3-8b\ndata: {tokens: 1B, sequence: 8192}\n"
SERVE = "version: 1\nname: serve\nkind: inference\nmodel: llama-3-70b\ntraffic: {requests_per_second: 5, prompt_tokens: 500, output_tokens: 200}\n"
PLANS = {
    "gang": TRAIN + "where: {sizes: [Standard_ND96isr_H100_v5], nodes: 2, regions: [eastus]}\n",
    "gang-run": TRAIN + "where: {sizes: [Standard_ND96isr_H100_v5], nodes: 2, regions: [eastus]}\n" + COMMAND,
    "megatron": TRAIN.replace("8b", "70b") + "framework: megatron\nlayout: {tensor: 8, pipeline: 2}\n"
                "where: {sizes: [Standard_ND96isr_H100_v5], nodes: 16, regions: [eastus]}\n" + COMMAND,
    "zero3": TRAIN + "layout: {zero: 3, recompute: full}\nwhere: {sizes: [Standard_ND96asr_v4], nodes: 1, regions: [eastus]}\n" + COMMAND,
    "spot": TRAIN + "where: {cloud: azure, regions: [eastus], spot: only, gpus: 8}\n" + COMMAND,
    "ddp": "version: 1\nname: resnet\nkind: training\nmodel: resnet-50\ndata: {examples: 1281167, epochs: 90}\nlayout: {zero: 0}\n"
           "framework: pytorch\nwhere: {regions: [eastus], gpus: 4}\n" + COMMAND,
    "qlora": "version: 1\nname: tune\nkind: fine-tuning\nmodel: llama-3-8b\nmethod: qlora\ndata: {examples: 50000, sequence: 1024, epochs: 3}\n"
             "where: {regions: [eastus]}\n" + COMMAND,
    "tune": "version: 1\nname: tune\nkind: fine-tuning\nmodel: llama-3.1-8b\nmethod: full\ndata: {examples: 200000, sequence: 4096, epochs: 2}\n"
            "where: {sizes: [Standard_ND96isr_H100_v5], nodes: 2, regions: [eastus]}\n",
    "serve": SERVE + "objective: {latency: {ttft_p95: 2s, tpot_p95: 50ms}}\nwhere: {regions: [eastus]}\n",
    "serve-many": SERVE.replace("second: 5", "second: 20") + "where: {regions: [eastus]}\n",
    "serve-sglang": SERVE + "framework: sglang\nwhere: {regions: [eastus]}\n",
    "serve-trt": SERVE + "framework: tensorrt-llm\nwhere: {regions: [eastus]}\n",
    "large": SERVE.replace("llama-3-70b", "llama-3.1-405b") + "where: {sizes: [Standard_ND96isr_H100_v5], regions: [eastus]}\n",
    "pile": "version: 1\nname: pile\nkind: batch-inference\nmodel: llama-3-8b\ntraffic: {requests: 10M, prompt_tokens: 1000, output_tokens: 200}\n"
            "objective: {deadline: 12h}\nwhere: {regions: [eastus]}\n" + COMMAND,
    "files": "version: 1\nname: files\nkind: preprocessing\nvcpu_hours: 5000\nmemory: 32GiB\nobjective: {deadline: 12h}\n"
             "where: {regions: [eastus], spot: allowed}\n" + COMMAND,
    "notebook": "version: 1\nname: 2nd Notebook\nkind: notebook\nmemory: 16GiB\nperiod: 8h\nwhere: {regions: [westeurope]}\n",
    "aws": TRAIN + "where: {cloud: aws, gpus: 16}\n" + COMMAND,
    "aws-one": TRAIN + "where: {cloud: aws, gpus: 8}\n" + COMMAND,
    "gcp": TRAIN + "where: {cloud: gcp, gpus: 8}\n" + COMMAND,
    "own": TRAIN + "where: {cloud: on-prem, nodes: nodes.yaml}\n" + COMMAND,
    "front": SERVE.replace("second: 5", "second: 20") + "front: {image: registry.example/gateway:1.4, cpu_per_request: 40ms, health: /healthz}\n"
             "orchestrator: aks\nwhere: {regions: [eastus]}\n",
    "follows": SERVE.replace("70b", "8b").replace("second: 5", "second: 60") + "orchestrator: vmss\n"
               "where: {sizes: [Standard_NC24ads_A100_v4], regions: [eastus]}\n",
    "guarded": TRAIN + "sensitive: true\norchestrator: vmss\nwhere: {sizes: [Standard_NC24ads_A100_v4], nodes: 2, regions: [eastus]}\n" +
               COMMAND.replace("registry.example", "acme.azurecr.io"),
    "own-parts": "version: 1\nname: parts\nkind: batch-inference\nmodel: llama-3.2-1b\ntraffic: {requests: 1M, prompt_tokens: 500, output_tokens: 100}\n"
                 "objective: {deadline: 12h}\nwhere: {cloud: on-prem, nodes: parts.yaml}\n" + COMMAND,
    "own-parts-serve": SERVE.replace("llama-3-70b", "llama-3.2-1b") + "where: {cloud: on-prem, nodes: parts.yaml}\n",
}
if os.environ.get("STOKER_PLANS") == "all":  # also by the tests that import this one: minutes, where the plans above are a sample
    for each in sorted([*(HERE.parents[1] / "data" / "templates").glob("*.yaml"), *(HERE.parents[1] / "examples").glob("*.yaml")]):
        text = each.read_text()
        if re.search(r"^kind:", text, re.M) and "nodes.yaml" not in text and not re.search(r"^ +steps:", text, re.M):
            PLANS[each.parent.name + "-" + each.stem] = text if re.search(r"^run:", text, re.M) else text.rstrip("\n") + "\n" + COMMAND
    SERVE_8B = SERVE.replace("70b", "8b")
    PLANS.update({
        "experts": SERVE.replace("llama-3-70b", "deepseek-v3") + "where: {sizes: [Standard_ND96isr_H100_v5], regions: [eastus]}\n",
        "speech": SERVE.replace("llama-3-70b", "whisper-large-v3") + "sensitive: true\nwhere: {regions: [eastus]}\n",
        "vectors": SERVE.replace("llama-3-70b", "e5-large").replace(", output_tokens: 200", "") + "where: {regions: [eastus]}\n",
        "aks-spot": TRAIN + "orchestrator: aks\nwhere: {cloud: azure, regions: [eastus], spot: only, gpus: 16}\n" + COMMAND,
        "ethernet": TRAIN + "where: {sizes: [Standard_NC24ads_A100_v4], nodes: 2, regions: [eastus]}\n" + COMMAND,
        "gke": SERVE_8B + "orchestrator: kubernetes\nwhere: {cloud: gcp}\n",
        "eks": SERVE_8B + "orchestrator: kubernetes\nwhere: {cloud: aws}\n",
        "gcp-guarded": TRAIN + "sensitive: true\nwhere: {cloud: gcp, gpus: 8}\n" + COMMAND,
        "own-k3s": TRAIN.replace("8b", "70b") + "orchestrator: kubernetes\nwhere: {cloud: on-prem, nodes: nodes.yaml}\n" + COMMAND,
        "own-serve": SERVE_8B + "where: {cloud: on-prem, nodes: nodes.yaml}\n",
    })
NODES = """nodes:
  - {name: lab, gpu: A100-SXM-80GB, gpus: 8, vcpus: 128, memory: 1TiB, nvlink: true, rdma: {gbps_per_gpu: 200, kind: infiniband},
     ethernet_gbps: 100, count: 4, price_per_hour: $9.50}
"""
PARTS = "nodes:\n- {name: lab, gpu: H100-SXM, gpus: 8, mig: 1g.10gb, vcpus: 224, memory: 2TiB, count: 2, price_per_hour: $20}\n"
RENDERED = {}
FOLDER = tempfile.mkdtemp(prefix="stoker-render-")  # of all tests: what is rendered once is read by each
atexit.register(shutil.rmtree, FOLDER, True)


def targets(t):
    return [row["name"] for row in json.loads(t.call("deploy", "--list", "-o", "json").stdout)]


def rendered(t):
    """{(plan, target): folder}, of all that do not refuse; made once."""
    if RENDERED:
        return RENDERED
    with open(os.path.join(FOLDER, "nodes.yaml"), "w") as file:
        file.write(NODES)
    with open(os.path.join(FOLDER, "parts.yaml"), "w") as file:
        file.write(PARTS)
    for name, text in PLANS.items():
        with open(os.path.join(FOLDER, name + ".yaml"), "w") as file:
            file.write(text)

    def one(pair):
        plan, target = pair
        folder = os.path.join(FOLDER, "out", plan, target)
        done = subprocess.run([t.binary, "deploy", os.path.join(FOLDER, plan + ".yaml"), "--render", folder, "--target", target, "--catalog",
                               FROZEN], capture_output=True, text=True, timeout=harness.LIMIT_S, env=t.environment, cwd=FOLDER)
        return pair, folder, done

    pairs = [(plan, target) for plan in PLANS for target in targets(t)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (plan, target), folder, done in pool.map(one, pairs):
            text = " ".join(done.stderr.split())
            if done.returncode == 0:
                RENDERED[plan, target] = folder
            else:
                # What a target cannot say is refused in words, and nothing is written.
                check(done.returncode == 2 and f"error: {target} cannot say this: " in text or "does not say what to run" in text or
                      "stoker run starts it without a plan" in text or done.returncode == 1 and "nothing to deploy" in text and
                      plan.startswith(("templates-", "examples-")), f"{plan}, {target}: exit {done.returncode}: {text[:300]}")
                check(not os.path.exists(folder), f"{plan}, {target}: refused, and yet written")
    return RENDERED


def files(t, *endings):
    for (plan, target), folder in sorted(rendered(t).items()):
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.is_file() and path.name.endswith(endings):
                yield plan, target, path


# Every target says some work, and enough plans have words in it.
def test_every_target_says_something(t):
    said = {target for _, target in rendered(t)}
    missing = [target for target in targets(t) if target not in said and target != "local"]
    check(not missing, f"no plan here is said by {missing}")
    check(len(RENDERED) >= 150, f"only {len(RENDERED)} renderings")


# A path or a name of the machine that rendered tells strangers what is nobody's business; a secret does worse.
# An id that is the same everywhere: of Azure's role Monitoring Metrics Publisher.
ROLE = "3913510d-42f4-4e42-8a64-420c390055eb"


def test_nothing_of_this_machine_is_in_a_file(t):
    words = [FOLDER, os.path.expanduser("~"), os.uname().nodename]
    for plan, target, path in files(t, ""):
        text = path.read_text()
        for word in words:
            check(len(word) < 6 or word not in text, f"{plan}, {target}: {word} in {path.name}")
        check(not re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", text.replace(ROLE, "")), f"{path}: an id")
        check(text.endswith("\n") and "\t" not in text, f"{plan}, {target}: {path.name}: no line end, or a tab")


def test_a_second_time_it_is_the_same(t):
    for plan, target in list(rendered(t))[::7]:
        done = t.call("deploy", os.path.join(FOLDER, plan + ".yaml"), "--diff", RENDERED[plan, target], "--target", target, "--catalog",
                      str(FROZEN))
        check("no difference" in done.stdout, done.stdout[:500])


def test_our_own_rules_find_nothing(t):
    found = []
    for (plan, target), folder in sorted(rendered(t).items()):
        done = t.call("check", folder, exit=None)
        if done.returncode != 0 or "no findings" not in done.stdout:
            found.append(f"{plan}, {target}:\n{done.stdout[:700]}{done.stderr[:300]}")
    check(not found, "\n".join(found))


def test_shells_read_the_scripts(t):
    scripts = [path for _, _, path in files(t, ".sh", ".sbatch", ".pbs", ".sge")]
    check(len(scripts) > 60, f"{len(scripts)} scripts")
    for path in scripts:
        done = subprocess.run(["bash", "-n", path], capture_output=True, text=True, timeout=30)
        check(done.returncode == 0, f"{path}: {done.stderr}")
        check(os.access(path, os.X_OK), f"{path} is not executable")
    if shutil.which("shellcheck"):  # SC2016: a dollar that the program is given as it is
        done = subprocess.run(["shellcheck", "-f", "gcc", "-e", "SC2016", *[str(path) for path in scripts if path.suffix != ".sge"]], capture_output=True,
                              text=True, timeout=300)
        check(done.returncode == 0, done.stdout[:2000])


def test_parsers_read_the_rest(t):
    check(all(len(list(files(t, ending))) > 5 for ending in (".json", ".yaml", ".py")), "too few files")
    for _, _, path in files(t, ".json"):
        json.loads(path.read_text())
    for _, _, path in files(t, ".yaml"):
        check(any(list(yaml.safe_load_all(path.read_text()))), f"{path} is empty")
    for _, _, path in files(t, ".py"):
        ast.parse(path.read_text())


# Batch gives every task of a node all of its devices: two that take the same one are a run that is twice as long, or none.
def test_tasks_of_a_node_take_a_device_each(t):
    path = os.path.join(FOLDER, "devices.yaml")
    with open(path, "w") as file:
        file.write(PLANS["pile"].replace("where: {", "where: {sizes: [Standard_ND96asr_v4], nodes: 1, ").replace("objective: {deadline: 12h}\n", ""))
    out, shared, programs = (os.path.join(t.base, name) for name in ("devices", "shared", "programs"))
    for folder in (shared, programs):
        os.makedirs(folder)
    t.call("deploy", path, "--render", out, "--target", "batch", "--catalog", str(FROZEN))
    with open(os.path.join(programs, "python3"), "w") as file:  # the work: it says what it has, and lasts until it is told
        file.write('#!/bin/sh\necho "$CUDA_VISIBLE_DEVICES $3" > "$AZ_BATCH_NODE_SHARED_DIR/took-$STOKER_ARRAY_INDEX"\nread -r _\n')
    os.chmod(os.path.join(programs, "python3"), 0o755)
    tasks = json.loads(pathlib.Path(out, "tasks.json").read_text())
    environment = dict(os.environ, AZ_BATCH_NODE_SHARED_DIR=shared, PATH=programs + ":" + os.environ["PATH"])

    def start(task):
        said = {each["name"]: each["value"] for each in task["environmentSettings"]}
        return subprocess.Popen(shlex.split(task["commandLine"]), env={**environment, **said}, stdin=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
    started = [start(task) for task in tasks]
    try:
        harness.wait_for("all tasks run", lambda: len([each for each in pathlib.Path(shared).glob("took-*") if each.read_text()]) == 8)
        took = [each.read_text().split(" ", 1) for each in pathlib.Path(shared).glob("took-*")]
        check(sorted(device for device, _ in took) == list("01234567"), took)
        check({name for _, name in took} == {"it's $HOME\n"}, took)  # its words came through both shells
        late = start(tasks[0])
        check(late.wait(timeout=60) == 1 and "no device is free" in late.stderr.read(), "a ninth task took a device")
    finally:
        for each in started:
            each.communicate("\n", timeout=60)


def deployment(t, plan, target):  # a target of one framework is planned for it
    done = t.call("deploy", os.path.join(FOLDER, plan + ".yaml"), "--target", target, "-o", "json", "--catalog", str(FROZEN))
    return json.loads(done.stdout)


# An option that its program does not have ends the run on all nodes, after they have been paid for.
def test_options_are_those_of_the_programs(t):
    for target, script in ((name, r"arguments=\(\n(.*?)\n\)") for name in ("megatron", "sglang", "tgi", "vllm")):
        known = {line for line in (HERE / "render" / f"{target}_flags.txt").read_text().splitlines() if not line.startswith("#")}
        seen = 0
        for plan, name, path in files(t, ".sh"):
            if name != target:
                continue
            block = re.search(script, path.read_text(), re.S).group(1)
            for flag in re.findall(r"^ +--([\w-]+)", block, re.M):
                seen += 1
                check(flag in known, f"{plan}: {target} has no option --{flag}")
        check(seen > 10, f"{target}: {seen} options")


def key_paths(value, before=""):
    for key, inner in value.items():
        yield before + key
        if isinstance(inner, dict):
            yield from key_paths(inner, f"{before}{key}.")


# A key that a framework does not know is passed over, and the layout is another one than planned.
def test_keys_are_those_of_the_frameworks(t):
    for target, ending, read in (("deepspeed", "-deepspeed.json", json.loads), ("accelerate", "-accelerate.yaml", yaml.safe_load)):
        known = {line for line in (HERE / "render" / f"{target}_keys.txt").read_text().splitlines() if not line.startswith("#")}
        seen = 0
        for plan, name, path in files(t, ending):
            if name != target:
                continue
            for key in key_paths(read(path.read_text())):
                seen += 1
                check((key if target == "deepspeed" else key.rsplit(".")[-1]) in known, f"{plan}: {target} has no key {key}")
        check(seen > 20, f"{target}: {seen} keys")


def test_arm_schemas_take_the_templates(t):
    resources, where = [], []
    for plan, _, path in files(t, ".json"):
        template = json.loads(path.read_text())
        if "$schema" not in template or "deploymentTemplate" not in template["$schema"]:
            continue
        for resource in template["resources"]:
            resources.append(resource)
            where.append(f"{plan}: {resource['type']}")
    check(len(resources) > 20, f"{len(resources)} resources")
    for place, answer in zip(where, ajv(resources)):
        # The schemas of Compute that were read have an extension nested in its machine only.
        if place.endswith("virtualMachines/extensions"):
            continue
        check(answer == [], f"{place}: {answer}")


def test_terraform_would_leave_the_files_as_they_are(t):
    if not shutil.which("terraform"):
        raise Skipped("no terraform here: the files are read by stoker check alone")
    check(len(list(files(t, ".tf"))) > 8, "too few files")
    for plan, target, path in files(t, ".tf"):
        done = subprocess.run(["terraform", "fmt", "-check", "-diff", path.name], cwd=path.parent, capture_output=True, text=True, timeout=60)
        check(done.returncode == 0, f"{plan}: {done.stdout[:800]}{done.stderr[:300]}")


def test_kustomize_builds_the_overlays(t):
    if not shutil.which("kubectl"):
        raise Skipped("no kubectl here: the overlays are not built")
    check(len(list(files(t, "kustomization.yaml"))) > 8, "too few files")
    for plan, target, path in files(t, "kustomization.yaml"):
        if path.parent.parent.name != "overlays":
            continue
        done = subprocess.run(["kubectl", "kustomize", path.parent], capture_output=True, text=True, timeout=60)
        check(done.returncode == 0, f"{plan}: {done.stderr[:500]}")
        built = list(yaml.safe_load_all(done.stdout))
        namespace = next(each["metadata"]["name"] for each in built if each["kind"] == "Namespace")
        for each in built:
            check(each["kind"] in ("Namespace", "PriorityClass", "StorageClass", "PersistentVolume") or each["metadata"].get("namespace") == namespace, f"{plan}: {each['kind']} is elsewhere")


# Kinds of Kubernetes itself; those of operators need their CRDs, which are not here.
def test_an_api_server_takes_the_manifests(t):
    try:
        program = kube.program()
    except kube.Missing as why:
        raise Skipped(why) from None
    with kube.Cluster(program) as cluster:
        for plan, target, path in files(t, ".yaml"):
            if target != "kubernetes" or "leaderworkerset" in path.read_text():
                continue
            done = cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", str(path))
            check("created" in str(done), f"{plan}: {done}")


def test_writing_them_takes_no_time(t):
    """Rendering itself, beside the plan: one target, and the same with ten more."""
    path = os.path.join(FOLDER, "gang-run.yaml")
    rendered(t)

    def seconds(*names):
        best = 1e9
        for _ in range(3):
            begin = time.monotonic()
            t.call("deploy", path, "--render", os.path.join(t.base, "timed"), "--target", ",".join(names), "--catalog", str(FROZEN))
            best = min(best, time.monotonic() - begin)
        return best

    many = ["torchrun", "slurm", "pbs", "sge", "kubernetes", "jobset", "kueue", "kustomize", "bicep", "arm", "terraform"]
    each = (seconds(*many) - seconds("torchrun")) / (len(many) - 1)
    print(f"   {1e3 * each:.1f} ms a target, written")
    check(each < 0.2, f"{1e3 * each:.0f} ms a target")


if __name__ == "__main__":
    main(globals())

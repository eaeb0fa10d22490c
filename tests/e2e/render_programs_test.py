#!/usr/bin/env python3
"""What stoker deploy renders for a program, read by the program's own reader of options or configurations.

    python3 tests/e2e/render_programs_test.py --stoker build/release/stoker [NAME...]

torchtitan, Accelerate, DeepSpeed and the schema of Triton's configuration come from PyPI into build/programs-venv, cloud-init from Debian
into build/cloud-init. Nobody needs a GPU to read options: PyTorch and what else is missing has a stand-in (render/stand_ins.py).
vLLM and SGLang are 500 MB and read with STOKER_ENGINES=1 only; without it their options are held against lists (render_test.py)."""

import json
import os
import pathlib
import subprocess

import harness
import render_test as plans
from pythons import pinned_python
from harness import Skipped, check, main

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build"
plans.targets = lambda t: ["torchtitan", "deepspeed", "accelerate", "triton", "vllm", "sglang", "cloud-init", "az", "bicep", "terraform", "azure-ml",
                           "cyclecloud"]
H100 = "where: {sizes: [Standard_ND96isr_H100_v5], nodes: %d, regions: [eastus]}\n"
TITAN = plans.TRAIN + "framework: torchtitan\n"
TUNE = plans.PLANS["tune"].partition("where")[0]
plans.PLANS.update({
    "stages": TITAN.replace("8b", "70b") + "layout: {tensor: 8, pipeline: 4}\n" + H100 % 16,
    "whole-sequences": TITAN + "layout: {tensor: 4, sequence_parallel: false}\n" + H100 % 1,
    "copies": TITAN + "layout: {zero: 3, recompute: full}\n" + H100 % 4,
    "long": TITAN.replace("8192", "65536") + "layout: {context: 4}\n" + H100 % 2,
    "experts": TITAN.replace("llama-3-8b", "qwen3-30b-a3b").replace("sequence: 8192", "sequence: 4096") + "layout: {expert: 8}\n" + H100 % 2,
    "stage-0": plans.TRAIN.replace("llama-3-8b", "llama-3.2-1b") + "layout: {zero: 0}\n" + H100 % 1,
    "stage-1": TUNE + "layout: {zero: 1}\n" + H100 % 2,
    "offloaded": TUNE + "layout: {zero: 3, offload: true}\n" + H100 % 1,
    "chat-experts": plans.SERVE.replace("llama-3-70b", "qwen3-235b-a22b") + "where: {sizes: [Standard_ND96isr_H100_v5], regions: [eastus]}\n",
    "sensitive": plans.PLANS["gang-run"] + "sensitive: true\n",
    "sensitive-notebook": plans.PLANS["notebook"] + "sensitive: true\n",
    "vectors": "version: 1\nname: vectors\nkind: inference\nmodel: e5-large\n"
               "traffic: {requests_per_second: 20, prompt_tokens: 400}\nwhere: {regions: [eastus]}\n",
})


def answers(t, program, questions, requirements="programs", environment=None, options=("--no-deps",)):
    """What the program says to each; one process, since importing it takes seconds."""
    python = pinned_python(HERE / f"requirements_{requirements}.txt", f"{requirements}-venv", *options)
    done = subprocess.run([python, HERE / "render" / "read_by.py", program], input="".join(json.dumps(each) + "\n" for each in questions),
                          capture_output=True, text=True, timeout=300, env=dict(os.environ, HOME=t.base, **(environment or {})))
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    check(len(lines) == len(questions), f"{program}: {len(lines)} answers to {len(questions)}: {done.stderr[-700:]}")
    return lines


def understood(t, program, asked, wrong, **more):
    """{plan: what was read}; one question more is wrong, and has to be refused in words that have this in them."""
    question, words = wrong
    *said, last = answers(t, program, [*asked.values(), question], **more)
    check(words in last.get("refused", ""), f"{program} says of what is wrong: {str(last)[:400]}")
    for plan, answer in zip(asked, said):
        check("refused" not in answer, f"{plan}: {program} refuses it: {' '.join(answer.get('refused', '').split())[-500:]}")
    return {plan: answer["read"] for plan, answer in zip(asked, said)}


def started(t, target, name):
    """{plan: the command line}, of the scripts as they are started; the program itself only says its words."""
    programs = os.path.join(t.base, "programs")
    os.makedirs(programs, exist_ok=True)
    with open(os.path.join(programs, name), "w") as file:
        file.write('#!/bin/bash\nprintf "%s\\0" "$@"\n')
    os.chmod(os.path.join(programs, name), 0o755)
    environment = dict(os.environ, PATH=programs + ":" + os.environ["PATH"], MASTER_ADDR="node-0", NODE_RANK="0", PRETRAINED="/models/base", INPUT="/data/in.jsonl", OUTPUT="/data/out.jsonl")
    out = {}
    for plan, each, path in plans.files(t, ".sh"):
        if each == target:
            done = subprocess.run([path], capture_output=True, text=True, timeout=harness.LIMIT_S, env=environment)
            check(done.returncode == 0, f"{plan}, {target}: {done.stderr}")
            out[plan] = done.stdout.split("\0")[:-1]
    check(len(out) > 1, f"{target}: {len(out)} scripts")
    return out


# What torchtitan does not take ends the run on every node, after they were paid for.
def test_torchtitan_reads_its_command_line(t):
    asked = {plan: words[words.index("torchtitan.train") + 1:] for plan, words in started(t, "torchtitan", "torchrun").items()}
    missing = {"stages", "whole-sequences", "copies", "long", "experts", "tune"} - set(asked)
    check(not missing, f"not rendered: {missing}")
    wrong = ["--module", "llama3", "--config", "llama3_8b", "--parallelism.tensor_degree", "2"]
    for plan, read in understood(t, "torchtitan", asked, (wrong, "tensor_degree")).items():
        work = plans.deployment(t, plan, "torchtitan")["training"]
        layout, said = work["layout"], read["parallelism"]
        for name, value in (("tensor_parallel_degree", layout["tensor"]), ("pipeline_parallel_degree", layout["pipeline"]),
                            ("context_parallel_degree", layout["context"]), ("expert_parallel_degree", layout["expert"])):
            check(said[name] == value, f"{plan}: {name} is {said[name]}, planned {value}")
        check(layout["tensor"] == 1 or said["enable_sequence_parallel"] == layout["sequence_parallel"], f"{plan}: sequence parallel")
        check(read["training"]["global_batch_size"] == work["global_batch"], f"{plan}: {read['training']}")
        check(("Full" in read["recompute"]) == (layout["recompute"] == "full"), f"{plan}: {read['recompute']}, planned {layout['recompute']}")


def test_accelerate_reads_its_configuration(t):
    asked = {plan: words[1:] + ["train.py"] for plan, words in started(t, "accelerate", "accelerate").items()}
    broken = os.path.join(t.base, "broken.yaml")
    with open(broken, "w") as file:
        file.write("compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nshards: 3\n")
    for plan, read in understood(t, "accelerate", asked, (["--config_file", broken, "train.py"], "shards")).items():
        d = plans.deployment(t, plan, "accelerate")
        check((read["num_machines"], read["num_processes"]) == (d["nodes"]["count"], d["ranks"]["count"]), f"{plan}: {read}")
        told = read["environment"]
        check((told.get("ACCELERATE_USE_FSDP") == "true") == (read["distributed_type"] == "FSDP"), f"{plan}: {told}")
        if read["distributed_type"] == "FSDP":
            check((told["FSDP_RESHARD_AFTER_FORWARD"] == "true") == (d["training"]["layout"]["zero"] == 3), f"{plan}: {told}")


# It asserts that the batches go up, which is a minute after the nodes have started.
def test_deepspeed_reads_its_configuration(t):
    asked, work = {}, {}
    for plan, target, path in plans.files(t, "-deepspeed.json"):
        if target != "deepspeed":
            continue
        work[plan] = plans.deployment(t, plan, target)["training"]
        asked[plan] = [json.loads(path.read_text()), work[plan]["layout"]["data"]]
    check({layout["layout"]["zero"] for layout in work.values()} == {0, 1, 2, 3}, "not every stage")
    wrong = [{"train_batch_size": 7, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1}, 4]
    for plan, read in understood(t, "deepspeed", asked, (wrong, "batch")).items():
        layout = work[plan]["layout"]
        check((read["batch"], read["micro"], read["accumulation"], read["stage"]) ==
              (work[plan]["global_batch"], layout["micro_batch"], layout["micro_batches"], layout["zero"]), f"{plan}: {read}")


def test_the_schema_of_triton_takes_its_configuration(t):
    asked = {plan: path.read_text() for plan, _, path in plans.files(t, "config.pbtxt")}
    check(len(asked) > 1, f"{len(asked)} files")
    for plan, read in understood(t, "triton", asked, ('backends: "vllm"', "no field named")).items():
        check(read["backend"] == "vllm" and read["instance_group"][0]["kind"] == "KIND_MODEL", f"{plan}: {read}")


def cloud_init():
    """Where Debian's package is unpacked; nothing is installed."""
    folder = BUILD / "cloud-init"
    python = folder / "usr" / "lib" / "python3" / "dist-packages"
    if not python.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for words in (["apt-get", "download", "-q", "cloud-init"], ["sh", "-c", "dpkg-deb -x cloud-init_*.deb ."]):
            done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120)
            if done.returncode != 0:
                raise Skipped(f"no cloud-init from Debian: {done.stderr.strip()[-200:]}")
    return str(python)


# cloud-init passes over what it does not understand, and the machine comes up without its disk.
def test_cloud_init_takes_the_first_boot(t):
    path = cloud_init()
    broken = os.path.join(t.base, "broken.yaml")
    with open(broken, "w") as file:
        file.write("#cloud-config\nruncmds: [true]\n")
    asked = {f"{plan}, {target}": str(path) for plan, target, path in plans.files(t, "cloud-init.yaml")}
    check(len(asked) > 40, f"{len(asked)} files")
    understood(t, "cloud-init", asked, (broken, "runcmds"), environment={"PYTHONPATH": path})


# Azure ML refuses a file after the workspace was asked, in a job that waits for its nodes.
def test_azure_ml_reads_its_files(t):
    asked = {f"{plan}, {path.name}": str(path) for plan, target, path in plans.files(t, ".yaml") if target == "azure-ml"}
    check(len(asked) > 8 and any("workspace" in name for name in asked), list(asked))
    broken = os.path.join(t.base, "broken.yaml")
    with open(broken, "w") as file:
        file.write("$schema: https://azuremlschemas.azureedge.net/latest/amlCompute.schema.json\nname: a\ntype: amlcompute\nsize: s\nmin_instance: 1\n")
    read = understood(t, "azure-ml", asked, (broken, "min_instance"), requirements="ml", options=())
    for name, said in read.items():
        plan, path = name.split(", ", 1)[0], asked[name]
        if said.get("type") == "command":
            d = plans.deployment(t, plan, "azure-ml")
            check(said["resources"]["instance_count"] == d["nodes"]["count"], f"{name}: {said['resources']}")
            check("training" not in d or said["distribution"]["process_count_per_instance"] == d["ranks"]["per_node"], f"{name}: {said}")
            check(said["environment_variables"].get("STOKER_TENSOR") == str(d["training"]["layout"]["tensor"]), f"{name}: {said['environment_variables']}")
        with open(path) as file:
            text = file.read()
        check("sensitive" not in plan or "type: compute" not in text and "type: amlcompute" not in text or "enable_node_public_ip: false" in text, name)


# Of bicep/types.bicep of Azure/cyclecloud-slurm-workspace at bc0fc1b (2026.07.02): the kinds of each parameter, and what each has to have;
# a field with ? may be left out.
NODES = {"": {"sku": str, "osImage": str, "maxNodes": int, "availabilityZone?": list}}
FILES = {"nfs-new": {"nfsCapacityInGb": int}, "nfs-existing": {"ipAddress": str, "exportPath": str, "mountOptions?": str}}
WORKSPACE = {
    "adminUsername": str, "ccVMName": str, "ccVMSize": str, "clusterName": str, "tags": {"": {}}, "schedFilesystem": FILES, "sharedFilesystem": FILES,
    "network": {"new": {"name?": str, "addressSpace": str, "cyclecloudSubnet?": str, "computeSubnet?": str, "netappSubnet?": str, "lustreSubnet?": str,
                        "bastion?": bool, "createNatGateway?": bool, "vnetToPeer?": dict, "peeringAllowGatewayTransit?": bool}},
    "storagePrivateDnsZone": {"new": {}, "none": {}, "existing": {"id": str, "vnetLink?": bool}},
    "slurmSettings": {"": {"startCluster": bool, "version": str, "healthCheckEnabled": bool}},
    "schedulerNode": {"": {"sku": str, "osImage": str}},
    "loginNodes": {"": {"sku": str, "osImage": str, "initialNodes": int, "maxNodes": int}},
    "htc": {"": {**NODES[""], "useSpot?": bool}}, "hpc": NODES, "gpu": NODES,
}


def test_the_workspace_takes_its_parameters(t):
    seen = 0
    for plan, _, path in plans.files(t, "workspace.json"):
        seen += 1
        said = {name: each["value"] for name, each in json.loads(path.read_text())["parameters"].items()}
        script = next(path.parent.glob("*-workspace.sh")).read_text()
        check(all(f"{name}=" in script for name in ("location", "resourceGroup", "key")) and "Password" not in script.replace("password of", ""), script)
        check(set(said) == set(WORKSPACE), f"{plan}: {set(said) ^ set(WORKSPACE)}")
        for name, value in said.items():
            kinds = WORKSPACE[name]
            if isinstance(kinds, type):
                check(type(value) is kinds, f"{plan}: {name} is {value}")
                continue
            fields = kinds[value["type"] if "" not in kinds else ""]
            known = {field.rstrip("?"): kind for field, kind in fields.items()}
            check(set(value) - {"type"} <= set(known) and {field for field in fields if field[-1] != "?"} <= set(value), f"{plan}: {name} is {value}")
            check(all(type(value[field]) is known[field] for field in value if field != "type"), f"{plan}: {name} is {value}")
        d = plans.deployment(t, plan, "cyclecloud")
        part = said["gpu" if d["nodes"].get("gpus", 0) else "htc"]
        check((part["sku"], part["maxNodes"]) == (d["nodes"]["machine"], d["nodes"]["count"]), f"{plan}: {part}")
    check(seen > 4, f"{seen} plans")


def engines():
    if os.environ.get("STOKER_ENGINES") != "1":
        raise Skipped("vLLM and SGLang are read with STOKER_ENGINES=1 only; their options are held against lists")


def test_vllm_reads_its_command_line(t):
    engines()
    asked = started(t, "vllm", "vllm")
    models = {f"{plan}, triton": {key: value for key, value in json.loads(path.read_text()).items()}
              for plan, _, path in plans.files(t, "model.json")}
    read = understood(t, "vllm", {**asked, **models}, (["serve", "m", "--tensor-parallel", "2", "--max-seqs", "3"], "--max-seqs"), requirements="engines")
    for plan in asked:
        work = plans.deployment(t, plan, "vllm").get("serving")
        if work:
            check((read[plan]["tensor_parallel_size"], read[plan]["max_model_len"]) == (work["tensor"], work["context_tokens"]), plan)


def test_sglang_reads_its_command_line(t):
    engines()
    asked = {plan: words[words.index("--model-path"):] for plan, words in started(t, "sglang", "python3").items()}
    read = understood(t, "sglang", asked, (["--model-path", "m", "--tensor-size", "2"], "--tensor-size"), requirements="engines")
    for plan, said in read.items():
        work = plans.deployment(t, plan, "sglang").get("serving")
        if work:
            # Of SGLang all ranks of a replica: attention divides them.
            ranks = work["tensor"] * work["data"] if said["enable_dp_attention"] else work["tensor"]
            check((said["tp_size"], said["context_length"]) == (ranks, work["context_tokens"]), f"{plan}: {said['tp_size']}")
            check(said["dp_size"] == (work["data"] if said["enable_dp_attention"] else 1), f"{plan}: {said['dp_size']} groups")


if __name__ == "__main__":
    main(globals())

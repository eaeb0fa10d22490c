#!/usr/bin/env python3
"""What stoker deploy renders is read back, and the plan is found again: degrees, nodes, ranks, bounds, replicas.

    python3 tests/e2e/render_read_back_test.py --stoker build/release/stoker [NAME...]

Readers are those of the formats (YAML, JSON, Python's own), for each target that starts a training or a service."""

import ast
import pathlib
import re

import yaml

import render_test as plans
from harness import check, main
from render_test import deployment, rendered


def number(text, flag):
    found = re.search(rf"{re.escape(flag)}[ =:]+\"?(\d+)", text)
    return int(found.group(1)) if found else None


# A degree that is lost on the way is a run that does not fit its memory, or a bill twice as high.
def test_the_degrees_of_a_training_are_found_again(t):
    for plan, target in sorted(rendered(t)):
        if target not in ("megatron", "nemo", "torchtitan", "deepspeed", "accelerate", "torchrun", "slurm"):
            continue
        d = deployment(t, plan, target)
        if "training" not in d:
            continue
        layout, folder = d["training"]["layout"], pathlib.Path(plans.RENDERED[plan, target])
        text = "".join(path.read_text() for path in sorted(folder.rglob("*")) if path.is_file())
        batch = int(d["training"]["global_batch"])
        wanted = {
            "megatron": {"--tensor-model-parallel-size": layout["tensor"], "--pipeline-model-parallel-size": layout["pipeline"],
                         "--context-parallel-size": layout["context"], "--micro-batch-size": layout["micro_batch"],
                         "--global-batch-size": batch, "--nnodes": d["nodes"]["count"], "--nproc_per_node": d["ranks"]["per_node"]},
            "nemo": {"tensor_model_parallel_size": layout["tensor"], "pipeline_model_parallel_size": layout["pipeline"],
                     "micro_batch_size": layout["micro_batch"], "global_batch_size": batch, "num_nodes": d["nodes"]["count"]},
            "torchtitan": {"--parallelism.tensor_parallel_degree": layout["tensor"],
                           "--parallelism.pipeline_parallel_degree": layout["pipeline"], "--training.global_batch_size": batch},
            "deepspeed": {'"train_batch_size"': batch, '"train_micro_batch_size_per_gpu"': layout["micro_batch"],
                          '"gradient_accumulation_steps"': layout["micro_batches"], '"stage"': layout["zero"]},
            "accelerate": {"num_machines": d["nodes"]["count"], "num_processes": d["ranks"]["count"]},
            "torchrun": {"--nnodes": d["nodes"]["count"], "--nproc_per_node": d["ranks"]["per_node"], "STOKER_TENSOR": layout["tensor"],
                         "STOKER_DATA": layout["data"], "STOKER_ZERO": layout["zero"], "STOKER_ACCUMULATION": layout["micro_batches"]},
            "slurm": {"#SBATCH --nodes": d["nodes"]["count"], "--nproc_per_node": d["ranks"]["per_node"]},
        }[target]
        for flag, value in wanted.items():
            text_of_flag = text.replace(flag + " =", flag)
            check(number(text_of_flag, flag) == value, f"{plan}, {target}: {flag} is {number(text_of_flag, flag)}, planned {value}")
        if target == "megatron":
            check(("--use-distributed-optimizer" in text) == (layout["zero"] >= 1), f"{plan}: ZeRO-{layout['zero']}")
            check(("--sequence-parallel" in text) == (layout["sequence_parallel"] and layout["tensor"] > 1), plan)
        # What Megatron divides has to go up: the world is the product, and the batch a multiple of data and micro-batch.
        check(layout["tensor"] * layout["pipeline"] * layout["context"] * layout["data"] == d["ranks"]["count"], plan)


def objects(folder):
    """Of Kubernetes, by kind; a kind that is there twice is a list."""
    out = {}
    for path in sorted(folder.rglob("*.yaml")):
        for each in yaml.safe_load_all(path.read_text()):
            if isinstance(each, dict) and "kind" in each:
                out.setdefault(each["kind"], []).append(each)
    return out


def containers(value):
    """Of all pods in it."""
    if isinstance(value, list):
        for each in value:
            yield from containers(each)
    elif isinstance(value, dict):
        yield from value.get("containers", [])
        for each in value.values():
            yield from containers(each)


def after(words, flag):
    return int(words[words.index(flag) + 1])


def started_by(target, folder):
    """(nodes, ranks of a node) as who starts them reads it, with what it has for reading; None where it is not said."""
    text = {path.suffix: path.read_text() for path in sorted(folder.iterdir()) if path.is_file()}
    kinds = objects(folder) if target not in ("accelerate", "azure-ml") else {}
    torchrun = [(after(words, "--nnodes"), after(words, "--nproc_per_node"))
                for words in (each.get("command", []) for each in containers(list(kinds.values()))) if "--nnodes" in words]
    if target in ("kubernetes", "kueue", "aks", "kustomize"):
        [job] = kinds["Job"]
        check(job["spec"]["completions"] == job["spec"]["parallelism"] == torchrun[0][0], f"{target}: {job['spec']}")
        return torchrun[0]
    if target == "jobset":
        spec = kinds["JobSet"][0]["spec"]["replicatedJobs"][0]["template"]["spec"]
        check(spec["completions"] == spec["parallelism"] == torchrun[0][0], spec)
        return torchrun[0]
    if target == "pytorchjob":
        spec = kinds["PyTorchJob"][0]["spec"]
        return sum(each["replicas"] for each in spec["pytorchReplicaSpecs"].values()), int(spec["nprocPerNode"])
    if target == "mpijob":
        spec = kinds["MPIJob"][0]["spec"]
        [words] = [each["command"] for each in containers(spec["mpiReplicaSpecs"]["Launcher"])]
        nodes = spec["mpiReplicaSpecs"]["Worker"]["replicas"]
        check(after(words, "-np") == nodes * spec["slotsPerWorker"], words)
        return nodes, spec["slotsPerWorker"]
    if target in ("ray", "rayjob"):
        driver = text[".py"] if target == "ray" else next(iter(kinds["ConfigMap"][0]["data"].values()))
        said = {each.arg: ast.literal_eval(each.value) for call in ast.walk(ast.parse(driver)) if isinstance(call, ast.Call)
                for each in call.keywords if getattr(call.func, "id", "") == "ScalingConfig"}
        nodes = kinds["RayJob"][0]["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]["replicas"] if target == "rayjob" else None
        return nodes, said["num_workers"]
    if target == "azure-ml":
        said = [yaml.safe_load(path.read_text()) for path in folder.glob("*.yaml")]
        [job] = [each for each in said if each.get("type") == "command"]
        return job["resources"]["instance_count"], job["distribution"]["process_count_per_instance"]
    if target in ("horovod", "deepspeed"):
        hosts = [line.split() for line in (folder / "hostfile").read_text().splitlines() if line and line[0] != "#"] if (folder / "hostfile").exists() else []
        slots = {int(word.split("=")[1]) for host in hosts for word in host if word.startswith("slots=")}
        if hosts:
            check(len(slots) == 1, hosts)
            if target == "horovod":
                check(number(text[".sh"], "-np") == len(hosts) * slots.copy().pop(), text[".sh"])
            return len(hosts), slots.pop()
        return 1, number(text[".sh"], "-np" if target == "horovod" else "--num_gpus")
    script = text[".sh"] if target in ("pbs", "sge", "torchrun") else text[".sbatch"]
    found = number(script, "--nnodes"), number(script, "--nproc_per_node")
    if target == "pbs":
        check(number(text[".pbs"], "select") == found[0], text[".pbs"])
    if target == "sge":
        check((number(text[".sge"], "-pe mpi") or 1) == found[0], text[".sge"])
    if target.startswith(("slurm", "cyclecloud")):
        check(number(script, "#SBATCH --nodes") == found[0], script)
    return found


# What starts the ranks on fewer devices than planned trains another model than the one that fits; on more it waits for ever.
def test_every_launcher_starts_the_ranks_of_the_plan(t):
    launchers = {"horovod", "deepspeed", "torchrun", "slurm", "cyclecloud", "slurm-cloud", "pbs", "sge", "ray", "rayjob", "kubernetes", "kueue",
                 "kustomize", "jobset", "pytorchjob", "mpijob", "azure-ml", "aks"}
    seen = set()
    for plan, target in sorted(rendered(t)):
        if target not in launchers:
            continue
        d = deployment(t, plan, target)
        if "training" not in d:
            continue
        seen.add(target)
        folder, nodes, ranks = pathlib.Path(plans.RENDERED[plan, target]), d["nodes"]["count"], d["ranks"]
        wanted = (None if target == "ray" else nodes, ranks["count"] if target in ("ray", "rayjob") else ranks["per_node"])
        found = started_by(target, folder)
        check(found == wanted, f"{plan}, {target}: {found} nodes and ranks, planned {wanted}")
        # The program finds its degrees in the environment, however it is started.
        text, layout = "".join(path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()), d["training"]["layout"]
        for name, value in (("TENSOR", layout["tensor"]), ("PIPELINE", layout["pipeline"]), ("DATA", layout["data"]), ("CONTEXT", layout["context"]),
                            ("ZERO", layout["zero"]), ("MICRO_BATCH", layout["micro_batch"]), ("ACCUMULATION", layout["micro_batches"]),
                            ("RECOMPUTE", layout["recompute"]), ("PRECISION", d["precision"])):
            said = set(re.findall(rf"\bSTOKER_{name}\W+(?:value\W+)?(\w+)", text)) - {"x"} if target not in ("horovod", "mpijob") else \
                set(re.findall(rf"\bSTOKER_{name}(?:=|\n *value: \")(\w+)", text))
            check(said == {str(value)}, f"{plan}, {target}: STOKER_{name} is {said}, planned {value}")
    check(seen == launchers, f"not seen: {launchers - seen}")


# Where not all weights are trained the memory of the plan counts on how many are.
def test_a_program_is_told_which_weights_are_trained(t):
    path = pathlib.Path(rendered(t)["qlora", "torchrun"])
    text = "".join(each.read_text() for each in path.iterdir())
    check("export STOKER_METHOD=qlora\n" in text and "export STOKER_LORA_RANK=16\n" in text, text)


def test_the_shape_of_a_service_is_found_again(t):
    flags = {"vllm": ("--tensor-parallel-size", "--max-model-len", "--max-num-seqs", "--max-num-batched-tokens"),
             "sglang": ("--tp-size", "--context-length", "--max-running-requests", "--chunked-prefill-size"),
             "tgi": ("--num-shard", "--max-total-tokens", "--max-concurrent-requests", "--max-batch-prefill-tokens"),
             "tensorrt-llm": ("--tp_size", "--max_seq_len", "--max_batch_size", "--max_num_tokens"),
             "triton": ('"tensor_parallel_size"', '"max_model_len"', '"max_num_seqs"', '"max_num_batched_tokens"'),
             "ray": ("tensor_parallel_size", "max_model_len", "max_num_seqs", "max_num_batched_tokens")}
    seen = set()
    for plan, target in sorted(rendered(t)):
        if target not in flags or not plan.startswith("serve"):
            continue
        seen.add(target)
        work = deployment(t, plan, target)["serving"]
        text = "".join(path.read_text() for path in sorted(pathlib.Path(plans.RENDERED[plan, target]).rglob("*")) if path.is_file())
        for flag, value in zip(flags[target], (work["tensor"], work["context_tokens"], work["max_sequences"], work["token_budget"])):
            check(number(text, flag) == value, f"{plan}, {target}: {flag} is {number(text, flag)}, planned {value}")
    check(seen == set(flags), f"not seen: {set(flags) - seen}")
    # The same in manifests, as an argument list, and as many of them as planned.
    manifests = ("kubernetes", "kustomize", "aks", "keda")
    for plan, target in sorted(rendered(t)):
        if target not in manifests or not plan.startswith(("serve", "large")):
            continue
        seen.add(target)
        work, kinds = deployment(t, plan, target)["serving"], objects(pathlib.Path(plans.RENDERED[plan, target]))
        [service] = kinds.get("Deployment", []) + kinds.get("LeaderWorkerSet", [])
        check(service["spec"]["replicas"] == work["replicas"], f"{plan}, {target}: {service['spec']['replicas']} replicas")
        check(service["spec"].get("leaderWorkerTemplate", {}).get("size", 1) == work["nodes_per_replica"], f"{plan}, {target}")
        for each in containers(service):
            words = " ".join(each["command"])
            for flag, value in zip(flags["sglang" if "sglang" in words else "vllm"], (work["tensor"], work["context_tokens"])):
                check("trtllm" in words or number(words, flag) == value, f"{plan}, {target}: {flag} in {words}, planned {value}")
    check(seen >= set(manifests), f"not seen: {set(manifests) - seen}")


# llama.cpp's slots share one context: who multiplies wrongly cuts every long request short.
def test_the_slots_of_llama_cpp_have_the_context_of_the_plan(t):
    seen = 0
    for plan, target in sorted(rendered(t)):
        if target != "llama-cpp" or not plan.startswith("serve"):
            continue
        seen += 1
        work = deployment(t, plan, target)["serving"]
        text = next(pathlib.Path(plans.RENDERED[plan, target]).glob("*.sh")).read_text()
        slots = number(text, "--parallel")
        check(number(text, "--ctx-size") == slots * work["context_tokens"] and slots <= work["max_sequences"], f"{plan}: {text}")
        check(number(text, "--batch-size") == work["token_budget"], text)
    check(seen > 0, "no plan is served by llama.cpp")


if __name__ == "__main__":
    main(globals())

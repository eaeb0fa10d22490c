"""Reads with a program's own reader what was rendered for it: python3 read_by.py PROGRAM, a JSON value a line in, one a line out.

In: a command line as a list of words, or for deepspeed, triton and cloud-init what the function below says.
Out: {"read": what it understood} or {"refused": its words}."""

import argparse
import contextlib
import dataclasses
import io
import json
import os
import sys
import types

from stand_ins import stand_ins


def torchtitan():
    stand_ins()
    from torchtitan.config.manager import ConfigManager

    def read(words):
        config = ConfigManager().parse_args(words)
        return {"parallelism": dataclasses.asdict(config.parallelism), "training": dataclasses.asdict(config.training),
                "checkpoint": config.checkpoint.folder, "recompute": type(config.activation_checkpoint).__qualname__,
                "compile": config.compile.enable}
    return read


def accelerate():
    stand_ins()
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
    from accelerate.utils.launch import prepare_deepspeed_cmd_env, prepare_multi_gpu_env

    def read(words):
        words, config, _ = _validate_launch_command(launch_command_parser().parse_args(words))
        told = prepare_deepspeed_cmd_env(words)[1] if words.use_deepspeed else prepare_multi_gpu_env(words)
        return {**vars(config), "environment": {name: value for name, value in told.items() if os.environ.get(name) != value}}
    return read


def deepspeed():
    """In: [the configuration, how many ranks take samples of their own]."""
    stand_ins()
    import deepspeed.comm
    from deepspeed.runtime.config import DeepSpeedConfig

    def read(each):
        deepspeed.comm.get_world_size, deepspeed.comm.get_rank = lambda *_: each[1], lambda *_: 0
        config = DeepSpeedConfig(each[0])
        return {"batch": config.train_batch_size, "micro": config.train_micro_batch_size_per_gpu, "stage": int(config.zero_config.stage),
                "accumulation": config.gradient_accumulation_steps, "bf16": config.bfloat16_config.enabled}
    return read


def vllm():
    """`serve` and `run-batch` have options of their own. Also a model.json of Triton's backend: a name stands for its option."""
    stand_ins(missing=["libtpu"], replaced=["vllm.ir"], versions={"vllm": "0.32.0+cpu"})
    import torch
    torch.iinfo = lambda kind: types.SimpleNamespace(min=-2**63, max=2**63 - 1)
    from vllm.entrypoints.launchers import cli_args, run_batch
    from vllm.utils.argparse_utils import FlexibleArgumentParser
    parsers = {each: module.make_arg_parser(FlexibleArgumentParser()) for each, module in (("serve", cli_args), ("run-batch", run_batch))}

    def read(words):
        if isinstance(words, dict):
            words = ["serve"] + [word for name, value in words.items() if value is not False for word in
                     ("--" + name.replace("_", "-"), *([] if value is True else [json.dumps(value) if isinstance(value, dict) else str(value)]))]
        return vars(parsers[words[0]].parse_args(words[1:]))
    return read


def sglang():
    stand_ins(missing=["torch.npu", "torch.hpu", "torch.xpu", "torch.mps"],
              replaced=["sglang.srt.utils.hf_transformers_patches", "sglang.srt.platforms", "sglang.srt.distributed"])
    import torch
    torch.version.hip = None
    from sglang.srt.server_args import ServerArgs
    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    return lambda words: vars(parser.parse_args(words))


def triton():
    """In: the text of config.pbtxt."""
    stand_ins()
    from google.protobuf import json_format, text_format
    from tritonclient.grpc import model_config_pb2

    def read(text):
        return json_format.MessageToDict(text_format.Parse(text, model_config_pb2.ModelConfig()), preserving_proto_field_name=True)
    return read


def cloud_init():
    """In: the path of a file. A key that no module has is refused too, which this release leaves to newer ones."""
    stand_ins()
    import yaml
    from cloudinit.config.schema import get_schema, validate_cloudconfig_file
    schema = get_schema()
    known = {name for part in schema["$defs"].values() for name in part.get("properties", {})}

    def read(path):
        validate_cloudconfig_file(path, schema)
        with open(path) as file:
            unknown = set(yaml.safe_load(file)) - known
        if unknown:
            raise ValueError(f"no module has {unknown}")
        return True
    return read


def azure_ml():
    """In: the path of a file of `az ml`: a job, a compute or a workspace, as its $schema says."""
    import yaml
    from azure.ai.ml import load_compute, load_job, load_workspace
    loads = {"commandJob": load_job, "amlCompute": load_compute, "computeInstance": load_compute, "workspace": load_workspace}

    def read(path):
        with open(path) as file:
            kind = yaml.safe_load(file)["$schema"].rsplit("/", 1)[-1].split(".")[0]
        return loads[kind](source=path)._to_dict()
    return read


def main():
    read = {"torchtitan": torchtitan, "accelerate": accelerate, "deepspeed": deepspeed, "vllm": vllm, "sglang": sglang, "triton": triton,
            "cloud-init": cloud_init, "azure-ml": azure_ml}[sys.argv[1]]()
    answers = sys.stdout
    for line in sys.stdin:
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                answer = {"read": read(json.loads(line))}
        except (Exception, SystemExit) as why:
            answer = {"refused": f"{why} {said.getvalue()}"}
        print(json.dumps(answer, default=str), file=answers, flush=True)


if __name__ == "__main__":
    main()

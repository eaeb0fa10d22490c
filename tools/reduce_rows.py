#!/usr/bin/env python3
"""Makes the tables of published runs that plans are shown beside.

    tools/reduce_rows.py            writes data/published/{training,inference}.csv from data/validation
    tools/reduce_rows.py --check    says whether they are what it would write (exit 1: they are not)

data/validation is 5 MB and is not in the binary. Of its rows one is kept for each model, device, number of devices,
sequence length, precision and framework (inference: engine, lengths, division and scenario): the fastest, with the
number of rows that it stands for in the column `runs`. Columns are those of data/validation without the ones that no
prediction reads, and `source` is cut to 72 characters (the id leads to the whole). Rows that cannot stand beside a plan are left out: no device or no number of devices, chips that are
no GPUs, no time or rate of its own (minutes of a whole training hold its convergence), no length.
"""
import argparse
import csv
import io
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRAINING = """id source source_group gpu_model gpu_mem_gb gpus gpus_per_node intra_node_link inter_node_link model_name
 arch params_b layers hidden heads kv_heads ffn vocab seq_len global_batch micro_batch tp pp vpp dp cp ep zero_stage
 recompute precision framework optimizer measured_step_s measured_tokens_per_s_per_gpu measured_samples_per_s derived
 notes""".split()
INFERENCE = """id source split_group gpu_model gpus tp pp model params_b layers hidden heads kv_heads ffn vocab is_moe
 experts experts_per_token precision_weights precision_kv engine input_len output_len batch_or_concurrency scenario
 measured_out_tokens_per_s measured_tokens_per_s_total ttft_ms tpot_ms notes""".split()
NO_GPU = re.compile(r"^(CPU|TPU|Gaudi|Graphcore|Ascend)", re.I)
IMAGES = {"resnet", "vision", "detection", "segmentation", "diffusion"}
# What notes say of settings; everything else in them is a result or a remark.
SETTINGS = re.compile(
    r"--[a-z0-9-]+(?:=[^;, ]+)?|grad_acc(?:um)?[= ][0-9.]+|MP mode \w+|act CPU offload \w+|zero1=-?[0-9]+|"
    r"pack_sample_into_one\S*|lora r [0-9.]+|trainable [0-9,]+|quantization [\w.-]+|(?:LoRA|SFT) Performance|"
    r"Finetuning (?:LORA|SFT)|MoE: forced-balanced routing|hardware FLOPs|compile True|Flash-Attention|XLA|"
    r"1 node x 8 GPUs|batch_size[= ][0-9]+|attn_dp[= ][0-9]+|moe_tp[= ][0-9]+|moe_ep[= ][0-9]+|gemm=\w+|moe=\w+|"
    r"max runtime batch[^;,]*|llama-bench -b [0-9]+|[0-9,]+ (?:random )?requests|[Ss]hare[Gg][Pp][Tt]|"
    r"lengths random around the means")


def number(text):
    try:
        return float(text)
    except ValueError:
        return 0.0


def precision(text):
    text = text.lower()
    for word in ("fp4", "fp8", "int8", "int4", "bf16", "bfloat16", "tf32", "fp16", "float16", "amp", "mixed", "fp32"):
        if word in text:
            return {"bfloat16": "bf16", "float16": "fp16", "amp": "fp16", "mixed": "fp16"}.get(word, word)
    return ""


def first_word(text):
    words = re.findall(r"[a-z][a-z-]+", text.lower())
    return words[0] if words else ""


def training_speed(row):
    """Work per second and device, or None where the row has no time of its own."""
    gpus, batch = number(row["gpus"]), number(row["global_batch"])
    length = number(row["seq_len"]) or 1
    if number(row["measured_step_s"]) > 0 and batch > 0:
        return batch * length / number(row["measured_step_s"]) / gpus
    if number(row["measured_tokens_per_s_per_gpu"]) > 0:
        return number(row["measured_tokens_per_s_per_gpu"])
    if number(row["measured_samples_per_s"]) > 0:
        return number(row["measured_samples_per_s"]) / gpus
    return None


def training_key(row):
    if not row["gpu_model"] or number(row["gpus"]) < 1 or NO_GPU.match(row["gpu_model"]):
        return None
    if row["arch"] not in IMAGES and not row["seq_len"]:
        return None
    if not row["global_batch"] and not row["micro_batch"]:
        return None
    if row["model_name"] in ("ssd", "retinanet"):  # MLPerf logs it per device in some rounds
        return None
    if "contradict" in row["notes"]:
        return None
    length = row["seq_len"] and round(number(row["seq_len"]) / 64)
    return (row["model_name"].lower(), row["layers"], row["hidden"], row["gpu_model"], row["gpu_mem_gb"],
            row["gpus"], length, precision(row["precision"]), first_word(row["framework"]),
            "lora" in row["framework"].lower())


def inference_speed(row):
    for column in ("measured_out_tokens_per_s", "measured_tokens_per_s_total"):
        if number(row[column]) > 0:
            return number(row[column])
    return 1 / number(row["tpot_ms"]) if number(row["tpot_ms"]) > 0 else None


def inference_key(row):
    if not row["gpu_model"] or number(row["gpus"]) < 1 or NO_GPU.match(row["gpu_model"]):
        return None
    if not row["input_len"] or not row["output_len"] or "llama.cpp" in row["engine"]:
        return None
    return (row["model"].lower(), row["gpu_model"], row["gpus"], row["tp"], row["pp"], row["engine"],
            row["precision_weights"], row["scenario"], row["input_len"], row["output_len"])


def reduce(name, columns, key_of, speed_of):
    kept = {}
    with open(ROOT / "data" / "validation" / name, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            key = key_of(row)
            speed = speed_of(row) if key is not None else None
            if speed is None:
                continue
            best, runs = kept.get(key, ((0, None), 0))
            kept[key] = ((speed, row) if speed > best[0] else best, runs + 1)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns + ["runs"])
    for (_, row), runs in sorted(kept.values(), key=lambda item: item[0][1]["id"]):
        row = dict(row)
        row["notes"] = "; ".join(SETTINGS.findall(row["notes"]))
        row["source"] = row["source"] if len(row["source"]) <= 72 else row["source"][:69] + "..."
        if "derived" in row:
            row["derived"] = "global_batch assumes no grad accumulation" if "no grad accumulation" in row["derived"] \
                else ""
        writer.writerow([row[column] for column in columns] + [runs])
    return out.getvalue()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    only_check, stale = parser.parse_args().check, False
    for name, columns, key_of, speed_of in (("training.csv", TRAINING, training_key, training_speed),
                                            ("inference.csv", INFERENCE, inference_key, inference_speed)):
        text = reduce(name, columns, key_of, speed_of)
        path = ROOT / "data" / "published" / name
        if only_check:
            stale = stale or not path.exists() or path.read_text(encoding="utf-8") != text
            continue
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT), text.count("\n") - 1, "rows", len(text.encode()), "bytes")
    if stale:
        print("data/published is not what tools/reduce_rows.py makes of data/validation")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())

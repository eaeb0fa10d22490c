// deepspeed: its JSON, a hostfile and the launcher. ZeRO, the batch and the precision are DeepSpeed's to keep; tensor
// parallelism its AutoTP; pipeline and sequence degrees are in the program's code, which finds them in its environment.
#include <fmt/format.h>

#include "base/json.h"
#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

Json enabled(bool on = true) {
    return Json::object().set("enabled", on);
}

Json zero_json(const ParallelLayout& layout) {
    Json zero = Json::object().set("stage", static_cast<int>(layout.zero));
    if (layout.zero >= 1) zero.set("overlap_comm", true).set("contiguous_gradients", true);
    if (layout.zero == 3) zero.set("stage3_gather_16bit_weights_on_model_save", true);
    if (layout.offload && layout.zero >= 1)
        zero.set("offload_optimizer", Json::object().set("device", "cpu").set("pin_memory", true));
    return zero;
}

std::string deepspeed_config(const Deployment& d) {
    const TrainingWork& work = *d.training;
    const ParallelLayout& layout = work.layout;
    Json out = Json::object()
                   .set("train_batch_size", static_cast<std::int64_t>(work.global_batch))
                   .set("train_micro_batch_size_per_gpu", layout.micro_batch)
                   .set("gradient_accumulation_steps", layout.micro_batches);
    if (d.precision == Precision::bf16 || d.precision == Precision::fp8) out.set("bf16", enabled());
    if (d.precision == Precision::fp16) out.set("fp16", enabled());
    out.set("zero_optimization", zero_json(layout));
    if (layout.tensor > 1) out.set("tensor_parallel", Json::object().set("autotp_size", layout.tensor));
    if (layout.recompute != Recompute::none)
        out.set("activation_checkpointing",
                Json::object().set("partition_activations", layout.tensor > 1).set("cpu_checkpointing", false));
    return out.dump(2) + "\n";
}

std::string hostfile(const Deployment& d) {
    std::string out = "# One line a node: its name, and how many ranks it starts. Put the nodes' names in.\n";
    for (int node = 0; node < d.nodes.count; ++node) out += fmt::format("NODE-{} slots={}\n", node, d.ranks.per_node);
    return out;
}

std::string deepspeed_script(const Deployment& d) {
    const ParallelLayout& layout = d.training->layout;
    std::string out = "#!/bin/sh\n" + head_comment(d);
    if (d.framework != "deepspeed")
        out += fmt::format("# The plan counts on {}; framework: deepspeed in the file plans for DeepSpeed.\n",
                           d.framework);
    out += fmt::format("#   ./{}.sh{}\n", d.name, d.command.empty() ? " train.py ARGUMENTS" : "");
    out += fmt::format(
        "# The program takes {}-deepspeed.json by --deepspeed_config, or as deepspeed.initialize(config=...).\n",
        d.name);
    out += "set -eu\n\nhere=$(cd \"$(dirname \"$0\")\" && pwd)\n";
    out += preamble(d) + resume_exports(d);
    out += fmt::format("export STOKER_DEEPSPEED_CONFIG=\"$here/{}-deepspeed.json\"\n\n", d.name);
    if (d.nodes.count > 1)
        out += why("the launcher takes NCCL's and Python's variables to the other nodes, and what this file names",
                   "DeepSpeed 2d991ba, launcher/runner.py") +
               "export DS_ENV_FILE=\"$here/.deepspeed_env\"\n"
               "env | grep -E '^(CUDA_DEVICE_ORDER|STOKER_[A-Z_]+)=' > \"$DS_ENV_FILE\"\n\n";
    if (layout.zero == 3)
        out += why("the weights are divided: one file of 16-bit weights is gathered when the model is saved",
                   "DeepSpeed 0.19.8, runtime/zero/config.py");
    if (layout.pipeline > 1)
        out += fmt::format("# {} stages are the program's: PipelineModule(num_stages=...) takes STOKER_PIPELINE.\n",
                           layout.pipeline);
    if (layout.context > 1)
        out +=
            fmt::format("# Sequences divided by {} are the program's: its attention takes STOKER_CONTEXT (Ulysses).\n",
                        layout.context);
    if (layout.offload)
        out += why("optimizer states lie in the memory of the host: they do not fit beside the rest", "plan");
    out += fmt::format(
        "exec deepspeed {}--num_gpus {} \\\n",
        d.nodes.count > 1 ? fmt::format("--hostfile \"$here/hostfile\" --num_nodes {} ", d.nodes.count) : "",
        d.ranks.per_node);
    if (d.command.empty())
        out += "    \"$@\"\n";
    else
        out += "    --no_python " + program_words(d) + "\n";
    return out;
}

}  // namespace

std::string deepspeed_refusal(const Deployment& d) {
    if (!d.training) return fmt::format("DeepSpeed's launcher trains, and this is {}", to_string(d.kind));
    const ParallelLayout& layout = d.training->layout;
    if (layout.pipeline > 1 && layout.zero >= 2)
        return fmt::format(
            "the layout has {} pipeline stages and ZeRO-{}, and DeepSpeed's pipeline takes ZeRO-1 at "
            "most: framework: deepspeed in the file plans within that",
            layout.pipeline, layout.zero);
    if (layout.tensor > 1 && (layout.pipeline > 1 || layout.zero == 3))
        return fmt::format(
            "the layout is {}, and DeepSpeed's tensor parallelism goes with ZeRO-1 and 2 and without "
            "pipeline stages (recalled); megatron says it",
            describe(layout));
    if (layout.zero == 3 && layout.shard_ranks() < layout.data * layout.context)
        return fmt::format(
            "the layout divides states within groups of {} ranks, which DeepSpeed no longer does (MiCS, gone in 0.19): "
            "framework: deepspeed and no shard_group in the file plan without; torchrun and accelerate say it",
            layout.shard_group);
    if (layout.offload && layout.zero == 0)
        return "optimizer states are offloaded, and DeepSpeed offloads with ZeRO only";
    return "";
}

std::vector<FileToWrite> deepspeed_files(const Deployment& d) {
    std::vector<FileToWrite> out{{d.name + "-deepspeed.json", deepspeed_config(d)},
                                 {d.name + ".sh", deepspeed_script(d), 0755}};
    if (d.nodes.count > 1) out.push_back({"hostfile", hostfile(d)});
    return out;
}

}  // namespace stoker

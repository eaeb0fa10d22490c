// accelerate: the configuration that `accelerate launch` reads, and the script that calls it on each node.
#include <fmt/format.h>

#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

std::string_view mixed_precision(Precision precision) {
    switch (precision) {
        case Precision::bf16: return "bf16";
        case Precision::fp16: return "fp16";
        case Precision::fp8: return "fp8";
        default: return "\"no\"";
    }
}

std::string fsdp_config(const TrainingWork& work) {
    const ParallelLayout& layout = work.layout;
    const bool full = layout.zero == 3;
    std::string out = "fsdp_config:\n  fsdp_version: 2\n";
    out += full
               ? "  # ZeRO-3: the weights are given back after the forward pass (accelerate 1.15, commands/launch.py)\n"
               : "  # ZeRO-2: the weights stay after the forward pass (accelerate 1.15, commands/launch.py)\n";
    out += fmt::format("  fsdp_reshard_after_forward: {}\n", full);
    out += "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n";
    out += fmt::format("  fsdp_activation_checkpointing: {}\n", layout.recompute != Recompute::none);
    out += fmt::format("  fsdp_offload_params: {}\n", layout.offload);
    out += "  fsdp_cpu_ram_efficient_loading: true\n";
    out += "  # Every rank writes its part: a full state dict would gather all of it on one rank.\n";
    return out + "  fsdp_state_dict_type: SHARDED_STATE_DICT\n";
}

// Which ranks hold the same, and which divide.
std::string parallelism(const ParallelLayout& layout) {
    const int shard = layout.zero >= 2 ? std::max(1, layout.shard_ranks() / layout.context) : 1;
    std::string out = "parallelism_config:\n";
    out += fmt::format("  parallelism_config_dp_replicate_size: {}\n", std::max(1, layout.data / shard));
    out += fmt::format("  parallelism_config_dp_shard_size: {}\n", shard);
    out += fmt::format("  parallelism_config_tp_size: {}\n", layout.tensor);
    return out + fmt::format("  parallelism_config_cp_size: {}\n", layout.context);
}

std::string accelerate_config(const Deployment& d) {
    const ParallelLayout& layout = d.training->layout;
    const bool fsdp = layout.zero >= 2;
    std::string out = head_comment(d);
    out += "compute_environment: LOCAL_MACHINE\n";
    out += fmt::format("distributed_type: {}\n", d.nodes.gpus <= 0   ? "MULTI_CPU"
                                                 : fsdp              ? "FSDP"
                                                 : d.ranks.count > 1 ? "MULTI_GPU"
                                                                     : "\"NO\"");
    if (fsdp) out += reason_of(d, "training.layout.zero") + fsdp_config(*d.training);
    if (fsdp && (layout.tensor > 1 || layout.context > 1 || layout.shard_group > 0)) out += parallelism(layout);
    out += fmt::format("mixed_precision: {}\n", mixed_precision(d.precision));
    out += fmt::format("num_machines: {}\nnum_processes: {}\n", d.nodes.count, d.ranks.count);
    out += "machine_rank: 0\nmain_training_function: main\nsame_network: true\n";
    if (d.nodes.count > 1) out += "rdzv_backend: c10d\n";
    if (d.nodes.gpus <= 0) out += "use_cpu: true\n";
    return out + "debug: false\n";
}

std::string accelerate_script(const Deployment& d) {
    std::string out = "#!/bin/sh\n" + head_comment(d);
    const std::string usage = d.command.empty() ? " train.py ARGUMENTS" : "";
    if (d.nodes.count > 1)
        out += fmt::format(
            "# Start it on each of the {} nodes, with the name of the first and the number of this one:\n"
            "#   MASTER_ADDR=NODE-0 NODE_RANK=0 ./{}.sh{}\n",
            d.nodes.count, d.name, usage);
    else
        out += fmt::format("#   ./{}.sh{}\n", d.name, usage);
    out += fmt::format(
        "# The program passes gradient_accumulation_steps={} to Accelerator and {} to its loader as the batch.\n",
        d.training->layout.micro_batches, d.training->layout.micro_batch);
    if (d.training->method == Method::qlora && d.training->layout.zero > 0)
        out += fmt::format(
            "# Weights of 4 bits are divided only where they are stored as the rest: the program passes\n"
            "# bnb_4bit_quant_storage=torch.{} to BitsAndBytesConfig (huggingface.co, FSDP-QLoRA).\n",
            d.precision == Precision::fp16 ? "float16" : "bfloat16");
    out += "set -eu\n\nhere=$(cd \"$(dirname \"$0\")\" && pwd)\n" + preamble(d) + resume_exports(d);
    out += fmt::format("exec accelerate launch --config_file \"$here/{}-accelerate.yaml\" \\\n", d.name);
    if (d.nodes.count > 1)
        out +=
            "    --machine_rank \"${NODE_RANK:?number of this node, from 0}\" \\\n"
            "    --main_process_ip \"${MASTER_ADDR:?name of the first node}\" --main_process_port "
            "\"${MASTER_PORT:-29500}\" \\\n";
    return out + (d.command.empty() ? "    \"$@\"\n" : "    --no_python " + program_words(d) + "\n");
}

}  // namespace

std::string accelerate_refusal(const Deployment& d) {
    if (!d.training) return fmt::format("accelerate launch starts a training, and this is {}", to_string(d.kind));
    const ParallelLayout& layout = d.training->layout;
    if (layout.pipeline > 1 || layout.expert > 1)
        return fmt::format(
            "the layout is {}, and accelerate divides by data, tensor and context only; megatron says it",
            describe(layout));
    if (layout.zero == 1)
        return "the layout has ZeRO-1, and accelerate divides with FSDP from ZeRO-2 on; deepspeed and megatron say it";
    if ((layout.tensor > 1 || layout.context > 1) && layout.zero < 2)
        return fmt::format("the layout is {}, and accelerate takes tensor and context parallelism with FSDP only",
                           describe(layout));
    return "";
}

std::vector<FileToWrite> accelerate_files(const Deployment& d) {
    return {{d.name + "-accelerate.yaml", accelerate_config(d)}, {d.name + ".sh", accelerate_script(d), 0755}};
}

}  // namespace stoker

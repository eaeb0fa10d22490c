// torchtitan: its command line. Since 0.3 a configuration is a Python function of a model, and what is different is
// said behind it; before, the same names stood in a TOML file.
#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "deploy/render/recipes.h"
#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

// How many ranks divide the weights, and how many such groups hold the same.
std::pair<int, int> shards_and_copies(const ParallelLayout& layout) {
    const int shard = layout.zero >= 2 ? std::max(1, layout.shard_ranks() / layout.context) : 1;
    return {shard, std::max(1, layout.data / shard)};
}

std::string torchtitan_arguments(const Deployment& d) {
    const TrainingWork& work = *d.training;
    const ParallelLayout& layout = work.layout;
    std::string out;
    const auto set = [&](std::string_view name, std::string_view value) {
        out += fmt::format("    --{} {}\n", name, value);
    };
    const auto number = [&](std::string_view name, double value) {
        set(name, std::to_string(static_cast<std::int64_t>(value)));
    };
    const auto say = [&](std::string_view setting) { out += indented(reason_of(d, setting), "    "); };
    const auto [shard, copies] = shards_and_copies(layout);
    say("training.layout.zero");
    number("parallelism.data_parallel_shard_degree", shard);
    number("parallelism.data_parallel_replicate_degree", copies);
    if (layout.zero >= 2) set("parallelism.fsdp_reshard_after_forward", layout.zero == 3 ? "always" : "never");
    say("training.layout.tensor");
    number("parallelism.tensor_parallel_degree", layout.tensor);
    if (layout.tensor > 1 && !layout.sequence_parallel) out += "    --parallelism.no-enable_sequence_parallel\n";
    say("training.layout.pipeline");
    number("parallelism.pipeline_parallel_degree", layout.pipeline);
    if (layout.pipeline > 1) {
        number("parallelism.pipeline_parallel_microbatch_size", layout.micro_batch);
        set("parallelism.pipeline_parallel_schedule", layout.virtual_stages > 1 ? "Interleaved1F1B" : "1F1B");
    }
    number("parallelism.context_parallel_degree", layout.context);
    if (layout.expert > 1) number("parallelism.expert_parallel_degree", layout.expert);
    say("training.layout.micro_batches");
    // With stages the micro-batches of a step are the pipeline's, and the local batch is all of them.
    number("training.local_batch_size",
           layout.pipeline > 1 ? layout.micro_batch * layout.micro_batches : layout.micro_batch);
    number("training.global_batch_size", work.global_batch);
    number("training.seq_len", work.sequence);
    if (work.steps > 0) number("training.steps", std::ceil(work.steps));
    if (layout.offload) out += "    --training.enable_cpu_offload\n";
    if (layout.pipeline > 1 || layout.expert > 1)
        out +=
            "    # its graphs take neither stages nor experts on several ranks (torchtitan 0.3.0, trainer.py)\n"
            "    --training.disable_cuda_graphs\n";
    if (work.compiled) out += "    --compile.enable\n";
    if (!d.checkpoint.folder.empty()) {
        out += "    --checkpoint.enable\n";
        set("checkpoint.folder", "\"$STOKER_CHECKPOINT_DIR\"");
        number("checkpoint.keep_latest_k", d.checkpoint.keep);
        if (d.checkpoint.interval_s > 0 && d.prediction.step_s > 0)
            number("checkpoint.interval",
                   std::max(1.0, std::floor(static_cast<double>(d.checkpoint.interval_s) / d.prediction.step_s)));
    }
    if (d.kind == WorkloadKind::fine_tuning)
        out +=
            "    # The base model counts while there is no checkpoint of this run.\n"
            "    --checkpoint.initial_load_path \"$PRETRAINED\"\n    --checkpoint.initial_load_in_hf\n";
    // Of the command line's library a choice between classes comes last, as a word of its own.
    say("training.layout.recompute");
    out += fmt::format("    activation-checkpoint:{}\n", layout.recompute == Recompute::none   ? "None"
                                                         : layout.recompute == Recompute::full ? "full"
                                                                                               : "selective");
    return out;
}

}  // namespace

std::string torchtitan_refusal(const Deployment& d) {
    if (!d.training) return fmt::format("torchtitan trains, and this is {}", to_string(d.kind));
    if (!recipe_of("torchtitan", d.model))
        return fmt::format("torchtitan 0.3 has no configuration of {}; there is {}", d.model.name,
                           recipes_of("torchtitan"));
    if (d.training->method != Method::full)
        return fmt::format("it trains all weights, and the method is {}; accelerate says it",
                           to_string(d.training->method));
    if (d.training->layout.zero == 1) return "the layout has ZeRO-1, and torchtitan divides gradients or nothing";
    return "";
}

std::vector<FileToWrite> torchtitan_files(const Deployment& d) {
    const Recipe recipe = *recipe_of("torchtitan", d.model);
    std::string out = "#!/bin/bash\n" + head_comment(d);
    out += started_by_hand(d, "", "--hf_assets_path FOLDER_OF_THE_TOKENIZER --dataloader.dataset NAME",
                           "as the hub has it");
    out += preamble(d);
    out += fmt::format("# {} ({}, {})\narguments=(\n", "names of torchtitan 0.3", recipe.source, recipe.as_of);
    out += fmt::format("    --module {} --config {}\n", recipe.module, recipe.config) + "    \"$@\"\n" +
           torchtitan_arguments(d) + ")\n\n";
    std::string launch = torchrun_words(d, d.name, "\"${MASTER_ADDR:?name of the first node}:${MASTER_PORT:-29500}\"");
    if (!d.command.empty()) launch = launch.substr(0, launch.rfind("--no_python "));
    out += "exec " + launch + "-m torchtitan.train \"${arguments[@]}\"\n";
    return {{d.name + ".sh", out, 0755}};
}

}  // namespace stoker

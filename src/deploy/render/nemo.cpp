// nemo: a NeMo 2 recipe in Python with the plan's degrees in it, run by torchrun on each node.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "deploy/render/recipes.h"
#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

std::string nemo_program(const Deployment& d, const Recipe& recipe) {
    const TrainingWork& work = *d.training;
    const ParallelLayout& layout = work.layout;
    std::string out = head_comment(d);
    out += fmt::format(
        "# Names of NeMo 2 ({}, {}). It needs \"nemo_toolkit[llm]<3\": 3.0\n"
        "# of August 2026 keeps speech only, and Megatron Bridge has the recipes of language models.\n",
        recipe.source, recipe.as_of);
    const bool tunes = d.kind == WorkloadKind::fine_tuning || work.method != Method::full;
    out += "import os\n\nfrom nemo.collections import llm\n\n";
    out += fmt::format(
        "recipe = llm.{}.{}(\n    name={}, dir=os.environ.get(\"STOKER_CHECKPOINT_DIR\", \"checkpoints\"),\n",
        recipe.config, tunes ? "finetune_recipe" : "pretrain_recipe", json_text(d.name));
    out += fmt::format("    num_nodes={}, num_gpus_per_node={}{})\n\n", d.nodes.count, d.ranks.per_node,
                       !tunes                        ? ""
                       : work.method == Method::full ? ", peft_scheme=None"
                                                     : ", peft_scheme=\"lora\"");
    if (tunes) out += "# The base model is imported once, with llm.import_ckpt, and found again by its name.\n";
    out += "strategy = recipe.trainer.strategy\n";
    const auto set = [&](const char* setting, const char* name, const std::string& value) {
        out += reason_of(d, std::string("training.layout.") + setting) + fmt::format("{} = {}\n", name, value);
    };
    set("tensor", "strategy.tensor_model_parallel_size", std::to_string(layout.tensor));
    set("", "strategy.sequence_parallel", layout.sequence_parallel && layout.tensor > 1 ? "True" : "False");
    set("pipeline", "strategy.pipeline_model_parallel_size", std::to_string(layout.pipeline));
    set("", "strategy.virtual_pipeline_model_parallel_size",
        layout.virtual_stages > 1 ? std::to_string(layout.virtual_stages) : "None");
    set("", "strategy.context_parallel_size", std::to_string(layout.context));
    set("", "strategy.expert_model_parallel_size", std::to_string(layout.expert));
    if (layout.tensor > 1 && layout.whole_experts() && work.method == Method::full)
        set("", "strategy.expert_tensor_parallel_size", "1");
    set("zero", "strategy.ddp.use_distributed_optimizer", layout.zero >= 1 ? "True" : "False");
    const char* granularity = layout.recompute == Recompute::full        ? "\"full\""
                              : layout.recompute == Recompute::selective ? "\"selective\""
                                                                         : "None";
    set("recompute", "recipe.model.config.recompute_granularity", granularity);
    if (layout.recompute == Recompute::full)
        out += fmt::format(
            "recipe.model.config.recompute_method = \"{}\"\nrecipe.model.config.recompute_num_layers = {}\n",
            layout.recompute_layers > 0 ? "block" : "uniform", std::max(1, layout.recompute_layers));
    set("", "recipe.data.seq_length", std::to_string(static_cast<std::int64_t>(work.sequence)));
    set("", "recipe.data.micro_batch_size", std::to_string(layout.micro_batch));
    set("micro_batches", "recipe.data.global_batch_size", std::to_string(static_cast<std::int64_t>(work.global_batch)));
    if (work.steps > 0)
        set("", "recipe.trainer.max_steps", std::to_string(static_cast<std::int64_t>(std::ceil(work.steps))));
    return out +
           "\nif __name__ == \"__main__\":\n"
           "    # recipe.data is made-up text until it is replaced: put your data module there.\n"
           "    import nemo_run\n\n"
           "    nemo_run.run(recipe, executor=nemo_run.LocalExecutor(), direct=True)\n";
}

}  // namespace

std::string nemo_refusal(const Deployment& d) {
    if (!d.training) return fmt::format("NeMo's recipes train, and this is {}", to_string(d.kind));
    if (!recipe_of("nemo", d.model))
        return fmt::format("no recipe of NeMo is known for {}; there is {}", d.model.name, recipes_of("nemo"));
    if (d.training->layout.zero >= 2)
        return fmt::format(
            "the layout has ZeRO-{}, and NeMo's recipes divide optimizer states only: framework: nemo in the file "
            "plans within that",
            d.training->layout.zero);
    return "";
}

std::vector<FileToWrite> nemo_files(const Deployment& d) {
    std::string script = "#!/bin/sh\n" + head_comment(d);
    if (d.nodes.count > 1)
        script += fmt::format("# Start it on each of the {} nodes, with the name of the first:\n", d.nodes.count);
    script += fmt::format("#   {}./{}.sh\n", d.nodes.count > 1 ? "MASTER_ADDR=NODE-0 " : "", d.name);
    script += "set -eu\n\nhere=$(cd \"$(dirname \"$0\")\" && pwd)\n" + preamble(d);
    std::string launch = torchrun_words(d, d.name, "\"${MASTER_ADDR:?name of the first node}:${MASTER_PORT:-29500}\"");
    if (!d.command.empty()) launch = launch.substr(0, launch.rfind("--no_python "));
    script += "exec " + launch + fmt::format("\"$here/{}.py\"\n", d.name);
    return {{d.name + ".py", nemo_program(d, *recipe_of("nemo", d.model))}, {d.name + ".sh", script, 0755}};
}

}  // namespace stoker

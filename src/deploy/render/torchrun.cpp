// torchrun: one script, started on every node of the gang. torchrun starts the ranks and tells each who it is; the
// degrees of the layout are the program's to keep, so it finds them in its environment. Options with underscores:
// releases before 2.0 know no others, and later ones both.
#include <fmt/format.h>

#include "deploy/render/targets.h"

namespace stoker {
namespace {

std::string reason_of(const Deployment& deployment, const std::string& setting) {
    for (const Because& each : deployment.because)
        if (each.setting == setting) return fmt::format("# {} ({})\n", each.reason, each.source);
    return "";
}

std::string exports(const Deployment& deployment) {
    std::string out;
    for (const auto& [key, value] : deployment.environment)
        out += reason_of(deployment, "environment." + key) + fmt::format("export {}={}\n", key, shell_word(value));
    return out;
}

std::string layout_exports(const Deployment& deployment) {
    const ParallelLayout& layout = deployment.training->layout;
    std::string out = fmt::format("# The layout: {}.\n", describe(layout));
    for (const char* part : {"tensor", "pipeline", "zero", "recompute", "micro_batches"})
        out += reason_of(deployment, std::string("training.layout.") + part);
    const std::pair<const char*, std::string> degrees[] = {
        {"DATA", std::to_string(layout.data)},
        {"TENSOR", std::to_string(layout.tensor)},
        {"PIPELINE", std::to_string(layout.pipeline)},
        {"CONTEXT", std::to_string(layout.context)},
        {"EXPERT", std::to_string(layout.expert)},
        {"ZERO", std::to_string(layout.zero)},
        {"SHARD_RANKS", std::to_string(layout.shard_ranks())},
        {"RECOMPUTE", std::string(to_string(layout.recompute))},
        {"OFFLOAD", layout.offload ? "1" : "0"},
        {"SEQUENCE_PARALLEL", layout.sequence_parallel ? "1" : "0"},
        {"VIRTUAL_STAGES", std::to_string(layout.virtual_stages)},
        {"MICRO_BATCH", std::to_string(layout.micro_batch)},
        {"ACCUMULATION", std::to_string(layout.micro_batches)},
        {"PRECISION", std::string(to_string(deployment.precision))},
    };
    for (const auto& [key, value] : degrees) out += fmt::format("export STOKER_{}={}\n", key, value);
    return out;
}

std::string checkpoint_exports(const Deployment& deployment) {
    const CheckpointPolicy& policy = deployment.checkpoint;
    if (policy.folder.empty()) return "";
    std::string out = reason_of(deployment, policy.interval_s > 0 ? "checkpoint.interval_s" : "checkpoint.folder");
    out += fmt::format("export STOKER_CHECKPOINT_DIR=\"${{STOKER_CHECKPOINT_DIR:-{}}}\"\n", policy.folder);
    if (policy.interval_s > 0) out += fmt::format("export STOKER_CHECKPOINT_INTERVAL={}\n", policy.interval_s);
    return out;
}

}  // namespace

std::string torchrun_refusal(const Deployment& deployment) {
    if (!deployment.training)
        return fmt::format("torchrun starts the ranks of a training, and this is {}", to_string(deployment.kind));
    return "";
}

std::vector<FileToWrite> torchrun_files(const Deployment& deployment) {
    const NodeSet& nodes = deployment.nodes;
    const RankSet& ranks = deployment.ranks;
    std::string script = "#!/bin/sh\n";
    script += fmt::format("# {}: {} x {}{}, {} rank{}, catalogue {}.\n", deployment.title, nodes.count, nodes.machine,
                          nodes.region.empty() ? "" : ", " + nodes.region, ranks.count, ranks.count == 1 ? "" : "s",
                          deployment.prediction.catalogue);
    const std::string program = deployment.command.empty() ? " PROGRAM ARGUMENTS" : "";
    if (nodes.count > 1)
        script += fmt::format(
            "# Start it on each of the {} nodes, with the name of the first:\n"
            "#   MASTER_ADDR=NODE-0 ./{}.sh{}\n",
            nodes.count, deployment.name, program);
    else
        script += fmt::format("#   ./{}.sh{}\n", deployment.name, program);
    for (const std::string& note : deployment.notes) script += fmt::format("# {}\n", note);
    script += "set -eu\n\n";
    const std::string environment = exports(deployment);
    script += environment + (environment.empty() ? "" : "\n");
    script += layout_exports(deployment) + "\n";
    const std::string checkpoints = checkpoint_exports(deployment);
    script += checkpoints + (checkpoints.empty() ? "" : "\n");
    if (!deployment.folder.empty() && deployment.folder != ".")
        script += fmt::format("cd {}\n", shell_word(deployment.folder));
    script += fmt::format("exec torchrun --nnodes {} --nproc_per_node {} \\\n", nodes.count, ranks.per_node);
    if (nodes.count > 1)
        script += fmt::format(
            "    --rdzv_id {} --rdzv_backend c10d \\\n"
            "    --rdzv_endpoint \"${{MASTER_ADDR:?name of the first node}}:${{MASTER_PORT:-29500}}\" \\\n",
            deployment.name);
    else
        script += "    --standalone \\\n";
    if (deployment.command.empty()) {
        script += "    \"$@\"\n";
    } else {
        script += "    --no_python";
        for (const std::string& word : deployment.command) script += " " + shell_word(word);
        script += "\n";
    }
    return {{deployment.name + ".sh", std::move(script), 0755}};
}

}  // namespace stoker

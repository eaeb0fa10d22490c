#include "deploy/pinned.h"

#include <fmt/format.h>

#include <cmath>

namespace stoker {
namespace {

// The degrees that the file pins have to make up the ranks that it starts.
Status check_layout(const Workload& workload, int ranks) {
    const LayoutSpec& layout = workload.layout;
    Problems problems;
    const auto look = [&](const char* key, const std::optional<double>& degree, double most, const char* why) {
        if (!degree || *degree == most) return;
        const auto at = layout.at.find(key);
        problems.push_back({fmt::format("layout.{}: {:g} does not fit the {} rank{} of run: {}", key, *degree, ranks,
                                        ranks == 1 ? "" : "s", why),
                            "take it out, or let run: start that many",
                            at == layout.at.end() ? workload.pos : at->second});
    };
    const char* const one = "on the cores of this machine only data parallel ranks are predicted";
    look("tensor", layout.tensor, 1, one);
    look("pipeline", layout.pipeline, 1, one);
    look("context", layout.context, 1, one);
    look("expert", layout.expert, 1, one);
    look("data", layout.data, ranks, "data parallel over all of them");
    if (problems.empty()) return done();
    return Error(ErrorKind::invalid, std::move(problems));
}

void pin_training(int ranks, Workload& pinned) {
    LayoutSpec& layout = pinned.layout;
    layout.tensor = layout.pipeline = layout.context = layout.expert = 1;
    layout.data = ranks;
    layout.zero = layout.zero.value_or(0);
    if (!layout.recompute) layout.recompute = "none";
    layout.sequence_parallel = layout.offload = false;
    if (!layout.micro_batch && pinned.batch.micro) layout.micro_batch = pinned.batch.micro;
    if (!layout.micro_batch) layout.micro_batch = pinned.batch.global_examples.value_or(ranks) / ranks;
}

}  // namespace

bool is_rank_here(const NodeType& node) {
    return node.cloud == kHere && node.name == kRankAsMachine;
}

bool has_an_end(const Workload& workload) {
    if (workload.kind == WorkloadKind::inference || workload.kind == WorkloadKind::notebook) return false;
    return workload.kind != WorkloadKind::embedding ||
           (!workload.traffic.requests_per_second && workload.total_examples() > 0);
}

std::string network_word(const ModelSpec& model) {
    for (const char* word : {"mlp", "rnn", "transformer"})
        if (model.kind == ModelKind::cnn && model.family == word) return word;
    return std::string(to_string(model.kind));
}

Result<Workload> pinned_to_ranks(const Workload& workload, int ranks, const CheckpointPolicy& checkpoint) {
    const auto none = [](std::string why) { return Error(ErrorKind::unsupported, std::move(why)); };
    Workload pinned = workload;
    pinned.where.clouds = {std::string(kHere)};
    pinned.where.sizes = {std::string(kRankAsMachine)};
    pinned.where.regions.clear();
    pinned.where.residency.clear();
    pinned.where.accelerators.clear();
    pinned.where.gpus.reset();
    pinned.where.max_nodes.reset();
    pinned.where.nodes = ranks;
    pinned.where.spot = SpotUse::never;
    pinned.objective.deadline.reset();
    pinned.objective.budget.reset();
    if (is_training(workload.kind)) {
        TRY_VOID(check_layout(workload, ranks));
        if (!checkpoint.folder.empty() && checkpoint.interval_s > 0)
            pinned.checkpoint.every = Seconds(static_cast<double>(checkpoint.interval_s));
        pin_training(ranks, pinned);
        return pinned;
    }
    if (workload.models_served > 1) return none("which of its ranks serves which of several models is not said");
    pinned.objective.latency = {};
    pinned.objective.survive_one_replica_lost = false;
    if (has_an_end(workload)) return pinned;
    if (!workload.traffic.requests_per_second)
        return none(workload.traffic.concurrency
                        ? "requests of a number of clients, each after the other, are not simulated on CPU cores"
                        : "traffic.requests_per_second is not said, and waiting hangs on it");
    pinned.where.nodes = 1;
    pinned.traffic.requests_per_second = *workload.traffic.requests_per_second / ranks;
    return pinned;
}

Candidate for_all_ranks(Candidate one, const Workload& workload, int ranks) {
    if (is_training(workload.kind) || has_an_end(workload)) return one;
    one.nodes *= ranks, one.replicas *= ranks, one.devices_used *= ranks;
    Prediction& p = one.prediction;
    p.tokens_per_s *= ranks;
    p.usd = p.usd * ranks, p.kwh = p.kwh * ranks;
    return one;
}

}  // namespace stoker

#include "deploy/pinned.h"

#include <fmt/format.h>

#include <algorithm>
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

// The degrees that the file gives are taken, the others are 1, and data parallel is what is left.
Status pin_degrees(int gpus, Workload& pinned) {
    LayoutSpec& layout = pinned.layout;
    double product = 1;
    for (auto* degree : {&layout.tensor, &layout.pipeline, &layout.context}) {
        *degree = degree->value_or(1);
        product *= **degree;
    }
    const double data = std::floor(gpus / product);
    if (data * product != gpus || (layout.data && *layout.data != data)) {
        const char* key = layout.data && data * product == gpus ? "data" : "tensor";
        const auto at = layout.at.find(key);
        return Error(
            ErrorKind::invalid,
            fmt::format("layout: tensor {:g} x pipeline {:g} x context {:g}{} does not make up the {} GPU{} of run",
                        *layout.tensor, *layout.pipeline, *layout.context,
                        layout.data ? fmt::format(" x data {:g}", *layout.data) : "", gpus, gpus == 1 ? "" : "s"),
            at == layout.at.end() ? pinned.pos : at->second, "take it out, or let run: start that many");
    }
    layout.data = data;
    return done();
}

void take_checkpoints(const CheckpointPolicy& checkpoint, Workload& pinned) {
    if (!checkpoint.folder.empty() && checkpoint.interval_s > 0)
        pinned.checkpoint.every = Seconds(static_cast<double>(checkpoint.interval_s));
}

// On that node type and nowhere else. Limits of time and money choose, they do not predict.
Workload placed(const Workload& workload, std::string_view node_type) {
    Workload pinned = workload;
    pinned.where.clouds = {std::string(kHere)};
    pinned.where.sizes = {std::string(node_type)};
    pinned.where.regions.clear();
    pinned.where.residency.clear();
    pinned.where.accelerators.clear();
    pinned.where.gpus.reset();
    pinned.where.max_nodes.reset();
    pinned.where.spot = SpotUse::never;
    pinned.objective.deadline.reset();
    pinned.objective.budget.reset();
    return pinned;
}

// Each rank is a replica.
Result<Workload> pinned_answers(Workload pinned, int ranks, const char* on) {
    const auto none = [](std::string why) { return Error(ErrorKind::unsupported, std::move(why)); };
    if (pinned.models_served > 1) return none("which of its ranks serves which of several models is not said");
    pinned.objective.latency = {};
    pinned.objective.survive_one_replica_lost = false;
    pinned.where.nodes = ranks;
    if (has_an_end(pinned)) return pinned;
    if (!pinned.traffic.requests_per_second)
        return none(
            pinned.traffic.concurrency
                ? fmt::format("requests of a number of clients, each after the other, are not simulated on {}", on)
                : "traffic.requests_per_second is not said, and waiting hangs on it");
    pinned.where.nodes = 1;
    pinned.traffic.requests_per_second = *pinned.traffic.requests_per_second / ranks;
    return pinned;
}

}  // namespace

bool is_rank_here(const NodeType& node) {
    return node.cloud == kHere && node.name == kRankAsMachine;
}

bool is_run_here(const NodeType& node) {
    return is_rank_here(node) || (node.cloud == kHere && node.name == kGpusHere);
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
    Workload pinned = placed(workload, kRankAsMachine);
    if (!is_training(workload.kind)) return pinned_answers(std::move(pinned), ranks, "CPU cores");
    TRY_VOID(check_layout(workload, ranks));
    take_checkpoints(checkpoint, pinned);
    pinned.where.nodes = ranks;
    pin_training(ranks, pinned);
    return pinned;
}

Result<Workload> pinned_to_gpus(const Workload& workload, int ranks, int gpus_per_rank,
                                const CheckpointPolicy& checkpoint, bool open) {
    Workload pinned = placed(workload, kGpusHere);
    pinned.where.nodes = 1;
    if (!is_training(workload.kind)) return pinned_answers(std::move(pinned), ranks, "the GPUs of a run");
    take_checkpoints(checkpoint, pinned);
    TRY_VOID(pin_degrees(ranks * gpus_per_rank, pinned));
    LayoutSpec& layout = pinned.layout;
    if (!layout.micro_batch && pinned.batch.micro) layout.micro_batch = pinned.batch.micro;
    if (open) return pinned;
    if (!layout.recompute) layout.recompute = "none";
    if (!layout.micro_batch && pinned.batch.global_examples)
        layout.micro_batch = std::max(1.0, *pinned.batch.global_examples / *layout.data);
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

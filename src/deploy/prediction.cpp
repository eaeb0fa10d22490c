// What was predicted of a candidate, as it travels with the work.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "deploy/deployment.h"
#include "deploy/pinned.h"
#include "plan/calibrated.h"

namespace stoker {
namespace {

PredictedRange range_of(const Range& range) {
    return {range.low, range.mid, range.high};
}

// What the constants alone said, so that a run may teach something even where others have.
PublishedSpec published_of(const Candidate& candidate, const Workload& workload, const DeploymentOptions& options) {
    const Prediction& p = candidate.prediction;
    StepParts parts = parts_of(p.seconds);
    MemoryParts memory = memory_parts_of(p.bytes, p.memory_bytes.mid);
    PublishedSpec published{.place = options.place};
    if (options.learnt != nullptr) {
        const Calibration& c = *options.learnt;
        const auto& factor = c.step.factor;
        parts = {parts.compute_s / factor[0], parts.other_s / factor[1], parts.exchange_s / factor[2]};
        memory = {memory.held / c.memory.factor[0], memory.transient / c.memory.factor[1]};
        published.calibrated_on = static_cast<std::int64_t>(c.points);
    }
    published.memory_bytes = memory.sum(), published.transient_bytes = memory.transient;
    const CaseShape shape = case_shape(workload, candidate.layout);
    published.hidden = shape.hidden, published.layers = shape.layers;
    published.sequence = shape.sequence, published.tokens = shape.tokens;
    published.kind = network_word(workload.model);
    published.compute_s = parts.compute_s, published.other_s = parts.other_s, published.exchange_s = parts.exchange_s;
    return published;
}

void add_training(const Candidate& candidate, const Workload& workload, const Catalog& catalog,
                  const DeploymentOptions& options, PredictionSpec& spec) {
    const Prediction& p = candidate.prediction;
    if (!options.place.empty()) spec.published = published_of(candidate, workload, options);
    spec.step_s = p.step_s.mid, spec.step_low_s = p.step_s.low, spec.step_high_s = p.step_s.high;
    for (int i = 0; i < kTimeTerms; ++i) {
        const double seconds = p.seconds[static_cast<std::size_t>(i)];
        if (seconds > 0) spec.step_terms.push_back({std::string(id_of(static_cast<TimeTerm>(i))), seconds});
    }
    const double batch = candidate.layout.global_batch();
    spec.tokens_per_step = batch * workload.sequence();
    spec.samples_per_step = batch;
    if (const auto setup = make_training_setup(workload, catalog, make_device(catalog, candidate.node_type)))
        spec.flops_per_step = model_flops(*setup, batch);
    spec.steps = p.steps;
    spec.mfu = p.mfu;
    // Only what the file says: what was assumed is not held against the program.
    if (workload.at.contains("precision")) {
        const Precision precision = workload.precision;
        const bool whole = precision == Precision::fp32 || precision == Precision::tf32;
        if (whole || precision == Precision::fp16 || precision == Precision::bf16)
            spec.precision_bits = whole ? 32 : 16;
    }
    spec.recompute = candidate.layout.recompute != Recompute::none;
    if (workload.at.contains("compiled")) spec.compiled = workload.compiled;
}

void add_serving(const Candidate& candidate, const Workload& workload, PredictionSpec& spec) {
    const Prediction& p = candidate.prediction;
    PredictedServing serving{.ttft_s = range_of(p.ttft_p95_s), .tpot_s = range_of(p.tpot_p95_s)};
    serving.tokens_per_s = {p.tokens_per_s, p.tokens_per_s, p.tokens_per_s};
    // A pile that is done sooner was done faster; its start is in its hours, so the interval is a little wide.
    if (has_an_end(workload) && p.hours.low > 0)
        serving.tokens_per_s = {p.tokens_per_s * p.hours.mid / p.hours.high, p.tokens_per_s,
                                p.tokens_per_s * p.hours.mid / p.hours.low};
    serving.requests_per_s = workload.traffic.requests_per_second.value_or(p.requests_per_s);
    serving.most_requests_per_s = p.knee_requests_per_s * candidate.replicas;
    serving.replicas = candidate.replicas;
    spec.serving = serving;
}

}  // namespace

PredictionSpec prediction_of(const Candidate& candidate, const Workload& workload, const Catalog& catalog,
                             const DeploymentOptions& options) {
    const NodeType& node = catalog.node_types()[static_cast<std::size_t>(candidate.node_type)];
    const Prediction& p = candidate.prediction;
    const bool ranks_here = is_rank_here(node), run_here = is_run_here(node);
    PredictionSpec spec;
    spec.machine = run_here ? kHere : node.name;
    if (run_here && node.has_gpu())
        spec.machine += fmt::format(" with {} {}", std::max(1, node.whole_gpus()),
                                    catalog.accelerators()[static_cast<std::size_t>(node.accelerator)].name);
    spec.nodes = run_here ? 1 : candidate.nodes;
    if (is_training(workload.kind)) {
        spec.layout =
            ranks_here ? fmt::format("data parallel over {} rank{}", candidate.nodes, candidate.nodes == 1 ? "" : "s")
                       : describe(candidate.layout);
        add_training(candidate, workload, catalog, options, spec);
    } else if (candidate.replicas > 0) {
        spec.layout = fmt::format("{} replica{} of {} device{}", candidate.replicas, candidate.replicas == 1 ? "" : "s",
                                  candidate.replica.gpus(), candidate.replica.gpus() == 1 ? "" : "s");
        add_serving(candidate, workload, spec);
    }
    // Work, the start of the machines or processes, checkpoints.
    if (has_an_end(workload))
        spec.run_s = 3600 * p.hours.mid, spec.run_low_s = 3600 * p.hours.low, spec.run_high_s = 3600 * p.hours.high;
    // An engine on CPU cores sets its cache aside by its own option, not by what is free.
    if (is_training(workload.kind) || node.has_gpu()) {
        spec.memory_bytes = static_cast<std::int64_t>(p.memory_bytes.mid);
        spec.memory_low_bytes = static_cast<std::int64_t>(p.memory_bytes.low);
        spec.memory_high_bytes = static_cast<std::int64_t>(p.memory_bytes.high);
    }
    spec.bottleneck = to_string(p.bottleneck);
    spec.catalogue = catalog.version;
    if (candidate.priced && p.usd.mid > 0) {
        spec.cost_microusd = std::llround(1e6 * p.usd.mid);
        spec.cost_usd = range_of(p.usd);
    }
    return spec;
}

}  // namespace stoker

#include "plan/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "base/embedded.h"
#include "base/text.h"
#include "base/tsv.h"
#include "plan/availability.h"
#include "plan/chance.h"
#include "plan/pipeline.h"
#include "plan/roles.h"
#include "sizing/device.h"

namespace stoker {
namespace {

using Rows = std::map<std::pair<std::string, std::string>, double>;  // silicon, kind of work

// Of the binary and not of the catalogue: whoever brings machines of his own brings no measurements.
const Rows& rows_by_silicon() {
    static const Rows* const all = [] {
        auto* rows = new Rows;
        const auto table = Tsv::read(embedded_bytes("calibration/measured.tsv"), "data/calibration/measured.tsv");
        if (!table) return rows;
        const auto device = table->column("device"), kind = table->column("kind"), count = table->column("rows");
        if (!device || !kind || !count) return rows;
        for (std::size_t i = 0; i < table->rows(); ++i) {
            const auto found = table->number(i, *count);
            if (!found) continue;
            const std::string chip(silicon_of(table->at(i, *device)));
            const bool training = table->at(i, *kind) == "training", generation = table->at(i, *kind) == "generation";
            (*rows)[{chip, "any"}] += *found;
            (*rows)[{chip, training ? "training" : "serving"}] += *found;
            if (!training) (*rows)[{chip, generation ? "generation" : "inference"}] += *found;
        }
        return rows;
    }();
    return *all;
}

bool generates(const Workload& workload) {
    const ModelKind kind = workload.model.kind;
    return workload.kind != WorkloadKind::embedding && workload.model_known &&
           (kind == ModelKind::decoder || kind == ModelKind::encoder_decoder);
}

// How likely the limits of first tokens, or of what follows them, are kept, where all percentiles err as the interval
// of the 95th says.
double chance_within(const LatencySpec& limits, const Prediction& p, bool of_first) {
    const Range& held = of_first ? p.ttft_p95_s : p.tpot_p95_s;
    double chance = 1;
    const auto keep = [&](const std::optional<Seconds>& limit, double value) {
        if (limit && value > 0 && held.mid > 0)
            chance = std::min(chance, chance_below(held * (value / held.mid), limit->v));
    };
    const ServingOutcome& l = p.latency;
    keep(of_first ? limits.ttft_p50 : limits.tpot_p50, of_first ? l.ttft_p50 : l.tpot_p50);
    keep(of_first ? limits.ttft_p95 : limits.tpot_p95, of_first ? l.ttft_p95 : l.tpot_p95);
    keep(of_first ? limits.ttft_p99 : limits.tpot_p99, of_first ? l.ttft_p99 : l.tpot_p99);
    // An answer is mostly its tokens, and of what generates none it is all there is.
    if (!of_first || !(p.tpot_p95_s.mid > 0)) {
        keep(limits.e2e_p95, l.e2e_p95);
        keep(limits.p95, l.e2e_p95);
    }
    return chance;
}

}  // namespace

bool hardly_published(const Workload& workload) {
    return serves(workload) && workload.model.request.window_s > 0;
}

std::string_view evidence_kind(const Workload& workload) {
    switch (workload.kind) {
        case WorkloadKind::training:
        case WorkloadKind::fine_tuning: return "training";
        case WorkloadKind::inference:
        case WorkloadKind::batch_inference:
        case WorkloadKind::embedding: return generates(workload) ? "serving" : "inference";
        case WorkloadKind::notebook: return "any";  // nobody knows what will run in it
        default: return {};
    }
}

std::string_view evidence_words(std::string_view kind) {
    return kind == "training" ? "training run" : kind == "any" ? "run" : "serving run";
}

double measured_rows(std::string_view kind, const Accelerator* accelerator) {
    const std::string device(accelerator != nullptr ? silicon_of(accelerator->name) : "CPU");
    const auto found = rows_by_silicon().find({device, std::string(kind)});
    return found == rows_by_silicon().end() ? 0 : found->second;
}

bool lacks_evidence(const NodeChoice& choice, const ReplicaShape& shape) {
    return choice.doubted || (choice.divided_doubted && shape.gpus() > 1);
}

void weigh_evidence(const Context& context, NodeChoice& choice) {
    const std::string_view kind = evidence_kind(context.workload);
    const std::string& cloud = choice.node->cloud;
    const bool owned = cloud == "on-prem" || cloud == "this-machine";
    // A vendor is no device: who says nvidia has not said RTX-PRO-6000.
    const auto& words = context.workload.where.accelerators;
    choice.named = owned || context.size_was_named(choice.type) ||
                   (choice.accelerator != nullptr && std::any_of(words.begin(), words.end(), [&](const auto& word) {
                        return !equals_ignore_case(word, choice.accelerator->vendor) &&
                               matches_accelerator(word, *choice.accelerator);
                    }));
    choice.scarce =
        !choice.named && choice.accelerator != nullptr && scarce(cloud, choice.accelerator->name) != nullptr;
    // What a simulation runs is not known, and most solvers and renderers are written for CUDA.
    if (context.workload.kind == WorkloadKind::simulation && choice.accelerator != nullptr &&
        choice.accelerator->vendor != "NVIDIA") {
        const auto& asked = context.workload.where.accelerators;
        choice.doubted = asked.empty() && !context.size_was_named(choice.type) && !owned;
        return;
    }
    if (kind.empty()) return;
    choice.measured_rows = measured_rows(kind, choice.accelerator);
    // Answers at once hang on the matmul rate and the memory bandwidth alone: few rows show them, and what one device
    // makes of an LLM follows.
    choice.proven = (kind == "serving" || kind == "inference") && choice.accelerator != nullptr &&
                    measured_rows("inference", choice.accelerator) >= context.settings.device_rows_wanted_inference;
    // The rows of CPUs are of encoders and of classifiers on a few server parts: no evidence for large models.
    const bool serving = kind == "serving" || kind == "inference";
    if (choice.accelerator == nullptr && kind != "any" && !(serving && role_of(context.workload).small))
        choice.measured_rows = 0;
    choice.doubted = !choice.named && !choice.is_measured(context.settings);
    const auto& devices = context.catalog.accelerators();
    choice.known_elsewhere = choice.doubted && choice.accelerator != nullptr &&
                             measured_rows("any", choice.accelerator) >= context.settings.device_rows_wanted &&
                             std::any_of(devices.begin(), devices.end(), [&](const Accelerator& other) {
                                 return other.vendor == choice.accelerator->vendor &&
                                        measured_rows(kind, &other) >= context.settings.device_rows_wanted;
                             });
    choice.divided_doubted = kind == "serving" && !choice.named && choice.accelerator != nullptr &&
                             measured_rows("generation", choice.accelerator) < context.settings.device_rows_wanted;
}

void widen_for_unmeasured(const Context& context, Point& point) {
    const NodeChoice& choice = context.choices[static_cast<std::size_t>(point.choice)];
    const bool measured = choice.is_measured(context.settings) && !lacks_evidence(choice, point.replica) &&
                          !hardly_published(context.workload);
    if (choice.accelerator == nullptr || measured || context.workload.kind == WorkloadKind::notebook) return;
    constexpr double kNinetieth = 1.2815515655446004;
    const double factor = std::exp(kNinetieth * context.settings.sigma_no_rows);
    const Range wide{1 / factor, 1, factor};
    point.speed = combined(point.speed, wide);
    Prediction& p = point.prediction;
    for (Range* range : {&p.step_s, &p.ttft_p95_s, &p.tpot_p95_s})
        if (range->mid > 0) *range = combined(*range, wide);
}

double PublishedRun::slower() const {
    const bool is_time = metric == "step_s" || metric.ends_with("_ms");
    return is_time ? measured / predicted : predicted / measured;
}

void hold_nearest_run(const Context& context, Point& point) {
    const NodeChoice& choice = context.choices[static_cast<std::size_t>(point.choice)];
    if (!context.options.nearest_run || choice.accelerator == nullptr ||
        context.options.calibrations.count(choice.node->cloud) != 0)
        return;
    const auto run = context.options.nearest_run({.workload = context.workload,
                                                  .node_type = choice.type,
                                                  .precision = point.precision,
                                                  .framework = point.framework,
                                                  .layout = point.layout,
                                                  .replica = point.replica,
                                                  .replicas = point.replicas,
                                                  .latency = point.prediction.latency});
    if (!run) return;
    constexpr double kWhole = 2, kNone = 6;  // doublings
    const double counts = std::clamp((kNone - run->distance) / (kNone - kWhole), 0.0, 1.0);
    const double factor = std::pow(run->slower_together(), counts);
    bool wider = false;
    const auto hold = [&](Range& range, double fastest) {
        const double end = range.mid * factor, low = std::max(end, range.mid * fastest);
        wider |= end > range.high || low < range.low;
        range.high = std::max(range.high, end);
        range.low = std::min(range.low, low);
    };
    Prediction& p = point.prediction;
    const bool first_token = run->metric == "ttft_ms";
    if (point.work_s > 0) {
        // How long a first token waits says little of how long a pile takes.
        if (first_token) return;
        hold(point.speed, point.fastest);
        hold(p.step_s, point.fastest);
    } else {
        const bool of_first = first_token || !(p.tpot_p95_s.mid > 0);
        hold(of_first ? p.ttft_p95_s : p.tpot_p95_s, 0);
        // What was seen to miss a limit is not promised with nine in ten. Limits that nobody gave are not kept to this.
        const LatencySpec& limits = context.workload.objective.latency;
        if (wider && p.latency_chance >= 0 && !limits.at.empty()) {
            const double before = p.latency_chance, wanted = context.settings.confidence;
            p.latency_chance = std::min(before, chance_within(limits, p, of_first));
            point.sure_alone = before >= wanted && p.latency_chance < wanted;
        }
    }
    if (!wider) return;
    point.notes.push_back(
        run->other_sources > 0
            ? fmt::format("the interval is wider than usual, so that it holds what the published runs of {} sources "
                          "that are most like this showed: {:.1f} x the time that is said of them ({}: {}, and others)",
                          run->other_sources + 1, run->slower_together(), run->id, run->title)
            : fmt::format("the interval is wider than usual, so that it holds the published run that is most like "
                          "this, which took {:.1f} x as long as is said of it ({}: {})",
                          run->slower(), run->id, run->title));
}

}  // namespace stoker

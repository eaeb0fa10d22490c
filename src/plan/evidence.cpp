#include "plan/evidence.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "base/embedded.h"
#include "base/text.h"
#include "base/tsv.h"
#include "plan/availability.h"
#include "plan/chance.h"
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

}  // namespace

namespace {

bool generates(const Workload& workload) {
    const ModelKind kind = workload.model.kind;
    return workload.kind != WorkloadKind::embedding && workload.model_known &&
           (kind == ModelKind::decoder || kind == ModelKind::encoder_decoder);
}

}  // namespace

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
    choice.divided_doubted = kind == "serving" && !choice.named && choice.accelerator != nullptr &&
                             measured_rows("generation", choice.accelerator) < context.settings.device_rows_wanted;
}

void widen_for_unmeasured(const Context& context, Point& point) {
    const NodeChoice& choice = context.choices[static_cast<std::size_t>(point.choice)];
    const bool measured = choice.is_measured(context.settings) && !lacks_evidence(choice, point.replica);
    if (choice.accelerator == nullptr || measured || context.workload.kind == WorkloadKind::notebook) return;
    constexpr double kNinetieth = 1.2815515655446004;
    const double factor = std::exp(kNinetieth * context.settings.sigma_no_rows);
    const Range wide{1 / factor, 1, factor};
    point.speed = combined(point.speed, wide);
    Prediction& p = point.prediction;
    for (Range* range : {&p.step_s, &p.ttft_p95_s, &p.tpot_p95_s})
        if (range->mid > 0) *range = combined(*range, wide);
}

}  // namespace stoker

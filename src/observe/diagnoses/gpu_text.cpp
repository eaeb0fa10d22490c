#include "observe/diagnoses/gpu_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace stoker {

DiagnosisVerdict no_gpu_here() {
    return {.kind = DiagnosisVerdict::Kind::elsewhere, .reason = {}, .diagnosis = {}};
}

std::vector<const RankEvidence*> gpu_ranks(const RunEvidence& evidence) {
    std::vector<const RankEvidence*> ranks;
    for (const RankEvidence& rank : evidence.ranks)
        if (rank.mean("gpu_count").value_or(0) > 0) ranks.push_back(&rank);
    return ranks;
}

const RankEvidence* worst_gpu(const RunEvidence& evidence, std::string_view name, bool largest) {
    const RankEvidence* worst = nullptr;
    for (const RankEvidence* rank : gpu_ranks(evidence)) {
        const auto value = rank->mean(name);
        if (!value) continue;
        if (worst == nullptr || (largest ? *value > *worst->mean(name) : *value < *worst->mean(name))) worst = rank;
    }
    return worst;
}

std::optional<double> gpu_work_s(const RankEvidence& rank) {
    const auto compute = rank.mean("compute_s");
    return compute ? compute : rank.mean("step_s");
}

std::optional<double> unheld_clock(const RunEvidence& evidence, const RankEvidence& rank) {
    std::vector<double> clocks;
    const double held = diagnosis_threshold("gpu.held_share");
    for (const RankEvidence* each : gpu_ranks(evidence)) {
        const MeasureSpread* clock = each->find("gpu_clock");
        if (each == &rank || clock == nullptr || each->mean("gpu_held_heat").value_or(0) >= held ||
            each->mean("gpu_held_brake").value_or(0) >= held)
            continue;
        // Of another model its clock says nothing about this one.
        if (each->mean("gpu_clock_max") != rank.mean("gpu_clock_max")) continue;
        clocks.push_back(clock->median);
    }
    return clocks.empty() ? std::nullopt : std::optional(spread_of(clocks).median);
}

std::optional<double> gpu_idle_s(const RankEvidence& rank) {
    const auto util = rank.mean("gpu_util"), step = rank.mean("step_s");
    if (!util || !step) return std::nullopt;
    const double whole = *step + rank.mean("checkpoint_s").value_or(0);
    return std::max(0.0, whole * (1 - *util) - rank.mean("wait_s").value_or(0) - rank.mean("checkpoint_s").value_or(0));
}

std::string clock_text(double hertz) {
    return format_thousands(hertz / 1e6) + " MHz";
}

std::string gpu_of(const RankEvidence& rank) {
    return fmt::format("the GPU{} of {}", rank.mean("gpu_count").value_or(1) > 1 ? "s" : "", rank_text(rank));
}

}  // namespace stoker

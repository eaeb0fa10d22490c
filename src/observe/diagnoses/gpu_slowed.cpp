// What makes the board itself slower than its kind: heat, its power supply, a limit of power; and a board whose clock
// is lower than that of its peers without telling why.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "observe/diagnoses/gpu_text.h"

namespace stoker {

namespace {

// A step is as much longer as the clock is lower, while the multiprocessors are what it waits for.
double cost_of_clock(const RankEvidence& rank, std::optional<double> clock, std::optional<double> usual) {
    const auto work = gpu_work_s(rank);
    if (!work || !clock || !usual || *usual <= 0) return 0;
    return *work * rank.mean("gpu_util").value_or(1) * std::clamp(1 - *clock / *usual, 0.0, 1.0);
}

void add_clock(const RunEvidence& evidence, const RankEvidence& rank, Diagnosis& found) {
    const auto clock = rank.mean("gpu_clock"), most = rank.mean("gpu_clock_max");
    if (!clock) return;
    const auto others = unheld_clock(evidence, rank);
    std::string text = "its clock is " + clock_text(*clock);
    if (others)
        text += fmt::format(", that of the others {}", clock_text(*others));
    else if (most)
        text += fmt::format(", at most {}", clock_text(*most));
    found.evidence.push_back(text);
    found.figures.push_back(told_figure("gpu_clock", *clock, "Hz"));
    found.cost_s = cost_of_clock(rank, clock, others ? others : most);
}

std::string move_it(const RankEvidence& rank) {
    return rank.node.empty() ? std::string()
                             : fmt::format("; `stoker nodes drain {}` keeps new work off the node", rank.node);
}

}  // namespace

DiagnosisVerdict judge_gpu_heat(const RunEvidence& evidence) {
    if (gpu_ranks(evidence).empty()) return no_gpu_here();
    const RankEvidence* rank = worst_gpu(evidence, "gpu_held_heat");
    if (rank == nullptr) return diagnosis_silent("reasons of the clocks from the driver (gpu_held_heat)");
    const double share = *rank->mean("gpu_held_heat");
    const auto hottest = rank->mean("gpu_temperature"), margin = rank->mean("gpu_margin");
    if (share < diagnosis_threshold("gpu.held_share"))
        return diagnosis_ruled_out(fmt::format("heat holds no clock down{}",
                                               hottest ? fmt::format("; {:.0f} degrees", *hottest) : std::string()));
    Diagnosis found{
        .what = fmt::format("heat holds the clock of {} down for {} of the time", gpu_of(*rank), percent_text(share)),
        .evidence = {},
        .fix =
            "look at the cooling of the board: inlet air, fans, what stands beside it (nvidia-smi -q -d "
            "TEMPERATURE,PERFORMANCE)" +
            move_it(*rank),
        .rank = rank->rank};
    found.figures = {deciding_figure("held_by_heat", share, "of the time", "gpu.held_share")};
    if (hottest)
        found.evidence.push_back(
            fmt::format("{:.0f} degrees{}", *hottest,
                        margin ? fmt::format(", {:.0f} below where the board slows down", *margin) : std::string()));
    if (hottest) found.figures.push_back(told_figure("gpu_temperature", *hottest, "C"));
    add_clock(evidence, *rank, found);
    return diagnosis_found(std::move(found));
}

DiagnosisVerdict judge_gpu_power(const RunEvidence& evidence) {
    if (gpu_ranks(evidence).empty()) return no_gpu_here();
    const RankEvidence *brake = worst_gpu(evidence, "gpu_held_brake"), *capped = worst_gpu(evidence, "gpu_held_power");
    if (brake == nullptr && capped == nullptr)
        return diagnosis_silent("reasons of the clocks from the driver (gpu_held_power)");
    if (brake != nullptr && *brake->mean("gpu_held_brake") >= diagnosis_threshold("gpu.held_share")) {
        const double share = *brake->mean("gpu_held_brake");
        Diagnosis found{.what = fmt::format("the power supply slows {} down for {} of the time", gpu_of(*brake),
                                            percent_text(share)),
                        .evidence = {"the board is told from outside to draw less (power brake)"},
                        .fix = "look at the power supplies and the limit of the rack" + move_it(*brake),
                        .rank = brake->rank};
        found.figures = {deciding_figure("held_by_brake", share, "of the time", "gpu.held_share")};
        add_clock(evidence, *brake, found);
        return diagnosis_found(std::move(found));
    }
    // At full load the limit holds most boards; it is a finding only where somebody set it lower than it was delivered.
    const RankEvidence* lowered = nullptr;
    double lowest = 1;
    for (const RankEvidence* rank : gpu_ranks(evidence)) {
        const auto limit = rank->mean("gpu_power_limit"), delivered = rank->mean("gpu_power_default");
        if (!limit || !delivered || *delivered <= 0 || *limit / *delivered >= lowest ||
            rank->mean("gpu_held_power").value_or(0) < diagnosis_threshold("gpu.power_share"))
            continue;
        lowest = *limit / *delivered, lowered = rank;
    }
    if (lowered == nullptr || lowest > diagnosis_threshold("gpu.power_lowered"))
        return diagnosis_ruled_out(
            capped == nullptr
                ? "no clock is held down for power"
                : fmt::format(
                      "the power limit holds the clock for {} of the time, and is as delivered: usual at full load",
                      percent_text(*capped->mean("gpu_held_power"))));
    const double limit = *lowered->mean("gpu_power_limit"), delivered = *lowered->mean("gpu_power_default");
    const double count = std::max(1.0, lowered->mean("gpu_count").value_or(1));
    Diagnosis found{
        .what = fmt::format("a power limit of {:.0f} W holds {} down; delivered with {:.0f} W", limit / count,
                            gpu_of(*lowered), delivered / count),
        .evidence = {fmt::format("the limit holds the clock for {} of the time",
                                 percent_text(*lowered->mean("gpu_held_power")))},
        .fix = fmt::format("nvidia-smi -pl {:.0f} as root, if rack and cooling allow it", delivered / count),
        .rank = lowered->rank};
    found.figures = {
        deciding_figure("power_limit", limit / delivered, "of the one delivered", "gpu.power_lowered"),
        deciding_figure("held_by_power", *lowered->mean("gpu_held_power"), "of the time", "gpu.power_share")};
    if (const auto clock = lowered->mean("gpu_clock")) found.evidence.push_back("its clock is " + clock_text(*clock));
    // Power goes with the cube of the clock, since the voltage follows it: what a limit takes of the speed.
    if (const auto work = gpu_work_s(*lowered))
        found.cost_s = *work * lowered->mean("gpu_util").value_or(1) * (1 - std::cbrt(lowest));
    return diagnosis_found(std::move(found));
}

DiagnosisVerdict judge_gpu_straggler(const RunEvidence& evidence) {
    const auto ranks = gpu_ranks(evidence);
    if (ranks.empty()) return no_gpu_here();
    const RankEvidence* rank = nullptr;
    double lowest = 10;
    for (const RankEvidence* each : ranks) {
        const MeasureSpread* clock = each->find("gpu_clock");
        const auto others = unheld_clock(evidence, *each);
        // One that hardly works lets its clock fall.
        if (clock == nullptr || !others || each->mean("gpu_util").value_or(0) < diagnosis_threshold("gpu.busy"))
            continue;
        if (clock->median / *others < lowest) lowest = clock->median / *others, rank = each;
    }
    if (rank == nullptr)
        return diagnosis_silent("clocks of two ranks or more on GPUs of one model that work (gpu_clock)");
    if (1 - lowest < diagnosis_threshold("gpu.clock_lower"))
        return diagnosis_ruled_out(fmt::format("the slowest clock is {} of that of the others", percent_text(lowest)));
    Diagnosis found{
        .what = fmt::format("{} runs at {} of the clock of the others, which wait for it", gpu_of(*rank),
                            percent_text(lowest)),
        .evidence = {},
        .fix =
            "nothing that the driver tells sets it apart: look for clocks that were set by hand (nvidia-smi "
            "-rgc undoes that) and at its cooling, else hand the board back" +
            move_it(*rank),
        .rank = rank->rank};
    found.figures = {deciding_figure("clock_lower", 1 - lowest, "of the clock of the others", "gpu.clock_lower")};
    add_clock(evidence, *rank, found);
    if (const auto held = rank->mean("gpu_held_power"); held && *held > 0)
        found.evidence.push_back(
            fmt::format("its power limit holds the clock for {} of the time", percent_text(*held)));
    return diagnosis_found(std::move(found));
}

}  // namespace stoker

// Nothing computes and nothing is waited for that can be seen: a sleep, a lock, a service that answers late, or a
// loader that nobody tells of.
#include <fmt/format.h>

#include <algorithm>

#include "observe/diagnoses/course_text.h"
#include "observe/diagnoses/rule_text.h"

namespace stoker {

namespace {

// What a rank does not compute in a step and does not wait for a processor either. `told`: without what it says that it
// waits for.
double idle_of(const RankEvidence& rank, double step, bool told) {
    const double queue = std::min(1.0, queued_seconds(rank, step).value_or(0) / step) +
                         rank.mean("throttled").value_or(0) + std::min(1.0, rank.mean("blocked").value_or(0));
    const auto used = rank.mean("cpu_s"), compute = rank.mean("compute_s");
    if (told && used && compute) return *compute - *used - rank.mean("sync_s").value_or(0) - queue * step;
    const double waits = rank.mean("wait_s").value_or(0) + rank.mean("allreduce_s").value_or(0);
    return step * (1 - std::min(1.0, rank.mean("cpu").value_or(1)) - queue) - waits;
}

}  // namespace

DiagnosisVerdict judge_idle_in_step(const RunEvidence& evidence) {
    const auto step = evidence.step_s();
    if (!step || !evidence.mean("cpu")) return diagnosis_silent("step_s and cpu");
    // Whoever waits for a GPU stands still; what the driver tells of it has rules of its own (gpu-idle).
    if (evidence.planned.devices || evidence.mean("gpu_util"))
        return diagnosis_silent("ranks without GPUs: their processors may wait for those");
    const auto foreign = foreign_use(evidence);
    if (foreign && foreign->much && !evidence.mean("run_wait") && !evidence.mean("queued_s"))
        return diagnosis_silent("run_wait: other programs use the processors too");
    const bool told = std::all_of(evidence.ranks.begin(), evidence.ranks.end(),
                                  [](const RankEvidence& rank) { return rank.find("wait_s") != nullptr; });
    if (!told && evidence.ranks.size() > 1)
        return diagnosis_silent("wait_s and allreduce_s of each rank (stoker_torch), or one rank alone");
    // What all of them are alike: one that stands still while the others compute is a late rank.
    const RankEvidence* least = nullptr;
    double idle = 0;
    for (const RankEvidence& rank : evidence.ranks)
        if (const double its = idle_of(rank, *step, told); least == nullptr || its < idle) least = &rank, idle = its;
    // What is done now and then has a rule.
    if (const auto pauses = pauses_of(evidence); pauses && pauses->matter()) idle -= pauses->cost_s;
    // Beside others: how long all threads waited is looked at every few seconds, and of threads that came and went it
    // is estimated.
    const bool exact = told && least->find("queued_s") != nullptr;
    const char* threshold = !exact && foreign && foreign->much ? "idle.beside_share"
                            : told                             ? "idle.share"
                                                               : "idle.untold_share";
    const double cpu = least->mean("cpu").value_or(0);
    if (idle < diagnosis_threshold(threshold) * *step)
        return diagnosis_ruled_out(
            fmt::format("{:.2f} processors in use; {} of a step is neither computing nor waiting", cpu,
                        percent_text(std::max(0.0, idle / *step))));
    Diagnosis found{
        .what = fmt::format("{} of a step {} computes nothing{}", milliseconds_text(idle), rank_text(*least),
                            told ? ", and waits neither for data nor for other ranks" : ""),
        .evidence = {fmt::format("{:.2f} processors in use by a rank over a step of {}", cpu,
                                 milliseconds_text(*step))},
        .cost_s = idle,
        .fix = "py-spy dump --pid PID, a few times, shows what it stands in: a sleep, a lock, a request to a service",
        .rank = evidence.ranks.size() == 1 ? std::optional(least->rank) : std::nullopt};
    if (!told)
        found.fix =
            "where it waits for data, more loader workers or samples that are prepared ahead; stoker_torch tells data "
            "from the rest (see the guide on reality against the plan); " +
            found.fix;
    if (const auto wait = least->mean("run_wait"))
        found.evidence.push_back(fmt::format("ready threads wait {:.2f} s per second for a processor", *wait));
    found.figures = {deciding_figure("idle_share", idle / *step, "of a step", threshold),
                     told_figure("idle_s", idle, "s"), told_figure("cpu", cpu, "processors")};
    return diagnosis_found(std::move(found));
}

}  // namespace stoker

// No step ends any more. Where no rank computes they wait for each other, or for one that does not come; where some do,
// one spins in a loop, or all of them in a collective, as those of GPUs do.
#include <fmt/format.h>

#include <algorithm>

#include "observe/diagnoses/rule_text.h"

namespace stoker {

DiagnosisVerdict judge_hung_collective(const RunEvidence& evidence) {
    if (!evidence.silent_s && evidence.step_s()) return diagnosis_ruled_out("it came to its end");
    if (!evidence.silent_s) return diagnosis_silent("steps in the metrics file");
    const double step = evidence.step_s().value_or(0), silent = *evidence.silent_s;
    // A program that prints every hundredth step says nothing for as long as they take.
    const double most = std::max({diagnosis_threshold("hang.least_s"), diagnosis_threshold("hang.steps") * step,
                                  diagnosis_threshold("hang.pauses") * evidence.told_apart_s});
    if (silent < most) return diagnosis_ruled_out(fmt::format("the last step ended {:.0f} s ago", silent));
    double busiest = 0, idlest = 0, moved = 0, longest = 0;
    int known = 0, computing = 0, who_computes = 0;
    std::optional<int> stopped, behind;
    double fewest = 0, steps_most = 0;
    for (const RankEvidence& rank : evidence.ranks) {
        const auto cpu = rank.after("cpu");
        if (!cpu) continue;
        idlest = known++ == 0 ? *cpu : std::min(idlest, *cpu);
        if (*cpu > busiest) who_computes = rank.rank;
        busiest = std::max(busiest, *cpu);
        computing += *cpu > diagnosis_threshold("hang.cpu") ? 1 : 0;
        for (const char* measure : {"step_s", "longest_s"})
            for (const CoursePoint& point : rank.course(measure)) longest = std::max(longest, point.max);
        moved = std::max(moved, rank.after("disk_write").value_or(0) + rank.after("disk_read").value_or(0));
        if (rank.after("stopped").value_or(0) > 0) stopped = rank.rank;
        if (rank.steps > 0 && (!behind || rank.steps < fewest)) {
            fewest = rank.steps;
            behind = rank.rank;
        }
        steps_most = std::max(steps_most, rank.steps);
    }
    if (known == 0) return diagnosis_silent("cpu of the ranks since the last step");
    constexpr double kWriting = 1e6;  // bytes/s: a long checkpoint, or a read of data
    const bool spins = computing > 0, one_waits = idlest <= diagnosis_threshold("hang.cpu");
    // An evaluation or an export computes without steps as well: how long none has until now is the measure.
    const double patience =
        std::max({diagnosis_threshold(one_waits ? "hang.one_computes_s" : "hang.all_compute_s"),
                  diagnosis_threshold("hang.pauses") * longest, diagnosis_threshold("hang.steps") * step, most});
    if (moved > kWriting || (spins && silent < patience))
        return diagnosis_ruled_out(fmt::format(
            "no step for {:.0f} s, but the busiest rank uses {:.2f} processors and {}{}", silent, busiest,
            rate_text(moved), moved > kWriting ? "" : fmt::format(": a hang where that lasts {:.0f} s", patience)));
    if (steps_most <= fewest) behind.reset();
    const std::optional<int> suspect = stopped ? stopped : spins && one_waits && computing == 1 ? who_computes : behind;
    Diagnosis found{.what = spins
                                ? fmt::format("no step has ended for {:.0f} s, while {} of {} rank{} compute{}", silent,
                                              computing, known, known == 1 ? "" : "s", computing == 1 ? "s" : "")
                                : fmt::format("no step has ended for {:.0f} s, and no rank computes", silent),
                    .evidence = {fmt::format("the busiest of {} rank{} uses {:.2f} processors", known,
                                             known == 1 ? "" : "s", busiest)},
                    .cost_s = silent,
                    .fix = "",
                    .rank = suspect,
                    .stops = true};
    if (spins) {
        if (one_waits && known > 1)
            found.evidence.push_back(fmt::format("the idlest uses {:.2f}: it waits for one that computes", idlest));
        found.evidence.push_back(
            fmt::format("no pause between steps was longer than {} until then; an evaluation "
                        "that long would look the same",
                        format_seconds(Seconds(longest))));
    }
    if (stopped)
        found.evidence.push_back(fmt::format("rank {} is stopped (state T)", *stopped));
    else if (behind)
        found.evidence.push_back(
            fmt::format("rank {} has ended {:.0f} steps, another {:.0f}", *behind, fewest, steps_most));
    else if (!suspect)
        found.evidence.push_back("which rank does not come is not known from outside");
    found.fix = fmt::format(
        "py-spy dump --pid PID of rank {} shows where it stands (stoker describe has the pids); a "
        "timeout in init_process_group ends such a run",
        found.rank.value_or(0));
    found.figures = {
        {.name = "silent_s", .value = silent, .unit = "s", .threshold = spins ? std::max(most, patience) : most},
        deciding_figure("busiest_cpu", busiest, "processors", "hang.cpu"),
        told_figure("longest_pause_s", longest, "s")};
    if (evidence.steady)
        found.spans.push_back({.from_s = evidence.steady->to_s, .to_s = evidence.steady->to_s + silent});
    return diagnosis_found(std::move(found));
}

}  // namespace stoker

// No step ends any more, and no rank computes: they wait for each other, or for one that does not come.
#include <fmt/format.h>

#include <algorithm>

#include "observe/diagnoses/rule_text.h"

namespace stoker {

DiagnosisVerdict judge_hung_collective(const RunEvidence& evidence) {
    if (!evidence.silent_s && evidence.step_s()) return diagnosis_ruled_out("it came to its end");
    if (!evidence.silent_s) return diagnosis_silent("steps in the metrics file");
    const double step = evidence.step_s().value_or(0), silent = *evidence.silent_s;
    const double most = std::max(diagnosis_threshold("hang.least_s"), diagnosis_threshold("hang.steps") * step);
    if (silent < most) return diagnosis_ruled_out(fmt::format("the last step ended {:.0f} s ago", silent));
    double busiest = 0, moved = 0;
    int known = 0;
    std::optional<int> stopped, behind;
    double fewest = 0, steps_most = 0;
    for (const RankEvidence& rank : evidence.ranks) {
        const auto cpu = rank.after("cpu");
        if (!cpu) continue;
        ++known;
        busiest = std::max(busiest, *cpu);
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
    if (busiest > diagnosis_threshold("hang.cpu") || moved > kWriting)
        return diagnosis_ruled_out(
            fmt::format("no step for {:.0f} s, but the busiest rank uses {:.2f} processors and {}", silent, busiest,
                        rate_text(moved)));
    if (steps_most <= fewest) behind.reset();
    Diagnosis found{.what = fmt::format("no step has ended for {:.0f} s, and no rank computes", silent),
                    .evidence = {fmt::format("the busiest of {} ranks uses {:.2f} processors", known, busiest)},
                    .cost_s = silent,
                    .fix = "",
                    .rank = stopped ? stopped : behind,
                    .stops = true};
    if (stopped)
        found.evidence.push_back(fmt::format("rank {} is stopped (state T)", *stopped));
    else if (behind)
        found.evidence.push_back(
            fmt::format("rank {} has ended {:.0f} steps, another {:.0f}", *behind, fewest, steps_most));
    else
        found.evidence.push_back("which rank does not come is not known from outside");
    found.fix = fmt::format(
        "py-spy dump --pid PID of rank {} shows where it stands (stoker describe has the pids); a "
        "timeout in init_process_group ends such a run",
        found.rank.value_or(0));
    return diagnosis_found(std::move(found));
}

}  // namespace stoker

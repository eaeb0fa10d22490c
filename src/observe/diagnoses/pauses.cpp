// Most steps are as fast as ever; now and then one takes many times as long: something is done between steps.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "observe/diagnoses/course_text.h"
#include "observe/diagnoses/rule_text.h"

namespace stoker {

DiagnosisVerdict judge_pauses(const RunEvidence& evidence) {
    const auto step = evidence.step_s();
    // Waiting for data in bursts has a rule: these are of what a step computes, where the program tells.
    const RankEvidence* rank = best_course(evidence, "longest_s");
    if (!step || rank == nullptr || !evidence.steady) return diagnosis_silent("steps over some seconds");
    const char* whole = rank->course("compute_s").empty() ? "step_s" : "compute_s";
    double time = 0, count = 0;
    for (const CoursePoint& point : rank->course(whole)) time += point.mean * point.count, count += point.count;
    std::vector<double> shortest, others;
    for (const CoursePoint& point : rank->course("shortest_s")) shortest.push_back(point.mean);
    // Of each second the mean of all steps but the longest; where several are long the shortest is nearer to the usual.
    for (const CoursePoint& point : rank->course(whole))
        for (const CoursePoint& most : rank->course("longest_s"))
            if (most.at_s == point.at_s && point.count > 1)
                others.push_back((point.mean * point.count - most.mean) / (point.count - 1));
    constexpr double kAlike = 1.5;
    double usual = spread_of(shortest).median;
    if (const double mean = spread_of(others).median; mean > usual && mean < kAlike * usual) usual = mean;
    if (!(usual > 0) || !(count > 0)) return diagnosis_silent("steps over some seconds");
    const double factor = diagnosis_threshold("pauses.factor");
    double longest = 0, in_pauses = 0, pauses = 0;
    std::vector<EvidenceSpan> spans;
    for (const CoursePoint& point : rank->course("longest_s"))
        if (point.mean > factor * usual) {
            longest = std::max(longest, point.mean);
            in_pauses += point.mean - usual;
            ++pauses;
            spans.push_back({.from_s = point.at_s, .to_s = point.at_s + 1});
        }
    const double cost = time / count - usual, share = cost / (time / count);
    constexpr double kLeastPauses = 3, kExplained = 0.5;  // of what steps are longer on average
    // At the most one pause of a second is seen; several explain more than that.
    if (pauses < kLeastPauses || share < diagnosis_threshold("pauses.share") || in_pauses < kExplained * cost * count)
        return diagnosis_ruled_out(fmt::format("{:.0f} step{} took {:.0f} times as long as is usual, {} of the time",
                                               pauses, pauses == 1 ? "" : "s", factor,
                                               percent_text(std::max(0.0, in_pauses / time))));
    const double seen = std::max(pauses, cost * count / std::max(1e-9, in_pauses / pauses));
    return diagnosis_found(
        {.what = fmt::format("about one step in {:.0f} takes up to {}, the others {}", std::max(2.0, count / seen),
                             milliseconds_text(longest), milliseconds_text(usual)),
         .evidence = {fmt::format("{} of the time goes to such pauses", percent_text(share)),
                      fmt::format("{:.0f} of them or more in {:.0f} steps", pauses, count)},
         .cost_s = cost,
         .fix = "look at what the loop does between steps: an evaluation, samples, a summary or a flush every so many "
                "steps; do it less often or in another process",
         .rank = {},
         .figures = {deciding_figure("pause_share", share, "of the time", "pauses.share"),
                     deciding_figure("longest_over_usual", longest / usual, "times a usual step", "pauses.factor"),
                     told_figure("usual_s", usual, "s"), told_figure("longest_s", longest, "s"),
                     told_figure("pauses", seen, "steps")},
         .spans = std::move(spans)});
}

}  // namespace stoker

// The loss is not a number any more: whatever is computed from there on is of no use.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "observe/diagnoses/rule_text.h"

namespace stoker {

DiagnosisVerdict judge_loss_not_finite(const RunEvidence& evidence) {
    const bool any = std::any_of(evidence.ranks.begin(), evidence.ranks.end(),
                                 [](const RankEvidence& rank) { return rank.steps > 0; });
    double first = 0, last = 0, first_at = 0, last_at = 0;
    std::optional<int> whose;
    for (const RankEvidence& rank : evidence.ranks)
        for (const CoursePoint& point : rank.course("not_finite")) {
            if (!whose || point.min < first) whose = rank.rank, first = point.min, first_at = point.at_s;
            if (point.max >= last) last = point.max, last_at = point.at_s;
        }
    if (!whose)
        return any ? diagnosis_ruled_out("no loss that was written was nan or inf")
                   : diagnosis_silent("a loss in the metrics file, or {loss} in the step pattern");
    // The first of each second is known. Where more steps than a second has have followed the last, it has recovered.
    double apart = last_at > first_at ? (last - first) / (last_at - first_at) : 0;
    if (last_at <= first_at && evidence.steady && evidence.steady->to_s > evidence.steady->from_s)
        apart = evidence.steady->steps / (evidence.steady->to_s - evidence.steady->from_s);
    const bool still = !evidence.last_step || last + 2 * std::max(1.0, apart) >= *evidence.last_step;
    const std::string since = first > 0 ? fmt::format(" since step {:.0f}", first) : "";
    Diagnosis found{
        .what = still ? fmt::format("the loss is nan or inf{}", since)
                      : fmt::format("the loss was nan or inf between steps {:.0f} and {:.0f}", first, last),
        .evidence = {fmt::format("written by rank {}", *whose)},
        .cost_s = 0,
        .fix = fmt::format("go on from a checkpoint of before step {:.0f}, with a lower learning rate, clipped "
                           "gradients or bf16 in place of fp16; torch.autograd.set_detect_anomaly(True) names the "
                           "operation",
                           first),
        .rank = {},
        .stops = still};
    if (evidence.last_step)
        found.evidence.push_back(fmt::format("the last step that was told is {:.0f}", *evidence.last_step));
    found.figures = {told_figure("first_step", first, "step"), told_figure("last_seen_step", last, "step")};
    const Course& when = std::find_if(evidence.ranks.begin(), evidence.ranks.end(), [&](const RankEvidence& rank) {
                             return rank.rank == *whose;
                         })->course("not_finite");
    found.spans.push_back({.from_s = when.front().at_s, .to_s = when.back().at_s + 1});
    return diagnosis_found(std::move(found));
}

}  // namespace stoker

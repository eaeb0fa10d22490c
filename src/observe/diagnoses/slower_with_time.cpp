// Steps take longer later in the run than at its beginning, whatever the reason.
#include <fmt/format.h>

#include <algorithm>

#include "observe/diagnoses/course_text.h"
#include "observe/diagnoses/rule_text.h"

namespace stoker {

DiagnosisVerdict judge_slower_with_time(const RunEvidence& evidence) {
    const auto step = evidence.step_s();
    // What a rank computes by itself, where it tells: a loader or a link that slows down has a rule. The shortest step
    // of each second, so that pauses make no rise.
    constexpr std::string_view measure = "shortest_s";
    const RankEvidence* rank = best_course(evidence, measure);
    constexpr std::size_t kLeast = 6;
    if (!step || rank == nullptr || rank->course(measure).size() < kLeast)
        return diagnosis_silent("six seconds of steps");
    const Course course = condensed(rank->course(measure));
    const double share = diagnosis_threshold("rise.share");
    const auto rise = rise_of(course, share);
    if (!rise)
        return diagnosis_ruled_out(
            fmt::format("no part of the run is {} slower than the part before it", percent_text(share)));
    double time = 0, count = 0;
    for (const CoursePoint& point : course) time += point.mean * point.count, count += point.count;
    // What grows all the time was at its best at the beginning.
    const double best = rise->sudden ? rise->before : std::min(course[0].mean, course[1].mean);
    Diagnosis found{
        .what = rise->sudden
                    ? fmt::format("a step computes {} since {:.0f} s after the first steady one, {} before",
                                  milliseconds_text(rise->after), rise->at_s - course.front().at_s,
                                  milliseconds_text(rise->before))
                    : fmt::format("a step computes longer and longer: {} at first, {} at last",
                                  milliseconds_text(course.front().mean), milliseconds_text(course.back().mean)),
        .evidence = {fmt::format("{} in the first part of the run, {} in the second, at the median",
                                 milliseconds_text(rise->before), milliseconds_text(rise->after))},
        .cost_s = count > 0 ? std::max(0.0, time / count - best) : 0,
        .fix = rise->sudden
                   ? "look at what changed at that time: a learning-rate or batch schedule, longer sequences, a "
                     "clock that fell; stoker top shows the moment"
                   : "look for what grows from step to step: lists of results, a graph that is kept "
                     "(loss in place of loss.item()), hooks that are registered again, longer sequences",
        .rank = {}};
    found.figures = {deciding_figure("rise", rise->after / rise->before - 1, "of a step", "rise.share"),
                     told_figure("before_s", rise->before, "s"), told_figure("after_s", rise->after, "s")};
    found.spans.push_back({.from_s = rise->at_s, .to_s = course.back().at_s + 1});
    return diagnosis_found(std::move(found));
}

}  // namespace stoker

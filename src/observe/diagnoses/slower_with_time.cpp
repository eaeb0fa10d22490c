// Steps take longer later in the run than at its beginning, whatever the reason.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "observe/diagnoses/course_text.h"
#include "observe/diagnoses/rule_text.h"

namespace stoker {
namespace {

// By how much of itself the processor time of a step is larger after than before; not known of threads that spin while
// they wait.
std::optional<double> work_rise(const RunEvidence& evidence, const RankEvidence& rank, double at_s) {
    if (widest_pool(evidence) > 1 && lower(evidence.planned.waiting.value_or("")) != "passive") return std::nullopt;
    std::optional<std::pair<double, double>> work = means_around(rank.course("cpu_s"), at_s);
    if (!work) {
        Course used;
        for (const CoursePoint& cpu : rank.course("cpu"))
            for (const CoursePoint& step : rank.course("step_s"))
                if (step.at_s == cpu.at_s) used.push_back({.at_s = cpu.at_s, .mean = cpu.mean * step.mean});
        work = means_around(used, at_s);
    }
    return work && work->first > 0 ? std::optional(work->second / work->first - 1) : std::nullopt;
}

// Processors that other programs use more after than before.
double foreign_rise(const RunEvidence& evidence, double at_s) {
    const RankEvidence* rank = best_course(evidence, "foreign_cpu");
    const auto foreign = rank == nullptr ? std::nullopt : means_around(rank->course("foreign_cpu"), at_s);
    return foreign ? foreign->second - foreign->first : 0;
}

}  // namespace

DiagnosisVerdict judge_slower_with_time(const RunEvidence& evidence) {
    const auto step = evidence.step_s();
    // What a rank computes by itself, where it tells: a loader or a link that slows down has a rule. The shortest step
    // of each second, so that pauses make no rise.
    constexpr std::string_view measure = "shortest_s";
    const RankEvidence* rank = best_course(evidence, measure);
    constexpr std::size_t kLeast = 6;
    if (!step || rank == nullptr || rank->course(measure).size() < kLeast)
        return diagnosis_silent("six seconds of steps");
    const double share = diagnosis_threshold("rise.share");
    // The shortest of few steps, or of lines that tell several at once, wavers with their number; a mean rises with
    // pauses: one of the two rises, and the other at least half as much.
    const Course shortest = condensed(rank->course(measure)),
                 whole = condensed(rank->course(rank->course("compute_s").empty() ? "step_s" : "compute_s"));
    std::optional<Rise> rise;
    Course course;
    for (const auto& [one, other] : {std::pair{&shortest, &whole}, {&whole, &shortest}}) {
        const auto found = rise_of(*one, share);
        const auto means = found ? means_around(*other, found->at_s) : std::nullopt;
        if (!means || means->second < (1 + share / 2) * means->first) continue;
        rise = found;
        course = *one;
        break;
    }
    if (!rise)
        return diagnosis_ruled_out(
            fmt::format("no part of the run is {} slower than the part before it", percent_text(share)));
    const double rose = rise->after / rise->before - 1;
    // Whoever begins to work beside takes processors, and the caches and the other half of a core from those that are
    // left: then a step takes more processor time, too.
    const double foreign = foreign_rise(evidence, rise->at_s);
    if (foreign >= diagnosis_threshold("neighbour.cpu_share") * evidence.machine_cpus.value_or(1))
        return diagnosis_ruled_out(fmt::format(
            "steps rise by {} when other programs begin to use {:.2f} processors more", percent_text(rose), foreign));
    // Who computes more in each step is slower by itself, however busy others are all the time.
    constexpr double kOfRise = 0.5;
    const auto works = work_rise(evidence, *rank, rise->at_s);
    const bool own = works && *works >= kOfRise * rose;
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
        .rank = {},
        .own = own};
    found.figures = {deciding_figure("rise", rise->after / rise->before - 1, "of a step", "rise.share"),
                     told_figure("before_s", rise->before, "s"), told_figure("after_s", rise->after, "s")};
    found.spans.push_back({.from_s = rise->at_s, .to_s = course.back().at_s + 1});
    return diagnosis_found(std::move(found));
}

}  // namespace stoker

// Memory of a rank grows from step to step, and has not come to rest.
#include <fmt/format.h>

#include <algorithm>

#include "observe/diagnoses/course_text.h"
#include "observe/diagnoses/rule_text.h"

namespace stoker {

DiagnosisVerdict judge_memory_leak(const RunEvidence& evidence) {
    constexpr std::size_t kLeast = 8;
    const RankEvidence* worst = nullptr;
    double growth = 0;
    bool known = false;
    for (const RankEvidence& rank : evidence.ranks) {
        const Course& course = rank.course("rss");
        if (course.size() < kLeast) continue;
        known = true;
        const double grew = course.back().mean - course.front().mean;
        if (worst == nullptr || grew > growth) worst = &rank, growth = grew;
    }
    if (!known || !evidence.steady || !(evidence.steady->steps > 0))
        return diagnosis_silent("eight seconds of steps with the memory of a rank");
    const Course course = condensed(worst->course("rss"));
    const double first = course.front().mean, last = course.back().mean;
    const double middle = course[course.size() / 2].mean;
    // What is kept of seconds is rounded: a point may be as high as the one before.
    std::size_t rising = 0;
    for (std::size_t i = 1; i < course.size(); ++i)
        rising += course[i].mean >= course[i - 1].mean - 0.02 * growth ? 1 : 0;
    const bool steadily = static_cast<double>(rising) >= 0.8 * static_cast<double>(course.size() - 1);
    // What fills caches grows less and less.
    const bool goes_on = last - middle >= 0.35 * growth;
    const std::string grew = fmt::format("{} grew by {} in {:.0f} s of steps", rank_text(*worst),
                                         size_text((std::max(0.0, growth))), course.back().at_s - course.front().at_s);
    if (growth < diagnosis_threshold("leak.least_bytes") || growth < diagnosis_threshold("leak.share") * first ||
        !steadily || !goes_on)
        return diagnosis_ruled_out(grew + (growth > 0 && !goes_on ? ", less and less" : ""));
    const double seconds = std::max(1.0, course.back().at_s - course.front().at_s), rate = growth / seconds;
    Diagnosis found{
        .what = fmt::format("the memory of {} grows by {} a step and does not come to rest", rank_text(*worst),
                            size_text((rate * evidence.step_s().value_or(seconds / evidence.steady->steps)))),
        .evidence = {fmt::format("{} at first, {} after {:.0f} s", size_text((first)), size_text((last)), seconds)},
        .cost_s = 0,
        .fix =
            "keep numbers and not tensors (loss.item(), .detach()), empty lists of results, look for "
            "caches without a bound; tracemalloc or memray names the line",
        .rank = worst->rank};
    if (const auto limit = worst->mean("memory_limit"); limit && *limit > last)
        found.evidence.push_back(fmt::format("the limit of {} is reached in {} at this rate", size_text((*limit)),
                                             format_seconds(Seconds((*limit - last) / rate))));
    found.figures = {deciding_figure("grown", growth, "bytes", "leak.least_bytes"),
                     deciding_figure("grown_share", growth / std::max(1.0, first), "of what was there", "leak.share"),
                     told_figure("growth_rate", rate, "bytes/s")};
    return diagnosis_found(std::move(found));
}

}  // namespace stoker

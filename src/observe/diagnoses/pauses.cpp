// Most steps are as fast as ever; now and then one takes many times as long: something is done between steps.
#include <fmt/format.h>

#include <algorithm>

#include "observe/diagnoses/course_text.h"
#include "observe/diagnoses/rule_text.h"

namespace stoker {

DiagnosisVerdict judge_pauses(const RunEvidence& evidence) {
    const auto pauses = evidence.step_s() && evidence.steady ? pauses_of(evidence) : std::nullopt;
    if (!pauses) return diagnosis_silent("steps over some seconds");
    if (!pauses->matter())
        return diagnosis_ruled_out(fmt::format("{:.0f} step{} took {:.0f} times as long as is usual, {} of the time{}",
                                               pauses->seen, pauses->seen == 1 ? "" : "s",
                                               diagnosis_threshold("pauses.factor"),
                                               percent_text(pauses->in_them_s / (pauses->whole_s * pauses->steps)),
                                               pauses->seen < 3 || pauses->share() < diagnosis_threshold("pauses.share")
                                                   ? ""
                                                   : ", at no beat: the others are uneven as well"));
    // One of each second is seen at the most; several explain more than that.
    const double seen = std::max(pauses->seen, pauses->cost_s * pauses->steps * pauses->seen / pauses->in_them_s);
    const double every = pauses->every.value_or(std::max(2.0, pauses->steps / seen));
    Diagnosis found{
        .what = fmt::format(
            "{} takes up to {}, the others {}",
            pauses->every ? fmt::format("one step in {:.0f}", every) : fmt::format("about one step in {:.0f}", every),
            milliseconds_text(pauses->longest_s), milliseconds_text(pauses->usual_s)),
        .evidence = {fmt::format("{} of the time goes to such pauses", percent_text(pauses->share())),
                     fmt::format("{:.0f} of them or more in {:.0f} steps", pauses->seen, pauses->steps)},
        .cost_s = pauses->cost_s,
        .fix =
            "look at what the loop does between steps: an evaluation, samples, a summary or a flush every so many "
            "steps; do it less often or in another process",
        .rank = {},
        .own = pauses->regular};
    if (pauses->every)
        found.evidence.push_back(fmt::format("they are {:.0f} steps apart, or a multiple of that", every));
    found.figures = {deciding_figure("pause_share", pauses->share(), "of the time", "pauses.share"),
                     deciding_figure("longest_over_usual", pauses->longest_s / pauses->usual_s, "times a usual step",
                                     "pauses.factor"),
                     told_figure("usual_s", pauses->usual_s, "s"),
                     told_figure("longest_s", pauses->longest_s, "s"),
                     told_figure("pauses", seen, "steps"),
                     told_figure("every", every, "steps")};
    found.spans = pauses->spans;
    return diagnosis_found(std::move(found));
}

}  // namespace stoker

// The first steps are so much slower that whoever counts them in takes them for the steady state.
#include <fmt/format.h>

#include <algorithm>

#include "observe/diagnoses/rule_text.h"

namespace stoker {

DiagnosisVerdict judge_warm_up(const RunEvidence& evidence) {
    const auto step = evidence.step_s();
    if (!step || !evidence.steady || !evidence.steady->all_step_s)
        return diagnosis_silent(
            fmt::format("{:.0f} steps or more after the first ones", diagnosis_threshold("steady.least_steps")));
    const SteadyState& steady = *evidence.steady;
    const double extra = steady.warm_up_s - steady.warm_up_steps * *step;
    const double total = steady.warm_up_s + steady.steps * *step;
    constexpr double kMostSteps = 0.35;  // more is no beginning: something else has changed
    // Beside others, first steps wait for processors as all do: what counts is what they would take alone.
    const auto foreign = foreign_use(evidence);
    const auto queue = common_queue(evidence);
    const double alone = foreign && foreign->much && queue && queue->much ? 1 / (1 + queue->share) : 1;
    const double share = total > 0 ? std::max(0.0, extra) * alone / total : 0;
    if (share < diagnosis_threshold("warmup.share") ||
        steady.warm_up_steps > kMostSteps * (steady.warm_up_steps + steady.steps))
        return diagnosis_ruled_out(fmt::format("the first {:.0f} steps took {} longer in all{}", steady.warm_up_steps,
                                               milliseconds_text(std::max(0.0, extra)),
                                               alone < 1 ? ", beside other programs" : ""));
    return diagnosis_found(
        {.what =
             fmt::format("the first {:.0f} steps took {:.1f} s longer in all; counted in, a step is {} and not {}",
                         steady.warm_up_steps, extra, milliseconds_text(*steady.all_step_s), milliseconds_text(*step)),
         .evidence = {fmt::format("{} of the time of all steps", percent_text(share)),
                      fmt::format("{:.0f} steps in the steady state", steady.steps)},
         .cost_s = std::max(0.0, *steady.all_step_s - *step),
         .fix = fmt::format("leave the first {:.0f} steps out of every average; a longer run pays for them once",
                            steady.warm_up_steps),
         .rank = {},
         .figures = {deciding_figure("warm_up_share", share, "of the time of all steps", "warmup.share"),
                     told_figure("warm_up_steps", steady.warm_up_steps, "steps"), told_figure("extra_s", extra, "s")},
         .spans = {{.from_s = steady.from_s - steady.warm_up_s, .to_s = steady.from_s}}});
}

}  // namespace stoker

// It came to its end with fewer steps than the plan has: the data ended, or a count in the program is smaller.
#include <fmt/format.h>

#include "observe/diagnoses/rule_text.h"

namespace stoker {

DiagnosisVerdict judge_ended_early(const RunEvidence& evidence) {
    const auto planned = evidence.planned.steps, last = evidence.last_step;
    if (!evidence.done_after_s) return diagnosis_silent("a run that came to its end by itself, at the first attempt");
    if (!planned || !last) return diagnosis_silent("numbers of steps in the metrics file, and a plan");
    const double least = 1 - diagnosis_threshold("plan.steps_share");
    const bool sooner = !evidence.planned.run_low_s || *evidence.done_after_s < *evidence.planned.run_low_s;
    // Whoever counts epochs has few steps, and takes as long as was planned.
    if (*last >= least * *planned || !sooner)
        return diagnosis_ruled_out(
            fmt::format("the last step is {} of {}", format_thousands(*last), format_thousands(*planned)));
    return diagnosis_found(
        {.what = fmt::format("it ended after step {}, and {} were planned", format_thousands(*last),
                             format_thousands(*planned)),
         .evidence = {fmt::format("{} of the steps, in {:.0f} s", percent_text(*last / *planned),
                                  *evidence.done_after_s)},
         .cost_s = 0,
         .fix = "look for a loader that is not begun again when its data ends, a smaller max_steps, or an early stop; "
                "or plan with the data and epochs as they are",
         .rank = {},
         .figures = {{.name = "steps", .value = *last, .unit = "steps", .threshold = least * *planned},
                     told_figure("planned_steps", *planned, "steps")}});
}

}  // namespace stoker

// Steps stand still while checkpoints are written.
#include <fmt/format.h>

#include <algorithm>

#include "observe/diagnoses/rule_text.h"

namespace stoker {

DiagnosisVerdict judge_checkpoint_stalls(const RunEvidence& evidence) {
    const auto step = evidence.step_s();
    const RankEvidence* worst = evidence.worst("checkpoint_s");
    if (!step || worst == nullptr) return diagnosis_silent("step_s and checkpoint_s in the metrics file");
    // checkpoint_s is 0 in most steps; its mean is what a step costs on average.
    const double stalls = *worst->mean("checkpoint_s"), share = stalls / (*step + stalls);
    if (share < diagnosis_threshold("checkpoint.share"))
        return diagnosis_ruled_out(fmt::format("{} a step for checkpoints", milliseconds_text(stalls)));
    Diagnosis found{.what = fmt::format("checkpoints cost {} a step on average, {} of the time",
                                        milliseconds_text(stalls), percent_text(share)),
                    .evidence = {},
                    .cost_s = stalls,
                    .fix = fmt::format("checkpoints {:.0f} times as rare (checkpoint: {{every: ...}}) cost 2 % of the "
                                       "time; or write them in the background",
                                       std::max(2.0, stalls / (0.02 * *step))),
                    .rank = {}};
    found.figures = {deciding_figure("checkpoint_share", share, "of the time", "checkpoint.share"),
                     told_figure("checkpoint_s", stalls, "s")};
    if (const auto written = worst->mean("disk_write"))
        found.evidence.push_back(rate_text(*written) + " written on average");
    return diagnosis_found(std::move(found));
}

}  // namespace stoker

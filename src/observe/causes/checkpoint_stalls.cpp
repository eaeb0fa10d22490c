// Steps stand still while checkpoints are written.
#include <fmt/format.h>

#include "observe/causes/rule_text.h"

namespace stoker {
namespace {

constexpr double kCheckpointShare = 0.05;  // of the time

}  // namespace

CauseVerdict judge_checkpoint_stalls(const Evidence& evidence) {
    const auto step = evidence.step_s(), stalls = evidence.mean("checkpoint_s");
    if (!step || !stalls) return cause_silent("step_s and checkpoint_s in the metrics file");
    // checkpoint_s is 0 in most steps; its mean is what a step costs on average.
    if (*stalls < kCheckpointShare * *step)
        return cause_ruled_out(fmt::format("{} a step for checkpoints", milliseconds_text(*stalls)));
    Finding finding{.cause = "checkpoint-stalls",
                    .what = fmt::format("checkpoints cost {} a step on average, {} of it", milliseconds_text(*stalls),
                                        percent_text(*stalls / *step)),
                    .evidence = {},
                    .cost_s = *stalls,
                    .fix = "a longer checkpoint interval, or write them in the background",
                    .rank = {}};
    if (const auto written = evidence.mean("disk_write"))
        finding.evidence.push_back(fmt::format("{:.1f} MB/s written to the disk", *written / 1e6));
    return cause_found(std::move(finding));
}

}  // namespace stoker

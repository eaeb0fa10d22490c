// The rank needs more memory than it has: pages go to swap, or are read again because the limit is near.
#include <fmt/format.h>

#include <algorithm>

#include "observe/causes/rule_text.h"

namespace stoker {
namespace {

constexpr double kFaults = 20;      // major faults a second; the start of a program has more, but not for long
constexpr double kFaultS = 0.0005;  // what one costs at the least: a read from a local SSD
constexpr double kSwapBytes = 16e6;
constexpr double kNearLimit = 0.97;

}  // namespace

CauseVerdict judge_memory_pressure(const Evidence& evidence) {
    const auto step = evidence.step_s();
    const auto faults = evidence.mean("major_faults"), swap = evidence.mean("swap"), hits = evidence.mean("limit_hits");
    const auto used = evidence.mean("memory_used"), limit = evidence.mean("memory_limit");
    if (!step || !faults) return cause_silent("step_s and major_faults");
    const bool swapped = swap && *swap > kSwapBytes, near = used && limit && *used > kNearLimit * *limit;
    // At the limit alone is no harm: page cache fills whatever there is.
    const bool hurts = *faults > kFaults || (near && hits && *hits > 1 && *faults > 1);
    if (!hurts || (!swapped && !near))
        return cause_ruled_out(
            fmt::format("{:.1f} major faults/s, {:.0f} MB in swap", *faults, swap.value_or(0) / 1e6));
    Finding finding{.cause = "memory-pressure",
                    .what = swapped ? fmt::format("{:.0f} MB are in swap and are read again", *swap / 1e6)
                                    : "the memory limit is reached and pages are read again",
                    .evidence = {fmt::format("{:.0f} major faults/s", *faults)},
                    .cost_s = std::min(0.95, *faults * kFaultS) * *step,
                    .fix = "a smaller batch, recompute, or more memory for the rank",
                    .rank = {}};
    if (used && limit) finding.evidence.push_back(fmt::format("{:.2f} of {:.2f} GB in use", *used / 1e9, *limit / 1e9));
    if (hits) finding.evidence.push_back(fmt::format("the limit was reached {:.1f} times/s", *hits));
    return cause_found(std::move(finding));
}

}  // namespace stoker

// The rank needs more memory than it has: pages go to swap, or are read again because the limit is near.
#include <fmt/format.h>

#include <algorithm>

#include "observe/diagnoses/rule_text.h"

namespace stoker {

DiagnosisVerdict judge_memory_pressure(const RunEvidence& evidence) {
    const auto step = evidence.step_s();
    const auto faults = evidence.mean("major_faults"), swap = evidence.mean("swap"), hits = evidence.mean("limit_hits");
    const auto used = evidence.mean("memory_used"), limit = evidence.mean("memory_limit");
    if (!faults) return diagnosis_silent("major_faults");
    const bool swapped = swap && *swap > diagnosis_threshold("memory.swap_bytes");
    const bool near = used && limit && *used > diagnosis_threshold("memory.near_limit") * *limit;
    // At the limit alone is no harm: page cache fills whatever there is.
    // Before the first steps a program reads its code: then only what the limit throws out again counts.
    const double most = diagnosis_threshold("memory.major_faults") * (step ? 1 : 2);
    const bool hurts = *faults > most && (step || near);
    if (!hurts || (!swapped && !near))
        return diagnosis_ruled_out(
            fmt::format("{:.1f} major faults/s, {:.0f} MB in swap", *faults, swap.value_or(0) / 1e6));
    // A thread that waits for a page is in state D; the figure of a local SSD is the least that a fault takes.
    const double waiting =
        std::max(*faults * diagnosis_threshold("memory.fault_s"), evidence.mean("blocked").value_or(0));
    Diagnosis found{.what = swapped ? fmt::format("{:.0f} MB are in swap and are read again", *swap / 1e6)
                                    : "the memory limit is reached and pages are read again",
                    .evidence = {fmt::format("{:.0f} major faults/s", *faults)},
                    .cost_s = std::min(0.95, waiting) * step.value_or(0),
                    .fix = "",
                    .rank = {}};
    if (used && limit) found.evidence.push_back(fmt::format("{:.2f} of {:.2f} GB in use", *used / 1e9, *limit / 1e9));
    if (hits) found.evidence.push_back(fmt::format("the limit was reached {:.1f} times/s", *hits));
    if (const auto disk = evidence.mean("disk_read")) found.evidence.push_back(rate_text(*disk) + " from the disk");
    found.fix = limit ? fmt::format(
                            "more memory for a rank (run: memory, or --memory {:.1f}GiB), a smaller batch, or "
                            "recompute",
                            1.5 * *limit / 1073741824.0)
                      : "a smaller batch, recompute, or a machine with more memory";
    found.figures = {deciding_figure("major_faults", *faults, "faults/s", "memory.major_faults")};
    if (swap) found.figures.push_back(deciding_figure("swap", *swap, "bytes", "memory.swap_bytes"));
    if (used && limit)
        found.figures.push_back(deciding_figure("memory_share", *used / *limit, "of the limit", "memory.near_limit"));
    return diagnosis_found(std::move(found));
}

}  // namespace stoker

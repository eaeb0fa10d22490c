// There is no room left where the run writes: checkpoints, metrics and logs are lost.
#include <fmt/format.h>

#include <algorithm>

#include "observe/diagnoses/rule_text.h"

namespace stoker {

DiagnosisVerdict judge_disk_full(const RunEvidence& evidence) {
    std::optional<double> least;
    for (const RankEvidence& rank : evidence.ranks)
        for (const auto* measures : {&rank.measures, &rank.afterwards})
            if (const auto found = measures->find("disk_free"); found != measures->end())
                least = std::min(least.value_or(found->second.low), found->second.low);
    if (!least) return diagnosis_silent("disk_free");
    if (*least >= diagnosis_threshold("disk.full_bytes"))
        return diagnosis_ruled_out(fmt::format("{:.1f} GB free where it writes", *least / 1e9));
    return diagnosis_found({.what = fmt::format("{:.1f} MB are free where the run writes", *least / 1e6),
                            .evidence = {"checkpoints, metrics and logs that do not fit are lost"},
                            .cost_s = 0,
                            .fix = "make room (du -xh --max-depth=2 FOLDER | sort -h), or keep fewer checkpoints "
                                   "(checkpoint: {keep: 1})",
                            .rank = {},
                            .stops = true,
                            .figures = {deciding_figure("disk_free", *least, "bytes", "disk.full_bytes")}});
}

}  // namespace stoker

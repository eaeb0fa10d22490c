// The disk that takes the checkpoints is slower than disks are.
#include <fmt/format.h>

#include <algorithm>

#include "observe/diagnoses/rule_text.h"

namespace stoker {

DiagnosisVerdict judge_disk_slow(const RunEvidence& evidence) {
    const auto step = evidence.step_s();
    const RankEvidence* worst = evidence.worst("checkpoint_s");
    const auto written = worst == nullptr ? std::nullopt : worst->mean("disk_write");
    const auto blocked = worst == nullptr ? std::nullopt : worst->mean("blocked");
    if (!step || !written || !blocked || !evidence.steady)
        return diagnosis_silent("step_s and checkpoint_s in the metrics file, disk_write and blocked");
    const double stalls = *worst->mean("checkpoint_s"), share = stalls / (*step + stalls);
    const double waiting = blocked.value_or(0), bytes = written.value_or(0);
    if (share < diagnosis_threshold("checkpoint.share"))
        return diagnosis_ruled_out(fmt::format("{} a step for checkpoints", milliseconds_text(stalls)));
    // All that is written, as if only checkpoints were: the disk is at least not faster than told here.
    const double seconds = evidence.steady->to_s - evidence.steady->from_s;
    const double rate = bytes * seconds / std::max(1e-6, stalls * evidence.steady->steps);
    // Waiting for a device is seen in short looks only; a rank that computes its checkpoints would use a processor.
    const bool idle = worst->mean("cpu").value_or(1) <= 1 - share / 2;
    constexpr double kWriting = 1e5, kWaiting = 0.02;  // bytes/s; threads in state D
    if (rate >= diagnosis_threshold("disk.slow_bytes_per_s") || bytes < kWriting || (waiting < kWaiting && !idle))
        return diagnosis_ruled_out(fmt::format("{} while checkpoints are written, {:.2f} threads wait for the device",
                                               rate_text(rate), waiting));
    return diagnosis_found({.what = fmt::format("the disk takes {} while checkpoints are written", rate_text(rate)),
                            .evidence = {fmt::format("checkpoints cost {} a step, {} of the time",
                                                     milliseconds_text(stalls), percent_text(share)),
                                         fmt::format("{:.2f} threads wait for the device (state D)", waiting)},
                            // Named before checkpoint-stalls, which says the same without the reason.
                            .cost_s = stalls * 1.001,
                            .fix = "another disk for checkpoints (checkpoint: {folder: ...}); fio --rw=write --bs=1M "
                                   "--fsync=1 says what this one can",
                            .rank = {},
                            .figures = {deciding_figure("disk_rate", rate, "bytes/s", "disk.slow_bytes_per_s"),
                                        deciding_figure("checkpoint_share", share, "of the time", "checkpoint.share"),
                                        told_figure("blocked", waiting, "threads")}});
}

}  // namespace stoker

// The loop writes and waits until it is on the disk, beside its checkpoints: a log that is synced at each step.
#include <fmt/format.h>

#include <algorithm>

#include "observe/diagnoses/rule_text.h"

namespace stoker {

DiagnosisVerdict judge_waits_for_disk(const RunEvidence& evidence) {
    const auto step = evidence.step_s();
    const RankEvidence* worst = evidence.worst("blocked");
    if (!step || worst == nullptr || worst->find("disk_write") == nullptr)
        return diagnosis_silent("step_s, blocked and disk_write");
    const double written = worst->find("disk_write")->mean;
    const double waiting = std::min(1.0, *worst->mean("blocked")), read = worst->mean("disk_read").value_or(0);
    const double stalls = worst->mean("checkpoint_s").value_or(0), wait = worst->mean("wait_s").value_or(0);
    // In checkpoints and in the loader it waits for the disk, too; those have rules.
    double cost = std::max(0.0, waiting * (*step + stalls) - stalls - wait);
    // A rank of one thread that says what its processor did leaves no doubt.
    const auto compute = worst->mean("compute_s"), used = worst->mean("cpu_s"), threads = worst->mean("torch_threads");
    if (compute && used && threads && *threads == 1) cost = std::min(cost, std::max(0.0, *compute - *used));
    constexpr double kWriting = 2e4;  // bytes/s: less is no log
    // Told by the program (python/stoker_torch), it is what fsync took beside checkpoints, to the microsecond.
    const RankEvidence* syncing = evidence.worst("sync_s");
    const auto synced = syncing == nullptr ? std::nullopt : syncing->mean("sync_s");
    if (synced && *synced >= diagnosis_threshold("sync.share") * *step)
        return diagnosis_found(
            {.what = fmt::format("it waits {} a step in fsync, beside its checkpoints", milliseconds_text(*synced)),
             .evidence = {fmt::format("{} of the step of {}", percent_text(*synced / *step), rank_text(*syncing)),
                          rate_text(written) + " written"},
             .cost_s = *synced,
             .fix =
                 "write logs and samples in the background or every few hundred steps, and without fsync or flush in "
                 "the loop",
             .rank = {},
             .own = true,
             .figures = {deciding_figure("sync_share", *synced / *step, "of a step", "sync.share"),
                         told_figure("sync_s", *synced, "s")}});
    if (synced) cost = std::min(cost, *synced);
    if (cost < diagnosis_threshold("sync.share") * *step || written < kWriting || read > written)
        return diagnosis_ruled_out(fmt::format("{:.2f} threads wait for a device beside checkpoints, {} written",
                                               waiting, rate_text(written)));
    return diagnosis_found(
        {.what = fmt::format("it waits for a disk {} a step while it writes, beside its checkpoints",
                             milliseconds_text(cost)),
         .evidence = {fmt::format("a thread of {} waits for the device (state D) {} of the time", rank_text(*worst),
                                  percent_text(waiting)),
                      rate_text(written) + " written"},
         .cost_s = cost,
         .fix = "write logs and samples in the background or every few hundred steps, and without fsync or flush in "
                "the loop",
         .rank = {},
         .figures = {deciding_figure("sync_share", cost / *step, "of a step", "sync.share"),
                     told_figure("blocked", waiting, "threads")}});
}

}  // namespace stoker

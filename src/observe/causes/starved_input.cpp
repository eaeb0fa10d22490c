// The step waits for its input: the loader is slower than the model.
#include <fmt/format.h>

#include <algorithm>

#include "observe/causes/rule_text.h"

namespace stoker {
namespace {

constexpr double kInputShare = 0.05;      // of a step, above what was planned; assumed, to be held against real runs
constexpr double kSmallReadBytes = 64e3;  // a read call of less, in thousands, means small files
constexpr double kManyReads = 500;        // calls/s

}  // namespace

CauseVerdict judge_starved_input(const Evidence& evidence) {
    const auto step = evidence.step_s();
    const RankEvidence* worst = nullptr;
    for (const RankEvidence& rank : evidence.ranks)
        if (rank.find("wait_s") && (!worst || rank.find("wait_s")->mean > worst->find("wait_s")->mean)) worst = &rank;
    if (!step || worst == nullptr) return cause_silent("step_s and wait_s in the metrics file");
    const double wait = worst->find("wait_s")->mean, planned = evidence.planned.wait_s.value_or(0);
    const double cost = wait - planned;
    // A mean beside a median: a few long waits at the start count here, and are no reason to change a loader.
    const double typical = worst->find("wait_s")->high - planned;
    if (cost < kInputShare * *step || typical < kInputShare * *step)
        return cause_ruled_out(
            fmt::format("{} a step waiting for data ({} of it)", milliseconds_text(wait), percent_text(wait / *step)));
    Finding finding{.cause = "starved-input",
                    .what = fmt::format("{} a step waiting for data (planned {})", milliseconds_text(wait),
                                        milliseconds_text(planned)),
                    .evidence = {fmt::format("{} of the step on rank {}", percent_text(wait / *step), worst->rank)},
                    .cost_s = cost,
                    .fix = "more loader workers, or prepare the samples ahead",
                    .rank = worst->rank};
    const auto calls = worst->mean("read_calls"), bytes = worst->mean("call_read"), disk = worst->mean("disk_read"),
               cpu = worst->mean("cpu");
    if (calls && bytes && *calls > kManyReads && *bytes / *calls < kSmallReadBytes) {
        finding.evidence.push_back(fmt::format("{:.0f} reads/s of {:.1f} KB", *calls, *bytes / *calls / 1e3));
        finding.fix = "pack the samples into few large files; then more loader workers";
    }
    if (disk && *disk > 1e6) finding.evidence.push_back(fmt::format("{:.1f} MB/s from the disk", *disk / 1e6));
    if (cpu) finding.evidence.push_back(fmt::format("{:.2f} processors in use", *cpu));
    return cause_found(std::move(finding));
}

}  // namespace stoker

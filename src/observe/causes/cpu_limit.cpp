// The ranks are not given the processors they could use: a quota stops them, or they wait for their turn.
#include <fmt/format.h>

#include <algorithm>

#include "observe/causes/rule_text.h"

namespace stoker {
namespace {

constexpr double kThrottledShare = 0.05;  // of the time
constexpr double kQueueShare = 0.25;      // run-queue wait over use: a thread that runs waits a quarter as long again

}  // namespace

CauseVerdict judge_cpu_limit(const Evidence& evidence) {
    const auto step = evidence.step_s();
    const auto throttled = evidence.mean("throttled"), wait = evidence.mean("run_wait"), cpu = evidence.mean("cpu");
    if (!step || (!throttled && (!wait || !cpu))) return cause_silent("step_s, and cpu with run_wait or throttled");
    if (throttled && *throttled >= kThrottledShare) {
        const auto limit = evidence.mean("cpu_limit");
        Finding finding{.cause = "cpu-limit",
                        .what = fmt::format("stopped by the processor limit for {} of the time",
                                            percent_text(std::min(1.0, *throttled))),
                        .evidence = {fmt::format("{:.2f} s per second throttled", *throttled)},
                        .cost_s = *step * std::min(1.0, *throttled),
                        .fix = "raise the processor limit of the rank, or start fewer threads",
                        .rank = {}};
        if (limit) finding.evidence.push_back(fmt::format("the limit is {:.2f} processors", *limit));
        if (cpu) finding.evidence.push_back(fmt::format("{:.2f} in use", *cpu));
        return cause_found(std::move(finding));
    }
    if (!wait || !cpu || *cpu < 0.2)
        return cause_ruled_out(fmt::format("{} of the time throttled", percent_text(throttled.value_or(0))));
    const double share = *wait / *cpu;
    if (share < kQueueShare)
        return cause_ruled_out(fmt::format("ready threads wait {} of the time they run", percent_text(share)));
    const auto threads = evidence.mean("threads");
    Finding finding{
        .cause = "cpu-limit",
        .what = "threads are ready to run and have no processor",
        .evidence = {fmt::format("{:.2f} s per second in the run queue, {:.2f} processors in use", *wait, *cpu)},
        .cost_s = *step * share / (1 + share),
        .fix = "fewer threads per rank (OMP_NUM_THREADS), or fewer ranks on this machine",
        .rank = {}};
    if (threads) finding.evidence.push_back(fmt::format("{:.0f} threads a rank", *threads));
    return cause_found(std::move(finding));
}

}  // namespace stoker

// The ranks are not given the processors they could use, or do not use them: a quota stops them, too many threads or an
// affinity makes them wait for each other, or too few threads leave processors idle.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "observe/diagnoses/rule_text.h"

namespace stoker {
namespace {

Diagnosis of_quota(const RankEvidence& worst, double step, double throttled) {
    Diagnosis found{.what = fmt::format("stopped by the processor limit for {} of the time",
                                        percent_text(std::min(1.0, throttled))),
                    .evidence = {fmt::format("{:.2f} s per second throttled on rank {}", throttled, worst.rank)},
                    .cost_s = step * std::min(1.0, throttled),
                    .fix =
                        "raise the processors of a rank (run: cpus, or --cpus), or start fewer threads "
                        "(--env OMP_NUM_THREADS)",
                    .rank = {}};
    const auto limit = worst.mean("cpu_limit"), cpu = worst.mean("cpu"), threads = worst.mean("threads");
    if (limit) found.evidence.push_back(fmt::format("the limit is {:.2f} processors", *limit));
    if (cpu) found.evidence.push_back(fmt::format("{:.2f} in use", *cpu));
    if (threads) found.evidence.push_back(fmt::format("{:.0f} threads", *threads));
    return found;
}

// More threads are ready than there are processors for them.
Diagnosis of_crowd(const RunEvidence& evidence, const CommonQueue& queue, const std::optional<OwnCrowd>& crowd) {
    const double wait = evidence.mean("run_wait").value_or(0), cpu = evidence.mean("cpu").value_or(1);
    Diagnosis found{.what = "threads are ready to run and have no processor",
                    .evidence = {fmt::format("{:.2f} s per second in the run queue, {:.2f} processors in use by a rank",
                                             wait, cpu)},
                    .cost_s = queue.cost_s,
                    .fix = "",
                    .rank = {}};
    if (crowd)
        found.evidence.push_back(fmt::format("{:.1f} threads are ready for {:.0f} processor{}", crowd->ready,
                                             crowd->processors, crowd->processors == 1 ? "" : "s"));
    if (crowd && crowd->affinity) {
        found.what = fmt::format("an affinity keeps several ranks on the same {:.0f} of {:.0f} processors",
                                 crowd->processors, *evidence.machine_cpus);
        found.fix =
            "take the affinity away (taskset, numactl, KMP_AFFINITY, GOMP_CPU_AFFINITY) or give each rank "
            "processors of its own";
        return found;
    }
    if (const auto threads = evidence.mean("torch_threads"))
        found.evidence.push_back(fmt::format("{:.0f} computing threads a rank", *threads));
    const double wanted = std::max(1.0, evidence.planned.processors.value_or(1));
    const double each =
        evidence.machine_cpus ? *evidence.machine_cpus / static_cast<double>(evidence.ranks.size()) : wanted;
    found.fix = fmt::format("--env OMP_NUM_THREADS={:.0f} (run: environment), or fewer ranks on this machine",
                            std::max(1.0, std::floor(std::min(each, wanted))));
    return found;
}

}  // namespace

DiagnosisVerdict judge_cpu_limit(const RunEvidence& evidence) {
    const auto step = evidence.step_s();
    const auto wait = evidence.mean("run_wait"), cpu = evidence.mean("cpu");
    const RankEvidence* worst = evidence.worst("throttled");
    if (!step || (worst == nullptr && (!wait || !cpu)))
        return diagnosis_silent("step_s, and cpu with run_wait or throttled");
    const double throttled = worst == nullptr ? 0 : *worst->mean("throttled");
    if (throttled >= diagnosis_threshold("cpu.throttled_share")) {
        Diagnosis found = of_quota(*worst, *step, throttled);
        const auto all = evidence.mean("throttled");
        if (evidence.ranks.size() > 1 && *all < 0.75 * throttled) found.rank = worst->rank;
        return diagnosis_found(std::move(found));
    }
    if (!wait || !cpu) return diagnosis_ruled_out(fmt::format("{} of the time throttled", percent_text(throttled)));
    const auto foreign = foreign_use(evidence);
    if (const auto queue = common_queue(evidence); queue && queue->much) {
        // Who else is on the machine decides whose fault that is; not known is not ours.
        const auto crowd = own_crowd(evidence);
        if (crowd || (foreign && !foreign->much)) return diagnosis_found(of_crowd(evidence, *queue, crowd));
        if (!foreign) return diagnosis_silent("foreign_cpu: who else uses the processors");
        return diagnosis_ruled_out(
            fmt::format("ready threads wait, for other programs: they use {:.2f} processors", foreign->processors));
    }
    // Too few threads: a rank that computes and leaves what it asked for idle. Waiting, it would use less as well.
    const auto compute = evidence.mean("compute_s"), threads = evidence.mean("torch_threads");
    const auto wanted = evidence.planned.processors;
    if (compute && threads && wanted && *wanted >= 2 && *threads<*wanted&& * compute> 0.5 * *step) {
        const double used = *cpu * *step / *compute;  // while it computes, at the most
        if (used < diagnosis_threshold("cpu.idle_share") * *wanted)
            return diagnosis_found(
                {.what = fmt::format("{:.0f} computing threads a rank where {:g} processors are its own", *threads,
                                     *wanted),
                 .evidence = {fmt::format("{:.2f} processors in use while it computes", used)},
                 .cost_s = *compute * (1 - std::max(1.0, *threads) / *wanted),
                 .fix = fmt::format("--env OMP_NUM_THREADS={:.0f} (run: environment), or ask for fewer "
                                    "(--cpus)",
                                    *wanted),
                 .rank = {}});
    }
    return diagnosis_ruled_out(fmt::format("ready threads wait {} of the time they run{}",
                                           percent_text(*wait / std::max(*cpu, 0.01)),
                                           worst == nullptr ? "" : ", none is throttled"));
}

}  // namespace stoker

// The ranks are not given the processors they could use, or do not use them: a quota stops them, too many threads or an
// affinity makes them wait for each other, or too few threads leave processors idle.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/thread_pools.h"
#include "observe/diagnoses/rule_text.h"

namespace stoker {
namespace {

// The pools that are wider than there is room for, or narrower: the variables that set them right.
std::string pool_settings(const std::vector<PoolWidth>& pools, double threads, bool wider) {
    std::vector<std::string> words;
    for (const PoolWidth& pool : pools)
        if (wider ? pool.threads > threads : pool.threads < threads && pool.told)
            words.push_back(fmt::format("--env {}={:.0f}", pool.variable, threads));
    return join(words, " ");
}

void tell_pools(const std::vector<PoolWidth>& pools, Diagnosis& found) {
    std::vector<std::string> words;
    for (const PoolWidth& pool : pools) {
        if (!pool.told && pool.threads <= 1) continue;
        words.push_back(fmt::format("{}{} {:.0f}", pool.variable, pool.told ? " in effect" : "", pool.threads));
        found.figures.push_back(told_figure(lower(pool.variable), pool.threads, "threads"));
    }
    if (!words.empty()) found.evidence.push_back(join(words, ", "));
}

// The program may have set its own, whatever its environment says.
std::string wide_fix(const RunEvidence& evidence, const std::vector<PoolWidth>& pools, double room) {
    const double threads = std::max(1.0, std::floor(room));
    for (const PoolWidth& pool : pools) {
        const auto named = evidence.planned.pools.find(pool.variable);
        if (pool.variable == kThreadPools[0].variable && pool.told && named != evidence.planned.pools.end() &&
            pool.threads > named->second && pool.threads > threads)
            return fmt::format("torch.set_num_threads({:.0f}) where the program asks for {:.0f}", threads,
                               pool.threads);
    }
    if (const std::string settings = pool_settings(pools, threads, true); !settings.empty())
        return settings + " (run: environment)";
    if (pools_take_turns(evidence))
        return "--env OMP_WAIT_POLICY=PASSIVE (run: environment): threads of OpenMP spin while those of the other "
               "library compute";
    return "";
}

Diagnosis of_quota(const RunEvidence& evidence, const RankEvidence& worst, double step, double throttled) {
    Diagnosis found{.what = fmt::format("stopped by the processor limit for {} of the time",
                                        percent_text(std::min(1.0, throttled))),
                    .evidence = {fmt::format("{:.2f} s per second throttled on rank {}", throttled, worst.rank)},
                    .cost_s = step * std::min(1.0, throttled),
                    .fix = "raise the processors of a rank (run: cpus, or --cpus), or start fewer threads",
                    .rank = {}};
    found.figures.push_back(deciding_figure("throttled_share", throttled, "of the time", "cpu.throttled_share"));
    const auto limit = worst.mean("cpu_limit"), cpu = worst.mean("cpu"), threads = worst.mean("threads");
    // Ranks that are not stopped at the same moments wait for each other as well: at most for all that none of them
    // works, nor waits for data. The middle of both.
    if (cpu && evidence.ranks.size() > 1 && widest_pool(evidence) <= 1) {
        const double most = step * std::max(0.0, 1 - *cpu) - worst.mean("wait_s").value_or(0);
        found.cost_range = {found.cost_s, std::max(found.cost_s, most)};
        found.cost_s = (*found.cost_range.low_s + *found.cost_range.high_s) / 2;
    }
    if (limit) {
        found.evidence.push_back(fmt::format("the limit is {:.2f} processors", *limit));
        found.figures.push_back(told_figure("cpu_limit", *limit, "processors"));
    }
    if (cpu) {
        found.evidence.push_back(fmt::format("{:.2f} in use", *cpu));
        found.figures.push_back(told_figure("cpu", *cpu, "processors"));
    }
    if (threads) found.evidence.push_back(fmt::format("{:.0f} threads", *threads));
    const std::vector<PoolWidth> pools = pool_widths(evidence);
    const std::string fix = wide_fix(evidence, pools, std::max(1.0, limit.value_or(1)));
    if (fix.empty()) return found;
    // Threads that wait for each other at a limit burn what the limit leaves: it cannot be told from work, but for what
    // the plan says that the work takes.
    found.fix = fix + "; or raise the processors of a rank (run: cpus, or --cpus)";
    tell_pools(pools, found);
    if (const auto beyond = step_beyond_plan(evidence); beyond && step > evidence.planned.step_high_s.value_or(0)) {
        const double stopped = found.cost_range.low_s.value_or(found.cost_s);
        found.cost_s = std::max(found.cost_s, std::min(*beyond, step));
        found.cost_range = {stopped, std::max(found.cost_s, found.cost_range.high_s.value_or(0))};
    }
    return found;
}

// At most `upper`, and no more than the plan leaves: of what threads wait, a part would have been work anyway.
double cost_within_plan(const RunEvidence& evidence, double upper) {
    const auto beyond = step_beyond_plan(evidence);
    if (!beyond) return upper;
    const Planned& planned = evidence.planned;
    return std::clamp(*beyond + *planned.step_s - planned.step_low_s.value_or(0), 0.0, upper);
}

// What an affinity costs: what threads queue for, or what the step takes beyond its plan, as far as the processors that
// it takes away from the pool could have done it.
double affinity_cost_s(const RunEvidence& evidence, const CommonQueue& queue, const OwnCrowd& crowd) {
    const double wanted = std::min(widest_pool(evidence) * crowd.ranks, evidence.machine_cpus.value_or(1));
    const double most = evidence.step_s().value_or(0) * std::max(0.0, 1 - crowd.processors / std::max(1.0, wanted));
    return std::max(queue.cost_s, std::clamp(step_beyond_plan(evidence).value_or(0), 0.0, most));
}

// More threads are ready than there are processors for them.
Diagnosis of_crowd(const RunEvidence& evidence, CommonQueue queue, const std::optional<OwnCrowd>& crowd) {
    if (const auto foreign = foreign_use(evidence); crowd && foreign && foreign->much)
        queue.cost_s *= crowd->part_beside(foreign->processors);
    const double wait = evidence.mean("run_wait").value_or(0), cpu = evidence.mean("cpu").value_or(1);
    Diagnosis found{.what = "threads are ready to run and have no processor",
                    .evidence = {fmt::format("{:.2f} s per second in the run queue, {:.2f} processors in use by a rank",
                                             wait, cpu)},
                    .cost_s = queue.cost_s,
                    .fix = "",
                    .rank = {}};
    found.figures = {deciding_figure("queue_share", queue.share, "of the processor time", "cpu.queue_share"),
                     told_figure("run_wait", wait, "s/s"), told_figure("cpu", cpu, "processors")};
    if (crowd) {
        found.evidence.push_back(fmt::format("{:.1f} threads are ready for {:.0f} processor{}", crowd->ready,
                                             crowd->processors, crowd->processors == 1 ? "" : "s"));
        found.figures.push_back(
            {.name = "threads_ready", .value = crowd->ready, .unit = "threads", .threshold = crowd->processors});
    }
    const std::vector<PoolWidth> pools = pool_widths(evidence);
    if (crowd && crowd->affinity) {
        found.cost_s = affinity_cost_s(evidence, queue, *crowd);
        found.cost_range = {std::min(queue.least_s, found.cost_s), std::max(queue.most_s, found.cost_s)};
        found.what = fmt::format("an affinity keeps {} on {} {:.0f} of {:.0f} processors",
                                 crowd->ranks > 1 ? "several ranks" : "the threads of a rank",
                                 crowd->ranks > 1 ? "the same" : "only", crowd->processors, *evidence.machine_cpus);
        found.fix =
            "take the affinity away (taskset, numactl, KMP_AFFINITY, GOMP_CPU_AFFINITY) or give each rank "
            "processors of its own";
        tell_pools(pools, found);
        return found;
    }
    found.cost_s = cost_within_plan(evidence, queue.cost_s);
    // What is burnt by threads that wait for each other cannot be told from work: the plan alone says how much that is.
    const Planned& planned = evidence.planned;
    const auto beyond = step_beyond_plan(evidence);
    const double sure = beyond ? *beyond - (planned.step_high_s.value_or(*planned.step_s) - *planned.step_s) : 0;
    found.cost_range = {std::clamp(sure, 0.0, found.cost_s), std::max(found.cost_s, queue.most_s)};
    tell_pools(pools, found);
    const double room = processors_of_rank(evidence);
    found.fix = wide_fix(evidence, pools, room);
    const bool fits = pools_fit(evidence);
    if (found.fix.empty() && fits) {
        found.fix = "fewer workers of the loader or other processes beside the ranks, or more processors";
        return found;
    }
    if (found.fix.empty())
        found.fix = fmt::format("--env OMP_NUM_THREADS={:.0f} (run: environment)", std::max(1.0, std::floor(room)));
    found.fix += ", or fewer ranks on this machine";
    return found;
}

// Too few threads: a rank that computes and leaves what it asked for idle. Waiting, it would use less as well. Workers
// of its loader have what they compute with of the same processors.
std::optional<Diagnosis> of_idle(const RunEvidence& evidence, double step, double cpu) {
    const auto compute = evidence.mean("compute_s"), torch = evidence.mean(kThreadPools[0].measure);
    const double wanted = std::floor(evidence.planned.processors.value_or(0) - evidence.mean("workers").value_or(0));
    if (!compute || !torch || wanted < 2 || *compute <= 0.5 * step) return std::nullopt;
    const std::vector<PoolWidth> pools = pool_widths(evidence);
    double widest = 0;
    for (const PoolWidth& pool : pools)
        if (pool.told) widest = std::max(widest, pool.threads);
    const double used = cpu * step / *compute;  // while it computes, at the most
    if (widest >= wanted || used >= diagnosis_threshold("cpu.idle_share") * wanted) return std::nullopt;
    Diagnosis found{.what = fmt::format("{:.0f} computing thread{} a rank where {:g} processors are its own", widest,
                                        widest == 1 ? "" : "s", wanted),
                    .evidence = {fmt::format("{:.2f} processors in use while it computes", used)},
                    .cost_s = cost_within_plan(evidence, *compute * (1 - std::max(1.0, widest) / wanted)),
                    .fix = pool_settings(pools, wanted, false) + " (run: environment), or ask for fewer (--cpus)",
                    .rank = {}};
    found.figures = {deciding_figure("used_share", used / wanted, "of the processors asked for", "cpu.idle_share"),
                     told_figure("processors", wanted, "processors")};
    tell_pools(pools, found);
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
        Diagnosis found = of_quota(evidence, *worst, *step, throttled);
        const auto all = evidence.mean("throttled");
        if (evidence.ranks.size() > 1 && *all < 0.75 * throttled) found.rank = worst->rank;
        return diagnosis_found(std::move(found));
    }
    if (!wait || !cpu) return diagnosis_ruled_out(fmt::format("{} of the time throttled", percent_text(throttled)));
    const auto foreign = foreign_use(evidence);
    const auto queue = common_queue(evidence);
    const auto crowd = own_crowd(evidence);
    // Threads that are kept on fewer processors than they are: what they wait need not be much to be theirs.
    const bool kept =
        crowd && crowd->affinity && queue && queue->cost_s >= diagnosis_threshold("cpu.queue_least_share") * *step;
    if (queue && (queue->much || kept)) {
        // Who else is on the machine decides whose fault that is; not known is not ours.
        if (const auto ready = threads_ready(evidence);
            !crowd && pools_fit(evidence) && ready && foreign && *ready <= kOverWithWorkers * *evidence.machine_cpus)
            return diagnosis_ruled_out(fmt::format("{:.1f} threads are ready for {:.0f} processors, and its pools fit",
                                                   *ready, *evidence.machine_cpus));
        if (crowd || (foreign && !foreign->much)) {
            Diagnosis found = of_crowd(evidence, *queue, crowd);
            if (found.cost_s < diagnosis_threshold("cpu.queue_least_share") * *step)
                return diagnosis_ruled_out(fmt::format(
                    "ready threads wait {}, and the step takes no longer than planned", queue_text(queue->share)));
            return diagnosis_found(std::move(found));
        }
        if (!foreign) return diagnosis_silent("foreign_cpu: who else uses the processors");
        return diagnosis_ruled_out(
            fmt::format("ready threads wait, for other programs: they use {:.2f} processors", foreign->processors));
    }
    if (auto idle = of_idle(evidence, *step, *cpu)) return diagnosis_found(std::move(*idle));
    return diagnosis_ruled_out(fmt::format("ready threads wait {}{}", queue_text(*wait / std::max(*cpu, 0.01)),
                                           worst == nullptr ? "" : ", none is throttled"));
}

}  // namespace stoker

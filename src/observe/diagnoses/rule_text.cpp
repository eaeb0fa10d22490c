#include "observe/diagnoses/rule_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/thread_pools.h"

namespace stoker {

std::string milliseconds_text(double seconds) {
    const double ms = seconds * 1e3;
    if (ms >= 1000) return format_thousands(ms) + " ms";
    return ms >= 10 ? fmt::format("{:.0f} ms", ms) : fmt::format("{:.1f} ms", ms);
}

std::string planned_text(std::optional<double> seconds) {
    return seconds ? " (planned " + milliseconds_text(*seconds) + ")" : "";
}

std::string percent_text(double share) {
    return fmt::format("{:.{}f} %", share * 100, share < 0.1 ? 1 : 0);
}

std::string size_text(double bytes) {
    if (bytes >= 1e9) return fmt::format("{:.1f} GB", bytes / 1e9);
    return bytes >= 1e7 ? fmt::format("{:.0f} MB", bytes / 1e6) : fmt::format("{:.1f} MB", bytes / 1e6);
}

std::string rate_text(double bytes_per_s) {
    return size_text(bytes_per_s) + "/s";
}

std::string queue_text(double share) {
    constexpr double kTimes = 2;
    return share < kTimes ? percent_text(share) + " of the time they run"
                          : fmt::format("{:.1f} times as long as they run", share);
}

std::optional<double> queue_share(const RankEvidence& rank) {
    constexpr double kLeast = 0.05, kHardlyRuns = 0.01;  // cores; who neither runs nor wants to says nothing
    const auto wait = rank.mean("run_wait"), cpu = rank.mean("cpu");
    if (!wait || !cpu || std::max(*cpu, *wait) < kLeast) return std::nullopt;
    if (rank.mean("throttled").value_or(0) >= diagnosis_threshold("cpu.throttled_share")) return std::nullopt;
    return *wait / std::max(*cpu, kHardlyRuns);
}

std::optional<double> queued_seconds(const RankEvidence& rank, double step_s) {
    if (const auto told = rank.mean("queued_s")) return told;
    const auto wait = rank.mean("run_wait");
    return wait ? std::optional(*wait * step_s) : std::nullopt;
}

namespace {
constexpr double kCarries = 1.1;  // processors that a rank uses with one thread, with what carries its bytes
bool much_of(const CommonQueue& queue, double step_s) {
    return queue.share >= diagnosis_threshold("cpu.queue_share") &&
           queue.cost_s >= diagnosis_threshold("cpu.queue_least_share") * step_s;
}
}  // namespace

std::optional<CommonQueue> common_queue(const RunEvidence& evidence) {
    std::optional<CommonQueue> common;
    // A quota that stops one rank makes the others wait as well.
    const RankEvidence* throttled = evidence.worst("throttled");
    if (throttled != nullptr && *throttled->mean("throttled") >= diagnosis_threshold("cpu.throttled_share"))
        return std::nullopt;
    const double widest = widest_pool(evidence);
    // What every rank waits in its collectives: of the one that comes last.
    std::optional<double> collectives;
    for (const RankEvidence& rank : evidence.ranks)
        if (const auto each = rank.mean("allreduce_s")) collectives = std::min(collectives.value_or(*each), *each);
    for (const RankEvidence& rank : evidence.ranks) {
        const auto share = queue_share(rank);
        const auto whole = rank.mean("step_s") ? rank.mean("step_s") : rank.mean("compute_s");
        if (!share || !whole || (common && common->share <= *share)) continue;
        // Of the whole step: what its peers queue, it waits for in its collectives. Ready threads hold a step up for no
        // longer than they wait, and by what one of them was kept from computing at least.
        const double part = *share / (1 + *share), waited = *rank.mean("run_wait") * *whole;
        CommonQueue queue{.share = *share, .cost_s = std::min(*whole * part, waited)};
        queue.least_s = std::min(queue.cost_s, rank.mean("compute_s").value_or(*whole) * part);
        queue.most_s = queue.cost_s;
        const double worked = *whole * *rank.mean("cpu");
        // Threads that only carry bytes wait as well, and hold nothing up: what a rank that computes with one thread
        // was kept from is at most what is neither processor time nor waiting for data.
        if (widest <= 1 && worked > 0 && *rank.mean("cpu") <= kCarries)
            queue.cost_s = std::min(queue.cost_s, std::max(0.0, *whole - worked - rank.mean("wait_s").value_or(0)));
        queue.least_s = std::min(queue.least_s, queue.cost_s);
        // Of one that tells what that thread waited the rest can only lie in its collectives. Whether it is much, what
        // is told decides: threads of its libraries may wait all the time and hold nothing up.
        const auto told = widest <= 1 ? rank.mean("queued_s") : std::nullopt;
        if (told) {
            const double most = std::clamp(queue.cost_s, *told, *told + collectives.value_or(0));
            queue.cost_s = queue.least_s = *told;
            queue.most_s = std::max(most, queue.cost_s);
            queue.much = much_of(queue, *whole);
            if (queue.much) queue.cost_s = most;
        } else {
            queue.much = much_of(queue, *whole);
        }
        common = queue;
    }
    return common;
}

bool pools_take_turns(const RunEvidence& evidence) {
    if (lower(evidence.planned.waiting.value_or("")) == "passive") return false;
    const std::vector<PoolWidth> pools = pool_widths(evidence);
    return std::count_if(pools.begin(), pools.end(), [](const PoolWidth& pool) {
               return pool.threads > 1 && (pool.told || pool.variable == kThreadPools[0].variable);
           }) > 1;
}

bool pools_fit(const RunEvidence& evidence) {
    const double widest = widest_pool(evidence);
    // A rank that uses more processors than its pools have threads has threads that nobody told of.
    return evidence.machine_cpus && !pools_take_turns(evidence) &&
           evidence.mean("cpu").value_or(0) <= kCarries * widest &&
           widest * static_cast<double>(evidence.ranks.size()) <= *evidence.machine_cpus;
}

std::optional<double> threads_ready(const RunEvidence& evidence) {
    const auto wait = evidence.mean("run_wait"), cpu = evidence.mean("cpu");
    if (!wait || !cpu) return std::nullopt;
    return (*wait + *cpu) * static_cast<double>(evidence.ranks.size());
}

std::optional<OwnCrowd> own_crowd(const RunEvidence& evidence) {
    constexpr double kOver = 1.25;
    constexpr double kFull = 0.9;
    constexpr double kFill = 0.6;  // they fill the processors themselves: it is not others who keep them
    if (!evidence.machine_cpus) return std::nullopt;
    struct Place {
        int ranks = 0;
        double ready = 0, used = 0;
    };
    std::map<std::pair<int, int>, Place> places;  // by affinity: first processor and how many
    double ready = 0, used = 0;
    for (const RankEvidence& rank : evidence.ranks) {
        if (!queue_share(rank)) continue;
        const double own = *rank.mean("run_wait") + *rank.mean("cpu");
        ready += own;
        used += *rank.mean("cpu");
        const auto allowed = rank.mean("cpus_allowed"), first = rank.mean("first_cpu");
        if (!allowed || !first || *allowed >= *evidence.machine_cpus) continue;
        Place& place = places[{static_cast<int>(*first), static_cast<int>(*allowed)}];
        ++place.ranks;
        place.ready += own;
        place.used += *rank.mean("cpu");
    }
    const double widest = widest_pool(evidence);
    for (const auto& [key, place] : places) {
        const double processors = key.second;
        // One rank is kept on fewer processors than it computes with.
        const bool too_few = place.ranks > 1 || widest > processors;
        // Of more threads than there are processors the pools leave no doubt, however much others take.
        const bool sure = widest * place.ranks > processors, fills = place.used > kFill * processors;
        // A pool that fills all that an affinity leaves it is kept by it, whether its threads queue or merely work
        // less.
        const bool full = sure && place.used >= kFull * processors;
        if (too_few && (full || place.ready > kOver * processors) && (sure || fills))
            return OwnCrowd{
                .ready = place.ready, .processors = processors, .affinity = true, .ranks = place.ranks, .fills = fills};
    }
    // Threads that wait for others' programs are one a rank, or as many as it has processors: more are its own.
    const double ranks = static_cast<double>(evidence.ranks.size()), room = processors_of_rank(evidence);
    const bool sure = widest > room && ready > kOver * room * ranks;
    const bool fills = used >= kFill * *evidence.machine_cpus;
    const double over = pools_fit(evidence) ? kOverWithWorkers : kOver;
    if (ready <= over * *evidence.machine_cpus || (!sure && !fills)) return std::nullopt;
    return OwnCrowd{.ready = ready,
                    .processors = *evidence.machine_cpus,
                    .ranks = static_cast<int>(evidence.ranks.size()),
                    .fills = fills};
}

double OwnCrowd::part_beside(double foreign) const {
    const double too_many = std::max(0.0, ready - processors);
    return fills || !(too_many + foreign > 0) ? 1 : too_many / (too_many + foreign);
}

std::vector<PoolWidth> pool_widths(const RunEvidence& evidence) {
    std::vector<PoolWidth> widths;
    for (const ThreadPoolName& pool : kThreadPools) {
        PoolWidth width{.variable = pool.variable};
        for (const RankEvidence& rank : evidence.ranks)
            if (const auto told = rank.mean(pool.measure)) {
                width.threads = std::max(width.threads, *told);
                width.told = true;
            }
        const auto named = evidence.planned.pools.find(pool.variable);
        if (!width.told && named != evidence.planned.pools.end()) width.threads = named->second;
        if (width.threads > 0) widths.push_back(width);
    }
    return widths;
}

double widest_pool(const RunEvidence& evidence) {
    double widest = 1;
    for (const PoolWidth& pool : pool_widths(evidence)) widest = std::max(widest, pool.threads);
    return widest;
}

double processors_of_rank(const RunEvidence& evidence) {
    double processors = std::max(1.0, evidence.planned.processors.value_or(1));
    if (evidence.machine_cpus && evidence.ranks.size() > 0)
        processors = std::min(processors, *evidence.machine_cpus / static_cast<double>(evidence.ranks.size()));
    for (const char* limit : {"cpu_limit", "cpus_allowed"})
        if (const auto value = evidence.mean(limit); value && *value > 0) processors = std::min(processors, *value);
    return std::max(1.0, processors);
}

std::optional<double> step_beyond_plan(const RunEvidence& evidence) {
    const Planned& planned = evidence.planned;
    const auto step = evidence.step_s();
    if (!planned.step_s || !step) return std::nullopt;
    // Collectives that take longer wait for peers that compute longer; waiting for data has a rule of its own.
    return *step - *planned.step_s - std::max(0.0, evidence.mean("wait_s").value_or(0) - planned.wait_s.value_or(0));
}

EvidenceFigure deciding_figure(std::string name, double value, std::string unit, std::string_view threshold) {
    return {
        .name = std::move(name), .value = value, .unit = std::move(unit), .threshold = diagnosis_threshold(threshold)};
}

EvidenceFigure told_figure(std::string name, double value, std::string unit) {
    return {.name = std::move(name), .value = value, .unit = std::move(unit), .threshold = {}};
}

std::optional<ForeignUse> foreign_use(const RunEvidence& evidence, const RankEvidence* rank) {
    const std::string node = rank == nullptr ? "" : rank->node;
    const auto foreign = evidence.mean_on(node, "foreign_cpu"), cpus = evidence.mean_on(node, "machine_cpus");
    const double processors = cpus.value_or(evidence.machine_cpus.value_or(0));
    if (!foreign || !(processors > 0)) return std::nullopt;
    ForeignUse use{.processors = *foreign,
                   .share = *foreign / processors,
                   .stolen = evidence.mean_on(node, "steal").value_or(0) / processors};
    use.much = use.share >= diagnosis_threshold("neighbour.cpu_share") ||
               use.stolen >= diagnosis_threshold("neighbour.steal_share");
    return use;
}

}  // namespace stoker

#include "observe/collect.h"

#include <algorithm>
#include <cmath>

#include "observe/gpu_source.h"
#include "observe/thresholds.h"

namespace stoker {
namespace {

struct Window {
    double from_s = 0, to_s = 0;
    bool holds(double at_s) const { return at_s >= from_s && at_s < to_s; }
};

// What rules look at over time: of steps while they are steady, of what is told once and for all from the start.
constexpr std::string_view kSteadyCourses[] = {"step_s",       "compute_s", "shortest_s", "longest_s",   "step",
                                               "longest_step", "cpu",       "cpu_s",      "foreign_cpu", "rss"},
                           kWholeCourses[] = {"not_finite", "gpu_xid", "gpu_lost", "gpu_ecc_uncorrected",
                                              "gpu_remap_pending"};

template <std::size_t N>
bool among(const std::string_view (&names)[N], std::string_view name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

Course course_within(const RankSeries& series, const Window& window) {
    Course course;
    for (const SeriesPoint& point : series.points)
        if (window.holds(static_cast<double>(point.at_s)))
            course.push_back({.at_s = static_cast<double>(point.at_s),
                              .min = point.min,
                              .mean = point.mean,
                              .max = point.max,
                              .count = static_cast<double>(point.count)});
    return course;
}

MeasureSpread spread_within(const RankSeries& series, const Window& window, bool smallest) {
    std::vector<std::pair<double, double>> values;
    for (const SeriesPoint& point : series.points)
        if (window.holds(static_cast<double>(point.at_s)))
            values.emplace_back(smallest ? point.min : point.mean, point.count);
    return weighted_spread(std::move(values));
}

// What is counted as steps, where nobody tells them: a program that begins to tell them later is not inferred any more.
std::optional<CountedUnit> counted_unit(const std::vector<RankSeries>& series, const RankSeries& steps) {
    for (const RankSeries& each : series) {
        if (each.metric != "inferred" || each.rank != steps.rank || each.points.empty()) continue;
        const std::int64_t middle = (steps.points.front().at_s + steps.points.back().at_s) / 2;
        const long unit = std::lround(static_cast<double>(each.points.back().mean));
        if (each.points.back().at_s >= middle && unit >= 1 && unit <= static_cast<long>(CountedUnit::event))
            return static_cast<CountedUnit>(unit);
    }
    return std::nullopt;
}

// The rank whose steps decide what the steady state is: the first that tells of them.
const RankSeries* steps_of(const std::vector<RankSeries>& series) {
    for (const RankSeries& each : series)
        if (each.metric == "step_s" && !each.points.empty()) return &each;
    return nullptr;
}

// Leading points are left out while they are slower than the later half by a factor, and the first one always where
// there are some: it holds the very first steps. At most half of the steps go that way.
std::optional<SteadyState> find_steady(const RankSeries& steps) {
    const double least = diagnosis_threshold("steady.least_steps"), factor = diagnosis_threshold("warmup.factor");
    double total = 0, time = 0;
    for (const SeriesPoint& point : steps.points) {
        total += point.count;
        time += point.count * static_cast<double>(point.mean);
    }
    if (total < least) return std::nullopt;
    std::vector<std::pair<double, double>> later;
    double passed = 0;
    for (const SeriesPoint& point : steps.points) {
        passed += point.count;
        if (2 * passed > total) later.emplace_back(point.mean, point.count);
    }
    const double usual = weighted_spread(std::move(later)).median;
    SteadyState steady{.all_step_s = time / total};
    std::size_t first = 0;
    while (first + 1 < steps.points.size()) {
        const SeriesPoint& point = steps.points[first];
        const bool slow = point.mean > factor * usual || (first == 0 && steps.points.size() >= 4);
        if (!slow || steady.warm_up_steps + point.count > total / 2) break;
        steady.warm_up_steps += point.count;
        steady.warm_up_s += point.count * static_cast<double>(point.mean);
        ++first;
    }
    steady.steps = total - steady.warm_up_steps;
    if (steady.steps < least) return std::nullopt;
    steady.from_s = static_cast<double>(steps.points[first].at_s);
    steady.to_s = static_cast<double>(steps.points.back().at_s + steps.seconds);
    return steady;
}

// A line may tell several steps, as a bar does that is drawn ten times a second: their numbers say how many there were.
void count_by_number(const std::vector<RankSeries>& series, int rank, SteadyState& steady) {
    for (const RankSeries& numbers : series) {
        if (numbers.metric != "step" || numbers.rank != rank) continue;
        std::optional<double> first, before, last;
        for (const SeriesPoint& point : numbers.points) {
            const auto at_s = static_cast<double>(point.at_s);
            if (!first) first = point.min;
            if (at_s < steady.from_s) before = point.max;
            if (at_s < steady.to_s) last = point.max;
        }
        if (!before || !last) return;
        const double counted = *last - *before, warm_up = *before - *first;
        if (counted <= steady.steps || warm_up < 0) return;  // it began anew, or each line is one
        steady.warm_up_s *= steady.warm_up_steps > 0 ? std::max(1.0, warm_up / steady.warm_up_steps) : 1;
        steady.warm_up_steps = std::max(steady.warm_up_steps, warm_up);
        steady.steps = counted;
    }
}

// Looked at every few seconds only (SampleOptions::threads_every): a value tells of the time before it.
bool looks_back(std::string_view metric) {
    return metric == "run_wait" || metric == "switches" || metric == "preempted";
}

RankEvidence& rank_of(std::vector<RankEvidence>& ranks, int rank) {
    for (RankEvidence& each : ranks)
        if (each.rank == rank) return each;
    return ranks.emplace_back(RankEvidence{.rank = rank, .measures = {}, .afterwards = {}});
}

}  // namespace

const std::vector<std::string>& evidence_measures() {
    static const std::vector<std::string> names = {"step_s",
                                                   "compute_s",
                                                   "wait_s",
                                                   "allreduce_s",
                                                   "checkpoint_s",
                                                   "cpu",
                                                   "run_wait",
                                                   "throttled",
                                                   "cpu_limit",
                                                   "cpus_allowed",
                                                   "first_cpu",
                                                   "foreign_cpu",
                                                   "steal",
                                                   "machine_cpus",
                                                   "threads",
                                                   "processes",
                                                   "major_faults",
                                                   "swap",
                                                   "memory_used",
                                                   "memory_limit",
                                                   "limit_hits",
                                                   "peak_rss",
                                                   "disk_read",
                                                   "disk_write",
                                                   "disk_free",
                                                   "read_calls",
                                                   "call_read",
                                                   "blocked",
                                                   "stopped",
                                                   "net_loopback",
                                                   "net_sent",
                                                   "net_named",
                                                   "tokens",
                                                   "samples",
                                                   "param_bits",
                                                   "autocast_bits",
                                                   "recomputed",
                                                   "recompute_s",
                                                   "compiled",
                                                   "torch_threads",
                                                   "workers",
                                                   "tokens_per_s",
                                                   "rss",
                                                   "step",
                                                   "not_finite",
                                                   "gc_s",
                                                   "queued_s",
                                                   "cpu_s",
                                                   "shortest_s",
                                                   "longest_s",
                                                   "longest_step",
                                                   "sync_s",
                                                   "openblas_threads",
                                                   "mkl_threads",
                                                   "blis_threads",
                                                   "numexpr_threads",
                                                   "interop_threads",
                                                   "inferred",
                                                   "rhythm_s",
                                                   "rhythm_beats"};
    static const std::vector<std::string> with_devices = [] {
        std::vector<std::string> all = names;
        for (const char* name : {"ib_ports", "ib_bytes", "cuda_reserved", "cuda_peak", "cuda_retries", "cuda_size"})
            all.emplace_back(name);
        for (const GpuMeasure& each : gpu_measures()) all.emplace_back(each.name);
        return all;
    }();
    return with_devices;
}

void name_nodes(RunEvidence& evidence, const std::vector<std::string>& node_of_rank) {
    const bool several = std::any_of(node_of_rank.begin(), node_of_rank.end(),
                                     [&](const std::string& node) { return node != node_of_rank.front(); });
    if (!several) return;
    for (RankEvidence& each : evidence.ranks)
        if (each.rank >= 0 && static_cast<std::size_t>(each.rank) < node_of_rank.size())
            each.node = node_of_rank[static_cast<std::size_t>(each.rank)];
}

RunEvidence collect_evidence(const std::vector<RankSeries>& series, Planned planned, const RunTimes& times) {
    RunEvidence evidence;
    evidence.planned = std::move(planned);
    const RankSeries* steps = steps_of(series);
    if (steps != nullptr) {
        evidence.steady = find_steady(*steps);
        if (evidence.steady) count_by_number(series, steps->rank, *evidence.steady);
        evidence.counted = counted_unit(series, *steps);
        for (std::size_t i = 1; i < steps->points.size(); ++i)
            evidence.told_apart_s =
                std::max(evidence.told_apart_s, static_cast<double>(steps->points[i].at_s - steps->points[i - 1].at_s));
    }
    const Window all{times.from_s, times.to_s + 1};
    Window steady = all;
    if (evidence.steady) steady = {evidence.steady->from_s, evidence.steady->to_s};
    double last_step_s = 0;
    for (const RankSeries& each : series) {
        if (each.points.empty()) continue;
        RankEvidence& rank = rank_of(evidence.ranks, each.rank);
        const bool of_steps = each.metric == "step_s";
        if (of_steps) {
            for (const SeriesPoint& point : each.points) rank.steps += point.count;
            last_step_s = std::max(last_step_s, static_cast<double>(each.points.back().at_s + each.seconds));
        }
        // Without a steady state no step time is told: it would be that of the first steps.
        if (of_steps && !evidence.steady) continue;
        Window window = steady;
        if (looks_back(each.metric)) window.from_s += std::min(4.0, (window.to_s - window.from_s) / 3);
        MeasureSpread spread = spread_within(each, window, false);
        // What was waited before the first step or since the last says nothing of steps.
        if (spread.count == 0 && !looks_back(each.metric)) spread = spread_within(each, all, false);
        if (spread.count == 0) continue;
        rank.measures[each.metric] = spread;
        if (each.metric == "allreduce_s") rank.measures["allreduce_min_s"] = spread_within(each, window, true);
        if (each.metric == "step")
            for (const SeriesPoint& point : each.points)
                evidence.last_step = std::max(evidence.last_step.value_or(0), static_cast<double>(point.max));
        if (among(kSteadyCourses, each.metric)) rank.courses[each.metric] = course_within(each, window);
        if (among(kWholeCourses, each.metric)) rank.courses[each.metric] = course_within(each, all);
    }
    std::sort(evidence.ranks.begin(), evidence.ranks.end(),
              [](const RankEvidence& a, const RankEvidence& b) { return a.rank < b.rank; });
    if (times.done) evidence.done_after_s = times.to_s - times.from_s;
    if (times.expects_steps && last_step_s > 0 && times.to_s > last_step_s) {
        evidence.silent_s = times.to_s - last_step_s;
        // The second after the last step still holds some of its work.
        const Window after{last_step_s + 1, times.to_s + 1};
        for (const RankSeries& each : series) {
            const MeasureSpread spread = spread_within(each, after, false);
            if (spread.count > 0) rank_of(evidence.ranks, each.rank).afterwards[each.metric] = spread;
        }
    }
    if (const auto cpus = evidence.mean("machine_cpus")) evidence.machine_cpus = *cpus;
    return evidence;
}

}  // namespace stoker

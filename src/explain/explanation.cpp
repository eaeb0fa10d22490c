#include "explain/explanation.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "base/thread_pools.h"
#include "explain/blame.h"
#include "observe/diagnosis.h"
#include "observe/rhythm.h"
#include "run/spec/run_folder.h"
#include "run/state/rules.h"
#include "sizing/terms.h"

namespace stoker {
namespace {

constexpr std::int64_t kMostLookedAtUs = 3600 * kSecondUs;  // as long as seconds are kept
constexpr std::size_t kMostJudgedPoints = 1'000'000;

double in_seconds(std::int64_t us) {
    return static_cast<double>(us) / 1e6;
}

PlanVerdict verdict_of(double measured, double low, double high) {
    if (!(high > 0)) return PlanVerdict::none;
    return measured < low ? PlanVerdict::below : measured > high ? PlanVerdict::above : PlanVerdict::inside;
}

bool is_outside(const HeldTerm& term) {
    return term.verdict == PlanVerdict::above || term.verdict == PlanVerdict::below;
}

HeldTerm held(HeldTermKind kind, std::optional<double> measured, double predicted, double low, double high) {
    HeldTerm out{.kind = kind, .measured = measured};
    if (predicted > 0) out.predicted = predicted;
    if (high > 0) {
        out.low = low;
        out.high = high;
        if (measured) out.verdict = verdict_of(*measured, low, high);
    }
    return out;
}

// Terms of another version of the planner are in no group: they are of the step and of nothing else.
double planned_seconds(const PredictionSpec& plan, TermGroup group) {
    double sum = 0;
    for (const PredictedTerm& each : plan.step_terms)
        if (const auto term = find_time_term(each.id); term && group_of(*term) == group) sum += each.seconds;
    return sum;
}

std::optional<double> number_in(const std::map<std::string, std::string>& environment, const char* name) {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    const double value = std::strtod(found->second.c_str(), nullptr);
    return value > 0 && value < 1e6 ? std::optional(value) : std::nullopt;
}

std::optional<double> peak_memory(const Run& run, const RunEvidence& evidence) {
    double peak = 0;
    if (!run.attempts.empty())
        for (const RankStatus& rank : run.attempts.back().ranks)
            peak = std::max(peak, static_cast<double>(rank.peak_memory_bytes));
    // Of one that runs: the largest so far. Shared pages count in each process of the rank, so it is less exact.
    if (!(peak > 0))
        for (const RankEvidence& rank : evidence.ranks)
            if (const MeasureSpread* each = rank.find("peak_rss")) peak = std::max(peak, each->high);
    return peak > 0 ? std::optional(peak) : std::nullopt;
}

// When its ranks began to run, else when it was made.
std::int64_t began_us(const Attempt& attempt) {
    return attempt.running_us != 0 ? attempt.running_us : attempt.created_us;
}

// What attempts before the last one took, and how much of it the next one went on from.
struct EarlyEnds {
    int attempts = 0;
    double seconds = 0;                      // of them
    double kept_s = 0;                       // of those, at the pace of the last attempt
    std::map<std::string, double> by_cause;  // seconds
    double lost_s() const { return std::max(0.0, seconds - kept_s); }
};

EarlyEnds early_ends(const Run& run, std::optional<double> step_s) {
    EarlyEnds out;
    for (std::size_t i = 0; i + 1 < run.attempts.size(); ++i) {
        const Attempt& attempt = run.attempts[i];
        const double took = attempt.ended_us == 0 ? 0 : std::max(0.0, in_seconds(attempt.ended_us - began_us(attempt)));
        ++out.attempts;
        out.seconds += took;
        out.by_cause[std::string(to_string(attempt.cause))] += took;
        const auto steps = static_cast<double>(run.attempts[i + 1].resume_step - attempt.resume_step);
        out.kept_s += std::min(took, std::max(0.0, steps) * step_s.value_or(0));
    }
    return out;
}

std::string early_ends_text(const EarlyEnds& ends, std::int64_t resumed_from, bool fits_without) {
    std::string causes;
    for (const auto& [cause, seconds] : ends.by_cause)
        causes += fmt::format("{}{} {:.1f} s", causes.empty() ? "" : ", ", cause, seconds);
    std::string text = fmt::format("{:.1f} s of it went to {} attempt{} that ended early ({})", ends.seconds,
                                   ends.attempts, ends.attempts == 1 ? "" : "s", causes);
    if (resumed_from > 0)
        text += fmt::format("; the last went on from step {}, so {:.1f} s were done again or lost", resumed_from,
                            ends.lost_s());
    else
        text += "; the last began anew";
    if (fits_without) text += "; without them it is inside";
    return text;
}

// Steps and what they are made of.
void add_step_terms(const PredictionSpec& plan, const RunEvidence& evidence, ExplainedRun& out) {
    HeldTerm step = held(HeldTermKind::step, evidence.step_s(), plan.step_s, plan.step_low_s, plan.step_high_s);
    const bool any = std::any_of(evidence.ranks.begin(), evidence.ranks.end(),
                                 [](const RankEvidence& rank) { return rank.steps > 0; });
    if (!step.measured)
        step.note = any ? "too few steps after the first ones"
                        : "no step times: see stoker_torch, or observe: in the run section";
    out.terms.push_back(std::move(step));
    const auto part = [&](HeldTermKind kind, const char* measure, std::optional<double> predicted) {
        const auto measured = evidence.step_s() ? evidence.mean(measure) : std::nullopt;
        if (measured || predicted.value_or(0) > 0)
            out.terms.push_back(held(kind, measured, predicted.value_or(0), 0, 0));
    };
    const Planned& planned = evidence.planned;
    std::optional<double> compute;
    if (planned.step_s)
        compute = std::max(0.0, *planned.step_s - planned.wait_s.value_or(0) - planned.collectives_s.value_or(0));
    part(HeldTermKind::compute, "compute_s", compute);
    part(HeldTermKind::input, "wait_s", planned.wait_s);
    part(HeldTermKind::collectives, "allreduce_s", planned.collectives_s);
    if (planned.checkpoints || evidence.mean("checkpoint_s").value_or(0) > 0)
        part(HeldTermKind::checkpoints, "checkpoint_s", std::nullopt);
}

// What the whole run took and cost. A plan is one of a run that nothing ends early: where earlier attempts explain what
// it took beyond, neither term puts it outside.
void add_whole_terms(const RunAsItStands& look, const PredictionSpec& plan, const RunEvidence& evidence,
                     ExplainedRun& out) {
    const bool whole = look.run.state == RunState::succeeded;
    const double used_s = in_seconds(used_us(look.run, look.now_us));
    const EarlyEnds ends = early_ends(look.run, evidence.step_s());
    bool restarts_explain = false;
    const auto add = [&](HeldTerm term) {
        const bool explained = restarts_explain && term.verdict == PlanVerdict::above;
        out.outside = out.outside || (is_outside(term) && !explained);
        out.terms.push_back(std::move(term));
    };
    if (used_s > 0) {
        HeldTerm time = held(HeldTermKind::time, used_s, plan.run_s, plan.run_low_s, plan.run_high_s);
        if (!whole) time.verdict = PlanVerdict::none;
        restarts_explain = time.verdict == PlanVerdict::above && used_s - ends.lost_s() <= plan.run_high_s;
        if (ends.attempts > 0)
            time.note = early_ends_text(ends, look.run.attempts.back().resume_step, restarts_explain);
        add(std::move(time));
    }
    // Of a run that was priced only where it ran: its own rate, for the time that was predicted.
    const double cost = static_cast<double>(look.cost_microusd.value_or(0));
    double predicted = static_cast<double>(plan.cost_microusd);
    if (!(predicted > 0) && used_s > 0) predicted = cost * plan.run_s / used_s;
    if (look.cost_microusd || predicted > 0) {
        const double low = plan.run_s > 0 ? plan.run_low_s / plan.run_s : 0,
                     high = plan.run_s > 0 ? plan.run_high_s / plan.run_s : 0;
        HeldTerm money = held(HeldTermKind::cost, look.cost_microusd ? std::optional(cost) : std::nullopt, predicted,
                              predicted * low, predicted * high);
        if (!whole) money.verdict = PlanVerdict::none;
        if (!look.cost_microusd) money.note = "nothing is counted without a price book (stoker up --prices)";
        add(std::move(money));
    }
}

// Of one board of a rank: what the allocator of the program counts, else what the driver says is in use.
std::optional<double> gpu_memory_of(const RankEvidence& rank) {
    if (const MeasureSpread* peak = rank.find("cuda_peak"); peak != nullptr && peak->high > 0) return peak->high;
    const MeasureSpread* used = rank.find("gpu_memory");
    const double count = std::round(rank.mean("gpu_count").value_or(0));
    return used != nullptr && used->high > 0 && count > 0 ? std::optional(used->high / count) : std::nullopt;
}

std::optional<double> gpu_size_of(const RankEvidence& rank) {
    if (const auto size = rank.mean("cuda_size"); size && *size > 0) return size;
    const auto sum = rank.mean("gpu_memory_size"), count = rank.mean("gpu_count");
    return sum && *sum > 0 && count && std::round(*count) > 0 ? std::optional(*sum / std::round(*count)) : std::nullopt;
}

const RankEvidence* fullest_gpu(const RunEvidence& evidence) {
    const RankEvidence* fullest = nullptr;
    for (const RankEvidence& rank : evidence.ranks)
        if (const auto memory = gpu_memory_of(rank);
            memory && (fullest == nullptr || *memory > gpu_memory_of(*fullest).value_or(0)))
            fullest = &rank;
    return fullest;
}

// A limit of power is set in round figures, and series keep it to a hundredth.
std::optional<double> round_watts(std::optional<double> watts) {
    return !watts || *watts < 200 ? watts : std::optional(10 * std::round(*watts / 10));
}

std::optional<GpuUse> gpu_use_of(const RunEvidence& evidence) {
    double count = 0, power = 0, limit = 0;
    for (const RankEvidence& rank : evidence.ranks) {
        // Seconds in which a rank had not opened its board yet make the mean no whole number.
        count += std::round(rank.mean("gpu_count").value_or(0));
        power += rank.mean("gpu_power").value_or(0);
        limit += rank.mean("gpu_power_limit").value_or(0);
    }
    if (!(count > 0)) return std::nullopt;
    const auto of_one = [&](double sum) { return sum > 0 ? std::optional(sum / count) : std::nullopt; };
    GpuUse use{.count = static_cast<int>(std::lround(count)),
               .busy_share = evidence.mean("gpu_sm"),
               .tensor_share = evidence.mean("gpu_tensor"),
               .bandwidth_share = evidence.mean("gpu_dram"),
               .power_w = of_one(power),
               .power_limit_w = round_watts(of_one(limit))};
    if (!use.busy_share) use.busy_share = evidence.mean("gpu_util");
    if (const RankEvidence* rank = fullest_gpu(evidence)) {
        use.memory_size_bytes = gpu_size_of(*rank);
        if (const MeasureSpread* reserved = rank->find("cuda_reserved"); reserved != nullptr && reserved->high > 0)
            use.memory_held_bytes = reserved->high;
    }
    return use;
}

void add_terms(const RunAsItStands& look, const RunEvidence& evidence, ExplainedRun& out) {
    const PredictionSpec none;
    const PredictionSpec& plan = look.run.spec.prediction ? *look.run.spec.prediction : none;
    add_step_terms(plan, evidence, out);
    // What a plan of ranks with GPUs says of memory is said of the boards'.
    const auto add_memory = [&](HeldTermKind kind, std::optional<double> measured, bool planned) {
        out.terms.push_back(held(kind, measured, planned ? static_cast<double>(plan.memory_bytes) : 0,
                                 planned ? static_cast<double>(plan.memory_low_bytes) : 0,
                                 planned ? static_cast<double>(plan.memory_high_bytes) : 0));
    };
    const RankEvidence* fullest = fullest_gpu(evidence);
    const bool on_gpus = evidence.planned.devices || fullest != nullptr;
    if (fullest != nullptr || (on_gpus && plan.memory_bytes > 0))
        add_memory(HeldTermKind::gpu_memory, fullest != nullptr ? gpu_memory_of(*fullest) : std::nullopt, true);
    add_memory(HeldTermKind::memory, peak_memory(look.run, evidence), !on_gpus);
    out.gpu = gpu_use_of(evidence);
    for (const HeldTerm& each : out.terms) out.outside = out.outside || is_outside(each);
    add_whole_terms(look, plan, evidence, out);
}

void add_diagnoses(const RunEvidence& evidence, ExplainedRun& out) {
    const double step = evidence.step_s().value_or(0);
    const Diagnoses all = diagnose(evidence);
    const double longer = evidence.planned.step_s ? step - *evidence.planned.step_s : 0;
    for (const Diagnosis& each : all.found) {
        ToldDiagnosis told{.name = std::string(each.name()),
                           .what = each.what,
                           .evidence = each.evidence,
                           .cost_s = each.cost_s,
                           .cost_range = each.cost_range,
                           .share_of_gap = std::nullopt,
                           .expected_gain = 0,
                           .fix = each.fix,
                           .rank = each.rank,
                           .node = each.rank ? evidence.node_of(*each.rank) : "",
                           .stops = each.stops,
                           .figures = each.figures,
                           .spans = each.spans};
        const CostLies cost = each.rule->cost;
        told.in_step = cost == CostLies::within_step;
        if (!each.stops && cost != CostLies::before_steady) {
            if (longer > 0 && each.cost_s > 0 && cost != CostLies::at_most)
                told.share_of_gap = std::min(1.0, each.cost_s / longer);
            const double whole = cost == CostLies::beside_step ? step + each.cost_s : std::max(step, each.cost_s);
            if (step > 0) told.expected_gain = std::min(0.99, each.cost_s / whole);
        }
        out.diagnoses.push_back(std::move(told));
    }
    for (const auto& [name, reason] : all.ruled_out) out.ruled_out.push_back({std::string(name), reason});
    for (const auto& [name, reason] : all.not_known) out.not_known.push_back({std::string(name), reason});
}

// What a program counts in its output need not be what the plan calls a step, but where it ends at the planned number.
bool steps_are_inferred(const RunEvidence& evidence) {
    if (!evidence.counted) return false;
    const auto planned = evidence.planned.steps;
    constexpr double kAlike = 0.1;
    return !(planned && evidence.last_step && std::abs(*evidence.last_step / *planned - 1) <= kAlike);
}

void forget_planned_step(Planned& planned) {
    planned.step_s = planned.step_low_s = planned.step_high_s = planned.wait_s = planned.collectives_s = std::nullopt;
    planned.tokens = planned.samples = planned.steps = std::nullopt;
}

void tell_inferred(CountedUnit unit, ExplainedRun& out) {
    HeldTerm& step = out.terms.front();
    step.verdict = PlanVerdict::none;
    if (!step.measured) return;
    const char* what = unit == CountedUnit::bar      ? "what its progress bar counts"
                       : unit == CountedUnit::epoch  ? "the epochs that its output counts"
                       : unit == CountedUnit::report ? "the lines of its output that tell a loss"
                       : unit == CountedUnit::event  ? "what its tracker has written"
                                                     : "the steps that its output counts";
    step.note = fmt::format("inferred from {}{}", what,
                            step.predicted ? "; observe: {step_pattern: ...} holds them against the plan" : "");
    out.outside = std::any_of(out.terms.begin(), out.terms.end(), is_outside);
}

// Of a program that tells no steps. No verdict and no cause is built on it.
void add_inferred(const std::vector<RankSeries>& series, HeldTerm& step) {
    const bool told = std::any_of(series.begin(), series.end(), [](const RankSeries& each) {
        return (each.metric == "step_s" || each.metric == "step") && !each.points.empty();
    });
    if (told) return;
    // Of fourteen seconds looked at closely, else of all seconds.
    const auto newest = [&](std::string_view metric) {
        for (const RankSeries& each : series)
            if (each.metric == metric && !each.points.empty()) return std::optional(double{each.points.back().mean});
        return std::optional<double>();
    };
    if (const auto period = newest("rhythm_s")) {
        step.measured = period;
        step.note =
            fmt::format("inferred: what rank 0 does came back {:.0f} times after so long, a step or a cycle of them",
                        newest("rhythm_beats").value_or(0));
        return;
    }
    if (const auto rhythm = rhythm_of(series))
        step.note = fmt::format(
            "what rank {} does ({}) comes back every {:.1f} s, {:.0f} times: inferred, a step or a cycle of them; {}",
            rhythm->rank, rhythm->measure, rhythm->period_s, rhythm->beats, step.note);
}

// As coarse as the widest look at it needs; a part holds the mean of the steps that ended in it.
ExplainedTimeline timeline_of(const std::vector<RankSeries>& series) {
    constexpr std::int64_t kMostParts = 96;
    const auto steps = std::find_if(series.begin(), series.end(), [](const RankSeries& each) {
        return each.metric == "step_s" && !each.points.empty();
    });
    ExplainedTimeline out;
    if (steps == series.end()) return out;
    const std::int64_t finest = std::max<std::int64_t>(1, steps->seconds);
    const std::int64_t seconds = steps->points.back().at_s + finest - steps->points.front().at_s;
    out.rank = steps->rank;
    out.from_s = steps->points.front().at_s;
    out.each_s = finest * std::max<std::int64_t>(1, (seconds + finest * kMostParts - 1) / (finest * kMostParts));
    const auto parts = static_cast<std::size_t>((seconds + out.each_s - 1) / out.each_s);
    const auto fill = [&](std::string_view metric, bool largest) {
        std::vector<double> values(parts, 0), counts(parts, 0);
        for (const RankSeries& each : series) {
            if (each.rank != out.rank || each.metric != metric) continue;
            for (const SeriesPoint& point : each.points) {
                if (point.at_s < out.from_s || !(point.count > 0)) continue;
                const auto part = static_cast<std::size_t>((point.at_s - out.from_s) / out.each_s);
                if (part >= parts) continue;
                if (largest)
                    values[part] = std::max(values[part], static_cast<double>(point.max));
                else
                    values[part] += static_cast<double>(point.mean) * point.count;
                counts[part] += point.count;
            }
        }
        bool any = false;
        for (std::size_t i = 0; i < parts; ++i) {
            if (!largest && counts[i] > 0) values[i] /= counts[i];
            values[i] = std::round(values[i] * 1e6) / 1e6;
            any = any || values[i] > 0;
        }
        return any ? values : std::vector<double>();
    };
    out.step_s = fill("step_s", false);
    out.longest_s = fill("longest_s", true);
    out.wait_s = fill("wait_s", false);
    out.allreduce_s = fill("allreduce_s", false);
    out.checkpoint_s = fill("checkpoint_s", false);
    return out;
}

}  // namespace

std::string_view unit_of(HeldTermKind kind) {
    if (kind == HeldTermKind::memory || kind == HeldTermKind::gpu_memory) return "bytes";
    return kind == HeldTermKind::cost ? "microusd" : "s";
}

ExplainedPart explained_part(const Run& run, std::int64_t now_us) {
    ExplainedPart part{.from_us = now_us, .to_us = now_us, .ended = is_terminal(run.state)};
    if (run.attempts.empty()) return part;
    const Attempt& last = run.attempts.back();
    part.attempt = {run.id, last.number};
    if (began_us(last) != 0) part.from_us = began_us(last);
    if (last.ended_us != 0)
        part.to_us = last.ended_us;
    else if (part.ended && run.ended_us != 0)
        part.to_us = run.ended_us;
    part.from_us = std::max(part.from_us, part.to_us - kMostLookedAtUs);
    return part;
}

Planned planned_of(const RunSpec& spec) {
    Planned planned;
    planned.devices = spec.per_rank.gpus > 0;
    planned.processors = static_cast<double>(spec.per_rank.cpu_milli) / 1000;
    const auto environment = thread_pool_environment(planned_threads(spec.per_rank.cpu_milli, spec.per_rank.gpus),
                                                     spec.per_rank.gpus, spec.environment);
    for (const ThreadPoolName& pool : kThreadPools)
        if (const auto threads = number_in(environment, std::string(pool.variable).c_str()))
            planned.pools[std::string(pool.variable)] = *threads;
    if (const auto policy = environment.find("OMP_WAIT_POLICY"); policy != environment.end())
        planned.waiting = printable(policy->second, 20);
    planned.checkpoints = !spec.checkpoint.folder.empty();
    planned.interface = printable(named_interface(spec), 60);
    if (!spec.prediction) return planned;
    const PredictionSpec& plan = *spec.prediction;
    const auto known = [](double value) { return value > 0 ? std::optional(value) : std::nullopt; };
    planned.step_s = known(plan.step_s);
    planned.step_low_s = known(plan.step_low_s);
    planned.step_high_s = known(plan.step_high_s);
    planned.wait_s = planned_seconds(plan, TermGroup::input);
    planned.collectives_s = planned_seconds(plan, TermGroup::exchange);
    planned.memory_bytes = known(static_cast<double>(plan.memory_bytes));
    if (plan.tokens_per_step > 0 && spec.ranks > 0) planned.tokens = plan.tokens_per_step / spec.ranks;
    if (plan.samples_per_step && spec.ranks > 0) planned.samples = *plan.samples_per_step / spec.ranks;
    planned.precision_bits = plan.precision_bits;
    planned.recompute = plan.recompute;
    planned.compiled = plan.compiled;
    return planned;
}

ExplainedRun explain_run(const RunAsItStands& look, const ExplainedPart& part, const std::vector<RankSeries>& series) {
    const Run& run = look.run;
    ExplainedRun out{.run = run.id, .state = run.state, .cause = run.cause, .attempt = part.attempt};
    out.from_us = part.from_us;
    out.to_us = part.to_us;
    const bool unfinished = run.state != RunState::succeeded && !run.attempts.empty();
    Planned planned = planned_of(run.spec);
    // An attempt that went on from another's checkpoint did the rest; a long run is looked at from its middle on.
    const bool whole =
        run.state == RunState::succeeded && run.attempts.size() == 1 && part.from_us == began_us(run.attempts.front());
    if (whole && run.spec.prediction && run.spec.prediction->steps > 0) {
        planned.steps = run.spec.prediction->steps;
        planned.run_low_s = run.spec.prediction->run_low_s;
    }
    RunEvidence evidence = collect_evidence(series, std::move(planned),
                                            {.from_s = in_seconds(part.from_us),
                                             .to_s = in_seconds(part.to_us),
                                             .expects_steps = unfinished,
                                             .done = whole});
    const bool inferred = steps_are_inferred(evidence);
    if (inferred) forget_planned_step(evidence.planned);
    if (const Attempt* attempt = run.attempts.empty() ? nullptr : &run.attempts.back())
        name_nodes(evidence, nodes_of_ranks(*attempt));
    for (const RankSeries& each : series) out.point_s = std::max(out.point_s, each.seconds);
    if (evidence.steady) {
        out.steps = evidence.steady->steps;
        out.warm_up_steps = evidence.steady->warm_up_steps;
    }
    add_terms(look, evidence, out);
    if (inferred) tell_inferred(*evidence.counted, out);
    const auto step = evidence.step_s();
    if (step && !out.terms.empty() && is_outside(out.terms.front())) out.gap_s = *step - *evidence.planned.step_s;
    if (!out.terms.empty() && !out.terms.front().measured) add_inferred(series, out.terms.front());
    add_diagnoses(evidence, out);
    if (out.gap_s) {
        double told = 0;
        for (const ToldDiagnosis& each : out.diagnoses)
            told += each.expected_gain > 0 && each.in_step ? each.cost_s : 0;
        out.unexplained_s = *out.gap_s - told;
    }
    out.timeline = timeline_of(series);
    return out;
}

Result<std::vector<RankSeries>> series_of_part(SeriesStore& store, const Run& run, const ExplainedPart& part) {
    if (part.to_us <= part.from_us) return std::vector<RankSeries>();
    SeriesQuery query{.run = run.id.text(), .metrics = evidence_measures(), .rank = {}};
    query.from_s = part.from_us / kSecondUs;
    // What a rank wrote last is read when it has gone.
    query.to_s = part.to_us / kSecondUs + 2;
    const std::size_t columns = static_cast<std::size_t>(std::max(1, run.spec.ranks)) * evidence_measures().size();
    query.max_points = std::clamp<std::size_t>(kMostJudgedPoints / columns, 60, 3602);
    return store.query(query);
}

}  // namespace stoker

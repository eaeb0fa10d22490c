#include "app/server/explanation.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "app/server/api_time.h"
#include "base/document.h"
#include "base/json.h"
#include "base/text.h"
#include "run/codec.h"

namespace stoker::api {
namespace {

constexpr double kMostLookedAt = 3600;  // seconds: as long as seconds are kept
constexpr std::size_t kMostJudgedPoints = 1'000'000;

double seconds_at(const std::string& time, double otherwise) {
    const auto us = parse_rfc3339(time);
    return us ? static_cast<double>(*us) / 1e6 : otherwise;
}

std::string verdict_of(double measured, double low, double high) {
    if (!(high > 0)) return "";
    return measured < low ? "below" : measured > high ? "above" : "inside";
}

ExplainedTerm term(std::string name, std::string unit, std::optional<double> measured, double predicted, double low,
                   double high) {
    ExplainedTerm out{.term = std::move(name), .unit = std::move(unit), .measured = measured};
    if (predicted > 0) out.predicted = predicted;
    if (high > 0) {
        out.low = low;
        out.high = high;
        if (measured) out.verdict = verdict_of(*measured, low, high);
    }
    return out;
}

double planned_seconds(const PredictionSpec& plan, std::initializer_list<std::string_view> names) {
    double sum = 0;
    for (const PredictedTerm& each : plan.step_terms)
        if (std::find(names.begin(), names.end(), each.name) != names.end()) sum += each.seconds;
    return sum;
}

std::optional<double> number_in(const std::map<std::string, std::string>& environment, const char* name) {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    const double value = std::strtod(found->second.c_str(), nullptr);
    return value > 0 && value < 1e6 ? std::optional(value) : std::nullopt;
}

std::optional<double> peak_memory(const RunView& view, const Evidence& evidence) {
    double peak = 0;
    if (!view.attempts.empty())
        for (const RankView& rank : view.attempts.back().ranks)
            peak = std::max(peak, static_cast<double>(rank.peak_memory_bytes));
    // Of one that runs: the largest so far. Shared pages count in each process of the rank, so it is less exact.
    if (!(peak > 0))
        for (const RankEvidence& rank : evidence.ranks)
            if (const MeasureSpread* each = rank.find("peak_rss")) peak = std::max(peak, each->high);
    return peak > 0 ? std::optional(peak) : std::nullopt;
}

// What attempts before the last one took, and how much of it the next one went on from.
struct EarlyEnds {
    int attempts = 0;
    double seconds = 0;                      // of them
    double kept_s = 0;                       // of those, at the pace of the last attempt
    std::map<std::string, double> by_cause;  // seconds
    double lost_s() const { return std::max(0.0, seconds - kept_s); }
};

EarlyEnds early_ends(const RunView& view, std::optional<double> step_s) {
    EarlyEnds out;
    for (std::size_t i = 0; i + 1 < view.attempts.size(); ++i) {
        const AttemptView& attempt = view.attempts[i];
        const double from = seconds_at(attempt.running_at, seconds_at(attempt.created_at, 0));
        const double took = std::max(0.0, seconds_at(attempt.ended_at, from) - from);
        ++out.attempts;
        out.seconds += took;
        out.by_cause[std::string(to_string(attempt.cause))] += took;
        const auto steps = static_cast<double>(view.attempts[i + 1].resume_step - attempt.resume_step);
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

void add_terms(const RunView& view, const Evidence& evidence, ExplanationView& out) {
    const PredictionSpec none;
    const PredictionSpec& plan = view.spec.prediction ? *view.spec.prediction : none;
    const bool whole = view.run.state == RunState::succeeded;
    ExplainedTerm step = term("step", "s", evidence.step_s(), plan.step_s, plan.step_low_s, plan.step_high_s);
    const bool any = std::any_of(evidence.ranks.begin(), evidence.ranks.end(),
                                 [](const RankEvidence& rank) { return rank.steps > 0; });
    if (!step.measured)
        step.note = any ? "too few steps after the first ones"
                        : "no step times: see stoker_torch, or observe: in the run section";
    out.terms.push_back(std::move(step));
    const auto part = [&](const char* name, const char* measure, std::optional<double> predicted) {
        const auto measured = evidence.step_s() ? evidence.mean(measure) : std::nullopt;
        if (measured || predicted.value_or(0) > 0)
            out.terms.push_back(term(name, "s", measured, predicted.value_or(0), 0, 0));
    };
    const Planned& planned = evidence.planned;
    std::optional<double> compute;
    if (planned.step_s)
        compute = std::max(0.0, *planned.step_s - planned.wait_s.value_or(0) - planned.collectives_s.value_or(0));
    part("compute", "compute_s", compute);
    part("input", "wait_s", planned.wait_s);
    part("collectives", "allreduce_s", planned.collectives_s);
    if (planned.checkpoints || evidence.mean("checkpoint_s").value_or(0) > 0)
        part("checkpoints", "checkpoint_s", std::nullopt);
    out.terms.push_back(term("memory", "bytes", peak_memory(view, evidence), static_cast<double>(plan.memory_bytes),
                             static_cast<double>(plan.memory_low_bytes), static_cast<double>(plan.memory_high_bytes)));
    const EarlyEnds ends = early_ends(view, evidence.step_s());
    bool restarts_explain = false;
    if (view.run.used_s > 0) {
        ExplainedTerm time = term("time", "s", view.run.used_s, plan.run_s, plan.run_low_s, plan.run_high_s);
        if (!whole) time.verdict.clear();
        // A plan is one of a run that nothing ends early.
        restarts_explain = time.verdict == "above" && view.run.used_s - ends.lost_s() <= plan.run_high_s;
        if (ends.attempts > 0) time.note = early_ends_text(ends, view.attempts.back().resume_step, restarts_explain);
        out.terms.push_back(std::move(time));
    }
    // Of a run that was priced only where it ran: its own rate, for the time that was predicted.
    const double cost = static_cast<double>(view.cost_microusd.value_or(0));
    double predicted = static_cast<double>(plan.cost_microusd);
    if (!(predicted > 0) && view.run.used_s > 0) predicted = cost * plan.run_s / view.run.used_s;
    if (view.cost_microusd || predicted > 0) {
        const double low = plan.run_s > 0 ? plan.run_low_s / plan.run_s : 0,
                     high = plan.run_s > 0 ? plan.run_high_s / plan.run_s : 0;
        ExplainedTerm money = term("cost", "microusd", view.cost_microusd ? std::optional(cost) : std::nullopt,
                                   predicted, predicted * low, predicted * high);
        if (!whole) money.verdict.clear();
        if (!view.cost_microusd) money.note = "nothing is counted without a price book (stoker up --prices)";
        out.terms.push_back(std::move(money));
    }
    for (const ExplainedTerm& each : out.terms) {
        if (restarts_explain && (each.term == "time" || each.term == "cost") && each.verdict == "above") continue;
        out.outside = out.outside || each.verdict == "above" || each.verdict == "below";
    }
}

void add_causes(const Evidence& evidence, ExplanationView& out) {
    const double step = evidence.step_s().value_or(0);
    const Explanation found = explain_gap(evidence);
    const double longer = evidence.planned.step_s ? step - *evidence.planned.step_s : 0;
    for (const Finding& each : found.findings) {
        CauseView cause{.cause = std::string(each.cause),
                        .what = each.what,
                        .evidence = each.evidence,
                        .cost_s = each.cost_s,
                        .share_of_gap = std::nullopt,
                        .expected_gain = 0,
                        .fix = each.fix,
                        .rank = each.rank,
                        .stops = each.stops};
        if (longer > 0 && each.cost_s > 0 && !each.stops && !each.aside)
            cause.share_of_gap = std::min(1.0, each.cost_s / longer);
        const bool within = each.cause != "checkpoint-stalls" && each.cause != "disk-slow";
        if (step > 0 && !each.stops && !each.aside)
            cause.expected_gain =
                std::min(0.99, each.cost_s / (within ? std::max(step, each.cost_s) : step + each.cost_s));
        out.causes.push_back(std::move(cause));
    }
    for (const auto& [cause, reason] : found.ruled_out) out.ruled_out.push_back({std::string(cause), reason});
    for (const auto& [cause, reason] : found.not_known) out.not_known.push_back({std::string(cause), reason});
}

}  // namespace

ExplainedPart explained_part(const RunView& view, std::int64_t now_us) {
    ExplainedPart part;
    const double now = static_cast<double>(now_us) / 1e6;
    part.ended = is_terminal(view.run.state);
    part.to_s = now;
    part.from_s = now;
    if (view.attempts.empty()) return part;
    const AttemptView& last = view.attempts.back();
    part.attempt = last.id.text();
    part.from_s = seconds_at(last.running_at, seconds_at(last.created_at, now));
    part.to_s = seconds_at(last.ended_at, part.ended ? seconds_at(view.run.ended_at, now) : now);
    part.from_s = std::max(part.from_s, part.to_s - kMostLookedAt);
    return part;
}

std::string named_interface(const RunSpec& spec) {
    std::string named;
    for (const char* name : {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"})
        if (const auto found = spec.environment.find(name); found != spec.environment.end()) named = found->second;
    return named;
}

Planned planned_of(const RunSpec& spec) {
    Planned planned;
    planned.processors = static_cast<double>(spec.per_rank.cpu_milli) / 1000;
    planned.threads = number_in(spec.environment, "OMP_NUM_THREADS");
    planned.checkpoints = !spec.checkpoint.folder.empty();
    planned.interface = printable(named_interface(spec), 60);
    if (!spec.prediction) return planned;
    const PredictionSpec& plan = *spec.prediction;
    const auto known = [](double value) { return value > 0 ? std::optional(value) : std::nullopt; };
    planned.step_s = known(plan.step_s);
    planned.step_low_s = known(plan.step_low_s);
    planned.step_high_s = known(plan.step_high_s);
    planned.wait_s = planned_seconds(plan, {"data stall"});
    planned.collectives_s = planned_seconds(
        plan, {"gradient comm", "gather comm", "tensor comm", "context comm", "expert comm", "pipeline comm"});
    planned.memory_bytes = known(static_cast<double>(plan.memory_bytes));
    if (plan.tokens_per_step > 0 && spec.ranks > 0) planned.tokens = plan.tokens_per_step / spec.ranks;
    planned.precision_bits = plan.precision_bits;
    planned.recompute = plan.recompute;
    planned.compiled = plan.compiled;
    return planned;
}

ExplanationView explain_run(const RunView& view, const ExplainedPart& part, const std::vector<RankSeries>& series) {
    ExplanationView out{.run = view.run.id, .state = view.run.state, .cause = view.run.cause, .attempt = part.attempt};
    out.from = rfc3339(std::llround(1e6 * part.from_s));
    out.to = rfc3339(std::llround(1e6 * part.to_s));
    const bool unfinished = view.run.state != RunState::succeeded && !view.attempts.empty();
    const Evidence evidence = collect_evidence(series, planned_of(view.spec),
                                               {.from_s = part.from_s, .to_s = part.to_s, .expects_steps = unfinished});
    for (const RankSeries& each : series) out.point_s = std::max(out.point_s, each.seconds);
    if (evidence.steady) {
        out.steps = evidence.steady->steps;
        out.warm_up_steps = evidence.steady->warm_up_steps;
    }
    add_terms(view, evidence, out);
    const auto step = evidence.step_s();
    if (step && !out.terms.empty() && (out.terms.front().verdict == "above" || out.terms.front().verdict == "below"))
        out.gap_s = *step - *evidence.planned.step_s;
    add_causes(evidence, out);
    return out;
}

Result<std::vector<RankSeries>> series_of_part(SeriesStore& store, const RunView& view, const ExplainedPart& part) {
    if (part.to_s <= part.from_s) return std::vector<RankSeries>();
    SeriesQuery query{.run = view.run.id.text(), .metrics = evidence_measures(), .rank = {}};
    query.from_s = static_cast<std::int64_t>(part.from_s);
    // What a rank wrote last is read when it has gone.
    query.to_s = static_cast<std::int64_t>(part.to_s) + 2;
    const std::size_t columns = static_cast<std::size_t>(std::max(1, view.run.ranks)) * evidence_measures().size();
    query.max_points = std::clamp<std::size_t>(kMostJudgedPoints / columns, 60, 3602);
    return store.query(query);
}

std::string kept_form(ExplanationView explanation) {
    const auto text = [&] { return codec::write(explanation).dump() + "\n"; };
    std::string out = text();
    if (out.size() > kMostKeptText) {
        explanation.ruled_out.clear(), explanation.not_known.clear();
        out = text();
    }
    while (out.size() > kMostKeptText && !explanation.causes.empty()) {
        explanation.causes.pop_back();  // by what they cost, the dearest first
        out = text();
    }
    return out;
}

Result<ExplanationView> read_kept(const std::string& text) {
    TRY(const Document document, Document::parse_json(text, "the kept explanation"));
    Problems problems;
    ExplanationView view;
    codec::read(document.root(), "", view, problems);
    // What a newer version says beyond what is known here is passed over.
    std::erase_if(problems, [](const Problem& problem) { return problem.message.starts_with("unknown "); });
    if (!problems.empty()) return Error(ErrorKind::internal, std::move(problems));
    return view;
}

ExplanationView kept_or_now(std::optional<ExplanationView> kept, ExplanationView now) {
    if (!kept || kept->attempt != now.attempt) return now;
    const bool as_fine = now.point_s > 0 && now.point_s <= std::max<std::int64_t>(1, kept->point_s);
    return as_fine || kept->point_s == 0 ? now : std::move(*kept);
}

}  // namespace stoker::api

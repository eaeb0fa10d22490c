#include "explain/kept_explanation.h"

#include <algorithm>

#include "base/api_time.h"
#include "base/codec.h"
#include "base/enum_words.h"
#include "base/newer_keys.h"
#include "observe/series.h"

namespace stoker {
namespace {

// A time as the text has it, whichever way the visitor goes.
template <class V>
void visit_time(V& visit, std::string_view key, std::int64_t& us) {
    std::string text = rfc3339(us);
    visit(key, text);
    us = parse_rfc3339(text).value_or(0);
}

// A word that is left out where there is none.
template <class V>
void visit_verdict(V& visit, std::string_view key, PlanVerdict& verdict) {
    std::string text(enum_word(verdict));
    visit(key, text);
    verdict = enum_named<PlanVerdict>(text).value_or(verdict);
}

// Left out where there is none, as it was before there was any.
template <class V, class T>
void visit_some(V& visit, std::string_view key, std::vector<T>& values) {
    std::optional<std::vector<T>> some;
    if (!values.empty()) some = values;
    visit(key, some);
    values = some ? std::move(*some) : std::vector<T>();
}

}  // namespace

template <class V>
void fields(V& visit, HeldTerm& v) {
    std::string unit(unit_of(v.kind));
    visit("high", v.high);
    visit("low", v.low);
    visit("measured", v.measured);
    visit("note", v.note);
    visit("predicted", v.predicted);
    visit("term", v.kind);
    visit("unit", unit);
    visit_verdict(visit, "verdict", v.verdict);
}
template <class V>
void fields(V& visit, EvidenceFigure& v) {
    visit("name", v.name);
    visit("threshold", v.threshold);
    visit("unit", v.unit);
    visit("value", v.value);
}
template <class V>
void fields(V& visit, EvidenceSpan& v) {
    visit("from_s", v.from_s);
    visit("to_s", v.to_s);
}
template <class V>
void fields(V& visit, ExplainedTimeline& v) {
    visit("allreduce_s", v.allreduce_s);
    visit("checkpoint_s", v.checkpoint_s);
    visit("each_s", v.each_s);
    visit("from_s", v.from_s);
    visit("longest_s", v.longest_s);
    visit("rank", v.rank);
    visit("step_s", v.step_s);
    visit("wait_s", v.wait_s);
}
template <class V>
void fields(V& visit, GpuUse& v) {
    visit("bandwidth_share", v.bandwidth_share);
    visit("busy_share", v.busy_share);
    visit("count", v.count);
    visit("memory_held_bytes", v.memory_held_bytes);
    visit("memory_size_bytes", v.memory_size_bytes);
    visit("power_limit_w", v.power_limit_w);
    visit("power_w", v.power_w);
    visit("tensor_share", v.tensor_share);
}
template <class V>
void fields(V& visit, ToldDiagnosis& v) {
    visit("cause", v.name);
    visit("cost_high_s", v.cost_range.high_s);
    visit("cost_low_s", v.cost_range.low_s);
    visit("cost_s", v.cost_s);
    visit("evidence", v.evidence);
    visit("expected_gain", v.expected_gain);
    visit_some(visit, "figures", v.figures);
    visit("fix", v.fix);
    visit("node", v.node);
    visit("rank", v.rank);
    visit("share_of_gap", v.share_of_gap);
    visit_some(visit, "spans", v.spans);
    visit("stops", v.stops);
    visit("what", v.what);
}
template <class V>
void fields(V& visit, DiagnosisNote& v) {
    visit("cause", v.name);
    visit("reason", v.reason);
}
template <class V>
void fields(V& visit, ExplainedRun& v) {
    visit("attempt", v.attempt);
    visit("cause", v.cause);
    visit("causes", v.diagnoses);
    visit_time(visit, "from", v.from_us);
    visit("gap_s", v.gap_s);
    visit("gpu", v.gpu);
    visit_time(visit, "kept_at", v.kept_us);
    visit("not_known", v.not_known);
    visit("outside", v.outside);
    visit("point_s", v.point_s);
    visit("ruled_out", v.ruled_out);
    visit("run", v.run);
    visit("state", v.state);
    visit("steps", v.steps);
    visit("terms", v.terms);
    std::optional<ExplainedTimeline> timeline;
    if (v.timeline.each_s > 0) timeline = v.timeline;
    visit("timeline", timeline);
    if (timeline) v.timeline = std::move(*timeline);
    visit_time(visit, "to", v.to_us);
    visit("unexplained_s", v.unexplained_s);
    visit("warm_up_steps", v.warm_up_steps);
}

std::string kept_form(ExplainedRun explained) {
    const auto text = [&] { return codec::write(explained).dump() + "\n"; };
    std::string out = text();
    if (out.size() > kMostKeptText) {
        explained.ruled_out.clear(), explained.not_known.clear();
        out = text();
    }
    if (out.size() > kMostKeptText) {
        // They stand by what they cost, the dearest first: as many from the front as there is room for.
        const auto all = std::move(explained.diagnoses);
        std::size_t fits = 0, too_many = all.size();
        while (fits + 1 < too_many) {
            const std::size_t middle = fits + (too_many - fits) / 2;
            explained.diagnoses.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(middle));
            (text().size() > kMostKeptText ? too_many : fits) = middle;
        }
        explained.diagnoses.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(fits));
        out = text();
    }
    return out;
}

Result<ExplainedRun> read_kept(const std::string& text) {
    TRY(const Document document, Document::parse_json(text, "the kept explanation"));
    Problems problems;
    ExplainedRun explained;
    codec::read(document.root(), "", explained, problems);
    // What a newer version says beyond what is known here is passed over.
    codec::pass_over_unknown_keys(problems);
    if (!problems.empty()) return Error(ErrorKind::internal, std::move(problems));
    return explained;
}

ExplainedRun kept_or_now(std::optional<ExplainedRun> kept, ExplainedRun now) {
    if (!kept || kept->attempt != now.attempt) return now;
    const bool as_fine = now.point_s > 0 && now.point_s <= std::max<std::int64_t>(1, kept->point_s);
    return as_fine || kept->point_s == 0 ? now : std::move(*kept);
}

}  // namespace stoker

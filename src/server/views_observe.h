// What the API says about what the observer measured: series, and a run against its plan. As in views.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/codec.h"
#include "run/state/states.h"

namespace stoker::api {

// Series of the observer: of one rank and metric, [seconds since 1970, smallest, mean, largest, count] a point.
struct RankSeriesView {
    int rank = 0;
    std::string metric;
    std::int64_t seconds = 1;  // that a point covers
    std::vector<std::vector<double>> points;
};
struct SeriesPage {
    RunId run;
    std::string from, to;
    std::vector<RankSeriesView> series;
};

// One term of a run against its plan.
struct ExplainedTerm {
    std::string term;  // step, compute, input, collectives, checkpoints, gpu-memory, memory, time, cost
    std::string unit;  // s, bytes, microusd
    std::optional<double> measured, predicted, low, high;
    std::string verdict;  // inside, above, below; empty: nothing to hold it against
    std::string note;     // why it is not measured, or what it went to
};
// What the GPUs of its ranks did while it was steady: means over the ranks, power of one board, memory of the fullest.
struct GpuUseView {
    int count = 0;
    std::optional<double> busy_share, tensor_share, bandwidth_share;  // of the cycles, and of device memory's
    std::optional<double> power_w, power_limit_w;
    std::optional<double> memory_held_bytes, memory_size_bytes;  // held: by the allocator of the program
};
// One figure that a rule looked at, and the threshold that it is held against.
struct FigureView {
    std::string name;
    double value = 0;
    std::string unit;
    std::optional<double> threshold;
};
struct SpanView {
    double from_s = 0, to_s = 0;  // since 1970
};
// Steps over time, in parts of each_s seconds from from_s on; 0 in step_s: none ended in that part.
struct TimelineView {
    int rank = 0;
    std::int64_t from_s = 0, each_s = 0;
    std::vector<double> step_s, longest_s, wait_s, allreduce_s, checkpoint_s;
};
// Why it is slow. The key of its name has been "cause" since before that word was kept for why a run ends.
struct DiagnosisView {
    std::string name, what;
    std::vector<std::string> evidence;
    double cost_s = 0;  // of a step
    // Where it is inferred from other measures: between these. Left out: it was measured.
    std::optional<double> cost_low_s, cost_high_s;
    std::optional<double> share_of_gap;  // of what the step is longer than predicted
    double expected_gain = 0;            // of the time of a step, at most
    std::string fix;
    std::optional<int> rank;
    std::string node;  // of that rank, where its gang is on several
    bool stops = false;
    std::vector<FigureView> figures;  // the same evidence for programs
    std::vector<SpanView> spans;      // when it was; empty: all the time
};
struct DiagnosisNoteView {
    std::string name, reason;
};
struct ExplanationView {
    RunId run;
    RunState state = RunState::queued;
    Cause cause = Cause::none;  // why it ended
    std::string attempt, from, to;
    double steps = 0, warm_up_steps = 0;
    std::optional<double> gap_s;          // step measured less predicted, where it is outside of the interval
    std::optional<double> unexplained_s;  // of the gap; below 0: diagnoses overlap
    bool outside = false;                 // any term, but for a time that earlier attempts explain
    std::int64_t point_s = 0;             // what was judged from: seconds a point covers; 0: nothing was measured
    std::string kept_at;                  // judged when the run ended, and kept; empty: judged now
    std::vector<ExplainedTerm> terms;
    std::optional<GpuUseView> gpu;  // none: no rank holds one
    std::vector<DiagnosisView> diagnoses;
    std::vector<DiagnosisNoteView> ruled_out, not_known;
    std::optional<TimelineView> timeline;  // none: no steps were seen
};

template <class V>
void fields(V& visit, RankSeriesView& v) {
    visit("metric", v.metric);
    visit("points", v.points);
    visit("rank", v.rank);
    visit("seconds", v.seconds);
}
template <class V>
void fields(V& visit, SeriesPage& v) {
    visit("from", v.from);
    visit("run", v.run);
    visit("series", v.series);
    visit("to", v.to);
}
template <class V>
void fields(V& visit, ExplainedTerm& v) {
    visit("high", v.high);
    visit("low", v.low);
    visit("measured", v.measured);
    visit("note", v.note);
    visit("predicted", v.predicted);
    visit("term", v.term);
    visit("unit", v.unit);
    visit("verdict", v.verdict);
}
template <class V>
void fields(V& visit, GpuUseView& v) {
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
void fields(V& visit, FigureView& v) {
    visit("name", v.name);
    visit("threshold", v.threshold);
    visit("unit", v.unit);
    visit("value", v.value);
}
template <class V>
void fields(V& visit, SpanView& v) {
    visit("from_s", v.from_s);
    visit("to_s", v.to_s);
}
template <class V>
void fields(V& visit, TimelineView& v) {
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
void fields(V& visit, DiagnosisView& v) {
    visit("cause", v.name);
    visit("cost_high_s", v.cost_high_s);
    visit("cost_low_s", v.cost_low_s);
    visit("cost_s", v.cost_s);
    visit("evidence", v.evidence);
    visit("expected_gain", v.expected_gain);
    visit("figures", v.figures);
    visit("fix", v.fix);
    visit("node", v.node);
    visit("rank", v.rank);
    visit("share_of_gap", v.share_of_gap);
    visit("spans", v.spans);
    visit("stops", v.stops);
    visit("what", v.what);
}
template <class V>
void fields(V& visit, DiagnosisNoteView& v) {
    visit("cause", v.name);
    visit("reason", v.reason);
}
template <class V>
void fields(V& visit, ExplanationView& v) {
    visit("attempt", v.attempt);
    visit("cause", v.cause);
    visit("causes", v.diagnoses);
    visit("from", v.from);
    visit("gap_s", v.gap_s);
    visit("gpu", v.gpu);
    visit("kept_at", v.kept_at);
    visit("not_known", v.not_known);
    visit("outside", v.outside);
    visit("point_s", v.point_s);
    visit("ruled_out", v.ruled_out);
    visit("run", v.run);
    visit("state", v.state);
    visit("steps", v.steps);
    visit("terms", v.terms);
    visit("timeline", v.timeline);
    visit("to", v.to);
    visit("unexplained_s", v.unexplained_s);
    visit("warm_up_steps", v.warm_up_steps);
}
}  // namespace stoker::api

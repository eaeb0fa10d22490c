#include "server/explanation_view.h"

#include "base/api_time.h"
#include "base/enum_words.h"

namespace stoker::api {
namespace {

std::vector<DiagnosisNoteView> notes_of(const std::vector<DiagnosisNote>& notes) {
    std::vector<DiagnosisNoteView> out;
    for (const DiagnosisNote& each : notes) out.push_back({.name = each.name, .reason = each.reason});
    return out;
}

}  // namespace

ExplanationView view_of_explanation(const ExplainedRun& e) {
    ExplanationView view{.run = e.run,
                         .state = e.state,
                         .cause = e.cause,
                         .attempt = e.attempt ? e.attempt.text() : "",
                         .from = rfc3339(e.from_us),
                         .to = rfc3339(e.to_us),
                         .steps = e.steps,
                         .warm_up_steps = e.warm_up_steps,
                         .gap_s = e.gap_s,
                         .unexplained_s = e.unexplained_s,
                         .outside = e.outside,
                         .point_s = e.point_s,
                         .kept_at = rfc3339(e.kept_us)};
    for (const HeldTerm& term : e.terms)
        view.terms.push_back({.term = std::string(enum_word(term.kind)),
                              .unit = std::string(unit_of(term.kind)),
                              .measured = term.measured,
                              .predicted = term.predicted,
                              .low = term.low,
                              .high = term.high,
                              .verdict = std::string(enum_word(term.verdict)),
                              .note = term.note});
    if (const auto& gpu = e.gpu)
        view.gpu = GpuUseView{.count = gpu->count,
                              .busy_share = gpu->busy_share,
                              .tensor_share = gpu->tensor_share,
                              .bandwidth_share = gpu->bandwidth_share,
                              .power_w = gpu->power_w,
                              .power_limit_w = gpu->power_limit_w,
                              .memory_held_bytes = gpu->memory_held_bytes,
                              .memory_size_bytes = gpu->memory_size_bytes};
    for (const ToldDiagnosis& each : e.diagnoses) {
        view.diagnoses.push_back({.name = each.name,
                                  .what = each.what,
                                  .evidence = each.evidence,
                                  .cost_s = each.cost_s,
                                  .cost_low_s = each.cost_range.low_s,
                                  .cost_high_s = each.cost_range.high_s,
                                  .share_of_gap = each.share_of_gap,
                                  .expected_gain = each.expected_gain,
                                  .fix = each.fix,
                                  .rank = each.rank,
                                  .node = each.node,
                                  .stops = each.stops});
        for (const EvidenceFigure& figure : each.figures)
            view.diagnoses.back().figures.push_back({figure.name, figure.value, figure.unit, figure.threshold});
        for (const EvidenceSpan& span : each.spans) view.diagnoses.back().spans.push_back({span.from_s, span.to_s});
    }
    if (const ExplainedTimeline& t = e.timeline; t.each_s > 0)
        view.timeline = TimelineView{.rank = t.rank,
                                     .from_s = t.from_s,
                                     .each_s = t.each_s,
                                     .step_s = t.step_s,
                                     .longest_s = t.longest_s,
                                     .wait_s = t.wait_s,
                                     .allreduce_s = t.allreduce_s,
                                     .checkpoint_s = t.checkpoint_s};
    view.ruled_out = notes_of(e.ruled_out);
    view.not_known = notes_of(e.not_known);
    return view;
}

}  // namespace stoker::api

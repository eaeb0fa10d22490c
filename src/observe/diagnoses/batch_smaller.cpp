// A step works on less than the plan has: it looks fast, and the whole takes longer.
#include <fmt/format.h>

#include <cmath>

#include "observe/diagnoses/rule_text.h"

namespace stoker {

DiagnosisVerdict judge_batch_smaller(const RunEvidence& evidence) {
    const auto step = evidence.step_s();
    auto tokens = evidence.mean("tokens");
    auto planned = evidence.planned.tokens;
    const char* unit = "tokens";
    if (!tokens || !planned) {
        tokens = evidence.mean("samples");
        planned = evidence.planned.samples;
        unit = "samples";
    }
    if (!step || !tokens || !planned || !(*planned > 0))
        return diagnosis_silent(
            "tokens or samples of a step in the metrics file (stoker_torch: attach(..., tokens=)), and a plan");
    const double share = *tokens / *planned;
    if (std::abs(share - 1) < diagnosis_threshold("plan.batch_share"))
        return diagnosis_ruled_out(fmt::format("{} {} a step of a rank, as planned", format_thousands(*tokens), unit));
    const double expected = evidence.planned.step_s.value_or(*step) * share;
    Diagnosis found{
        .what = fmt::format("a step of a rank has {} {} where {} were planned", format_thousands(*tokens), unit,
                            format_thousands(*planned)),
        .evidence = {fmt::format("a step of the planned size would take about {}", milliseconds_text(*step / share))},
        // What the planned tokens or samples take longer than planned.
        .cost_s = std::max(0.0, share < 1 ? *step / share - expected / share : *step - expected / share),
        .fix = fmt::format("set the batch of a rank to {:.3g} times what it is, or plan with "
                           "batch.global_examples as it runs",
                           1 / share),
        .rank = {}};
    found.figures = {
        deciding_figure("batch_difference", std::abs(share - 1), "of the planned batch", "plan.batch_share"),
        told_figure("batch", *tokens, unit), told_figure("planned_batch", *planned, unit)};
    return diagnosis_found(std::move(found));
}

}  // namespace stoker

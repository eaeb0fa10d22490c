// Activations are computed again in the backward pass where the plan keeps them.
#include <fmt/format.h>

#include "observe/diagnoses/rule_text.h"

namespace stoker {

DiagnosisVerdict judge_recompute_on(const RunEvidence& evidence) {
    const auto step = evidence.step_s();
    const auto calls = evidence.mean("recomputed");
    if (!step || !calls || !evidence.planned.recompute)
        return diagnosis_silent("recomputed in the metrics file (stoker_torch), and a plan");
    const bool on = *calls >= 0.5;
    if (on == *evidence.planned.recompute || !on)
        return diagnosis_ruled_out(fmt::format("{:.0f} recomputed parts a step, {} planned", *calls,
                                               *evidence.planned.recompute ? "some" : "none"));
    // Forward is a third of forward and backward; all of it again costs a quarter of the longer step. Embedding, head
    // and optimizer, which are not done again, make it less: a fifth where they take a third of it.
    constexpr double kUsual = 0.2, kLeast = 0.12, kMost = 0.25;
    const double compute = evidence.mean("compute_s").value_or(*step);
    return diagnosis_found(
        {.what = fmt::format("{:.0f} parts of the model are computed twice in each step, none was "
                             "planned",
                             *calls),
         .evidence = {fmt::format("torch.utils.checkpoint is called {:.0f} times a step", *calls)},
         .cost_s = kUsual * compute,
         .cost_range = {kLeast * compute, kMost * compute},
         .fix = "take torch.utils.checkpoint (gradient_checkpointing_enable) out if the memory allows, "
                "or plan with layout: {recompute: full}",
         .rank = {},
         .figures = {{.name = "recomputed", .value = *calls, .unit = "calls a step", .threshold = 0.5}}});
}

}  // namespace stoker

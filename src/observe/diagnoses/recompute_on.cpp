// Activations are computed again in the backward pass where the plan keeps them.
#include <algorithm>
#include <utility>

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
    // The second pass takes as long as the first, and a little longer where it keeps what the first did not. Where the
    // first was not timed: forward is a third of forward and backward, so that all of it again costs a quarter of the
    // longer step; embedding, head and optimizer, which are not done again, make it less, a fifth where they take a
    // third of it.
    constexpr double kUsual = 0.2, kLeast = 0.12, kMost = 0.25, kTimedLeast = 0.9, kTimedMost = 1.3;
    const double compute = evidence.mean("compute_s").value_or(*step);
    const auto timed = evidence.mean("recompute_s");
    const double cost_s = timed ? std::min(*timed, compute) : kUsual * compute;
    std::vector<std::string> shown = {fmt::format("torch.utils.checkpoint is called {:.0f} times a step", *calls)};
    if (timed) shown.push_back(fmt::format("their first pass takes {:.3g} ms a step", *timed * 1e3));
    return diagnosis_found(
        {.what = fmt::format("{:.0f} parts of the model are computed twice in each step, none was "
                             "planned",
                             *calls),
         .evidence = std::move(shown),
         .cost_s = cost_s,
         .cost_range = timed ? CostRange{kTimedLeast * cost_s, kTimedMost * cost_s}
                             : CostRange{kLeast * compute, kMost * compute},
         .fix = "take torch.utils.checkpoint (gradient_checkpointing_enable) out if the memory allows, "
                "or plan with layout: {recompute: full}",
         .rank = {},
         .figures = {{.name = "recomputed", .value = *calls, .unit = "calls a step", .threshold = 0.5}}});
}

}  // namespace stoker

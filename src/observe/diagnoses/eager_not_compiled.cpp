// The model runs operation by operation where the plan has it compiled.
#include <fmt/format.h>

#include <algorithm>

#include "observe/diagnoses/rule_text.h"

namespace stoker {

DiagnosisVerdict judge_eager_not_compiled(const RunEvidence& evidence) {
    const auto step = evidence.step_s();
    const auto compiled = evidence.mean("compiled");
    if (!step || !compiled || !evidence.planned.compiled)
        return diagnosis_silent("compiled in the metrics file (stoker_torch), and a plan that says compiled");
    if (!*evidence.planned.compiled || *compiled >= 0.5)
        return diagnosis_ruled_out(*compiled >= 0.5 ? "it is compiled" : "eager, as planned");
    return diagnosis_found(
        {.what = "it runs eager where compiled was planned",
         .evidence = {"no compiled graph was seen in the process"},
         .cost_s = std::max(0.0, *step - evidence.planned.step_s.value_or(*step)),
         .fix = "model = torch.compile(model)",
         .rank = {},
         .figures = {{.name = "compiled", .value = *compiled, .unit = "of the ranks", .threshold = 0.5}}});
}

}  // namespace stoker

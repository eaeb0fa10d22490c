// The program computes in another precision than the plan has.
#include <fmt/format.h>

#include <algorithm>

#include "observe/diagnoses/rule_text.h"

namespace stoker {

DiagnosisVerdict judge_other_precision(const RunEvidence& evidence) {
    const auto step = evidence.step_s();
    const auto parameters = evidence.mean("param_bits");
    const auto cast = evidence.mean("autocast_bits");
    if (!step || !parameters || !evidence.planned.precision_bits)
        return diagnosis_silent("param_bits in the metrics file (stoker_torch), and a plan with a precision");
    const int bits = static_cast<int>(cast && *cast > 0 ? *cast : *parameters);
    const int planned = *evidence.planned.precision_bits;
    if (bits == planned) return diagnosis_ruled_out(fmt::format("{} bits, as planned", bits));
    const double before = evidence.planned.step_s.value_or(*step);
    Diagnosis found{.what = fmt::format("it computes with {} bits where {} were planned", bits, planned),
                    .evidence = {fmt::format("parameters of {:.0f} bits, autocast {}", *parameters,
                                             cast && *cast > 0 ? fmt::format("to {:.0f}", *cast) : "off")},
                    .cost_s = std::max(0.0, *step - before),
                    .fix = planned < bits ? "with torch.autocast(device_type, dtype=torch.bfloat16): ..."
                                          : "take torch.autocast or .bfloat16() out, or plan with precision: bf16",
                    .rank = {}};
    found.figures = {{.name = "bits", .value = 1.0 * bits, .unit = "bits", .threshold = 1.0 * planned},
                     told_figure("param_bits", *parameters, "bits"),
                     told_figure("autocast_bits", cast.value_or(0), "bits")};
    return diagnosis_found(std::move(found));
}

}  // namespace stoker

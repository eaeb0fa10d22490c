// Python's garbage collector stops the program between operators.
#include <fmt/format.h>

#include "observe/diagnoses/rule_text.h"

namespace stoker {

DiagnosisVerdict judge_garbage_collection(const RunEvidence& evidence) {
    const auto step = evidence.step_s();
    const RankEvidence* worst = evidence.worst("gc_s");
    if (!step || worst == nullptr) return diagnosis_silent("gc_s in the metrics file (stoker_torch)");
    const double each = *worst->mean("gc_s");
    const double whole = worst->find("step_s") ? worst->find("step_s")->mean : *step;
    if (each < diagnosis_threshold("pauses.gc_share") * whole)
        return diagnosis_ruled_out(fmt::format("{} a step in the garbage collector", milliseconds_text(each)));
    return diagnosis_found(
        {.what = fmt::format("Python's garbage collector takes {} a step", milliseconds_text(each)),
         .evidence = {fmt::format("{} of the step of {}", percent_text(each / whole), rank_text(*worst))},
         .cost_s = each,
         .fix = "gc.collect(); gc.freeze() after the model and the data are there, or gc.disable() and a gc.collect() "
                "every few hundred steps",
         .rank = {},
         .own = true,
         .figures = {deciding_figure("collector_share", each / whole, "of a step", "pauses.gc_share"),
                     told_figure("gc_s", each, "s")}});
}

}  // namespace stoker

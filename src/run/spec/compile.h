// From the run section of a file to the RunSpec that is submitted.
#pragma once

#include <string>

#include "base/result.h"
#include "run/spec/run_spec.h"
#include "workload/workload.h"

namespace stoker {

struct CompileContext {
    const Workload* workload = nullptr;  // nothing: a file that only runs something
    std::string name;                    // of the run
    std::string folder;                  // absolute: the file's, which relative folders begin at
    SourceSpec source;
    // What `every: auto` is computed from; 0: not known.
    double checkpoint_write_s = 0, mtbf_s = 0;
};

// A sweep and an array become a graph with one independent step for each point. Every problem has its place.
Result<RunSpec> compile_run(const RunSection& section, const CompileContext& context);

// Parts of the above that others use.
std::string variable_of(std::string_view parameter);  // lr -> STOKER_PARAM_LR
// "My model (v2)" -> "My-model-v2": what every engine takes as a name; `otherwise` when nothing is left.
std::string run_name_from(std::string_view text, std::string_view otherwise);

}  // namespace stoker

// Which orchestrator, image and software fit a candidate, with reasons: a decision table, first row that applies.
#pragma once

#include "plan/context.h"

namespace stoker {

PlatformChoice choose_platform(const Workload& workload, const Context& context, const Candidate& candidate);
struct ImageChoice {
    std::string name, reason;
};
ImageChoice choose_image(const Workload& workload, const Catalog& catalog, const NodeType& node,
                         Orchestrator orchestrator);
std::string_view label(Orchestrator orchestrator);       // "Slurm on CycleCloud"
std::string_view complexity(Orchestrator orchestrator);  // low, medium, high

}  // namespace stoker

// Between a run and its Deployment: how the run is started, and what it takes of the Deployment that was made of it.
#pragma once

#include "deploy/deployment.h"
#include "run/spec/run_spec.h"

namespace stoker {

// Of a run that is no graph, or of a step.
StartSpec start_of(const RunSpec& run);

// The run as the Deployment has it, held against its prediction. What a Deployment does not know of, such as its owner
// and the point of a sweep, stays.
void take_deployment(const Deployment& deployment, RunSpec& run);

}  // namespace stoker

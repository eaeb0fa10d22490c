// Where checkpoints go and come from, as a spec says it.
#pragma once

#include <vector>

#include "base/result.h"
#include "run/spec/run_spec.h"

namespace stoker {

// What is wrong with upload and restore_from of a spec; nothing is called.
std::vector<Problem> problems_of_store(const CheckpointPolicy& policy);

}  // namespace stoker

// From an attempt to the gang that a driver starts: arguments, devices, and the environment that PyTorch, Slurm-aware
// and Open MPI programs look at.
#pragma once

#include <string>

#include "deploy/driver.h"
#include "run/state/state.h"

namespace stoker {

// Logs go to `log_root`/r-7/a-7.1.
GangSpec gang_spec(const State& state, const Run& run, const Attempt& attempt, const std::string& log_root);

}  // namespace stoker

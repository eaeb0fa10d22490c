// A Slurm cluster as an engine: one job for each gang, known by its name and never by its number.
//
// What Slurm forgets does not matter: the folder of each operation, which the nodes and the server share, says who
// began it (claim), how it does and how it ended (status.json), and whatever the controller lost before the claim may
// be sent again. What the controller alone knows is asked with one squeue for all jobs.
#pragma once

#include <memory>

#include "base/result.h"
#include "deploy/driver.h"
#include "deploy/slurm/slurm_options.h"

namespace stoker {

// What can be said without looking: invalid.
Status check_slurm_rest(const SlurmRest& rest);

// invalid, unavailable: the folder cannot be used. A controller that does not answer now is asked later.
Result<std::unique_ptr<Driver>> make_slurm_driver(SlurmOptions options);

}  // namespace stoker

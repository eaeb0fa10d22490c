// From a gang to the batch script that asks Slurm for it, and what sbatch answers. No side effects.
#pragma once

#include <string>
#include <string_view>

#include <string>
#include <vector>

#include "deploy/driver.h"
#include "deploy/slurm/slurm_options.h"
#include "io/run_program.h"

namespace stoker::slurm {

std::string job_name(const OperationId& operation);

// user_error, no_capacity: what Slurm could not be asked for, with the reason.
Outcome check_gang_for_slurm(const OperationId& operation, const GangSpec& gang);
// `folder`: of the operation, on every node.
std::string job_script(const OperationId& operation, const GangSpec& gang, const SlurmOptions& options,
                       const std::string& folder);

// srun and its words: a host for each rank. In the container of a gang that has an image it finds this `program`, the
// folders of the run and `mounts` by the names that they have outside. `cpus`: of a task, as the job has it; or empty.
std::vector<std::string> step_words(const GangSpec& gang, const std::string& folder, const std::string& program,
                                    const std::string& cpus, const std::vector<std::string>& mounts);

// confirmed, with the job's number as detail; rejected; or unknown: it may have got through.
Outcome read_submission(const Result<ProgramResult>& ran);

}  // namespace stoker::slurm

// From a gang to the batch script that asks Slurm for it, and what sbatch answers. No side effects.
#pragma once

#include <string>
#include <string_view>

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

// confirmed, with the job's number as detail; rejected; or unknown: it may have got through.
Outcome read_submission(const Result<ProgramResult>& ran);

}  // namespace stoker::slurm

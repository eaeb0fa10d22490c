// From a gang to the batch script that asks Slurm for it, and what sbatch answers. No side effects.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deploy/driver.h"
#include "deploy/slurm/slurm_options.h"
#include "io/run_program.h"

namespace stoker::slurm {

// In a job's environment: how many seconds after the ranks began their host tells them that the time limit of the run
// comes. Slurm counts whole minutes, to its own limit, which is later than that; and over REST it tells nobody.
inline constexpr const char* kNoticeVariable = "STOKER_NOTICE_AFTER_S";

std::string job_name(const OperationId& operation);

// user_error, no_capacity: what Slurm could not be asked for, with the reason.
Outcome check_gang_for_slurm(const OperationId& operation, const GangSpec& gang);

// What is asked for, in sbatch's options (an option that is only named has an empty value), and what the job runs.
struct JobRequest {
    std::vector<std::pair<std::string, std::string>> options;
    std::string command;              // for a shell
    std::int64_t notice_after_s = 0;  // kNoticeVariable; 0: none
};
// `folder`: of the operation, on every node.
JobRequest job_request(const OperationId& operation, const GangSpec& gang, const SlurmOptions& options,
                       const std::string& folder);
// As sbatch takes it.
std::string job_script(const JobRequest& request);

// srun and its words: a host for each rank. In the container of a gang that has an image it finds this `program`, the
// folders of the run and `mounts` by the names that they have outside. `cpus`: of a task, as the job has it; or empty.
std::vector<std::string> step_words(const GangSpec& gang, const std::string& folder, const std::string& program,
                                    const std::string& cpus, const std::vector<std::string>& mounts);

// confirmed, with the job's number as detail; rejected; or unknown: it may have got through.
Outcome read_submission(const Result<ProgramResult>& ran);
// What the controller said when it took no job, by the table of its refusals: rejected, or unknown where that leaves it
// in doubt. nullopt: the table has no such words.
std::optional<Outcome> read_refusal(const std::string& said);

}  // namespace stoker::slurm

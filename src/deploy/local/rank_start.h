// All ranks of a gang or none: each is forked, put into its control group, given its limits, folder and log, and held
// at a barrier; when all stand there, all run their programs.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "deploy/local/gang_files.h"
#include "io/process.h"

namespace stoker {

struct StartedRank {
    pid_t pid = 0;               // as we see it
    std::int64_t outer_pid = 0;  // as seen outside of our pid namespace
};
struct StartResult {
    std::vector<StartedRank> ranks;  // also those that stand at the barrier when the start has failed
    bool ok = false;
    Cause cause = Cause::none;
    std::string detail;
};

// `outer_proc`: the /proc of the machine. For a process with one thread, which must live as long as the ranks: they are
// killed when it ends.
StartResult start_ranks(const LaunchOrder& order, const std::string& run_folder, const std::string& log_folder,
                        const UniqueFd& outer_proc, Deadline deadline);
std::string log_path(const std::string& log_folder, std::size_t rank);

}  // namespace stoker

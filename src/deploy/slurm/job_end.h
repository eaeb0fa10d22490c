// The end of a gang whose host left no last word, or one that Slurm knows the reason of.
#pragma once

#include <string>

#include "deploy/slurm/launch_folder.h"

namespace stoker::slurm {

// What is written as the claim of an operation that the server called off, or that Slurm ended before it began.
inline constexpr std::string_view kServerClaim = "the server";

// Writes the last status of a gang that will not write one itself, and returns it. `state`: of its job, in Slurm's
// words; empty: Slurm knows nothing of it any more.
GangStatus bury(const std::string& folder, const LaunchOrder& order, bool claimed, const std::string& state,
                const std::string& number);
// The server called it off before it began.
GangStatus call_off(const std::string& folder, const LaunchOrder& order);
// An end that came from outside (file `outside`): with the cause that Slurm knows.
GangStatus with_cause_of_slurm(const std::string& folder, GangStatus status, const std::string& state);

}  // namespace stoker::slurm

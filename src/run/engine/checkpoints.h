// What follows from the checkpoints that an engine has listed.
#pragma once

#include <string>
#include <vector>

#include "deploy/questions.h"
#include "run/decide/next_step.h"

namespace stoker {

// The newest complete one, and whether the program left word that it is done.
CheckpointView view_of_checkpoints(const Checkpoints& checkpoints);
// Those that `keep` newest complete ones and every tenth step before them leave over. Never the newest complete one;
// never one that is still being written.
std::vector<std::string> checkpoints_to_prune(const std::vector<Checkpoint>& checkpoints, int keep);

}  // namespace stoker

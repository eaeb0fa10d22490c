// stoker compare r-1 r-2: runs side by side, and the points of a sweep by what they reached.
#pragma once

#include "app/args.h"

namespace stoker {

// Whether every word is the id of a run.
bool are_runs(const std::vector<std::string>& words);
// A graph stands for its steps. `by`: "loss" orders by the last value of that metric, lowest first; "accuracy:max"
// highest first; empty: as given.
Result<CommandOutput> compare_runs(Session& session, const Args& args);

}  // namespace stoker

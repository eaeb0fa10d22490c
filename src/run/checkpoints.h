// Checkpoints as files: a folder "step-000123" without ".tmp" whose manifest.json names its files with their sizes, all
// of which are there. Programs write them without knowing Stoker; Stoker finds them by listing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "run/next_step.h"

namespace stoker {

struct Checkpoint {
    std::string folder;
    std::int64_t step = 0;
    bool complete = false;
    std::string fault;  // why it is torn
};

// Every "step-*" of the folder, highest step first. A folder that does not exist holds none.
Result<std::vector<Checkpoint>> list_checkpoints(const std::string& folder);
// The newest complete one, and whether the file "done" is there. None: the folder cannot be read, which is not the same
// as being empty.
std::optional<CheckpointView> read_checkpoints(const std::string& folder);
// Those that `keep` newest complete ones and every tenth step before them leave over. Never the newest complete one;
// never one that is still being written.
std::vector<std::string> checkpoints_to_prune(const std::vector<Checkpoint>& checkpoints, int keep);

// Young 1974 with Daly's correction (sizing/economics.h), at least ten times the writing.
// 0: no failures are expected, so none is needed.
double suggested_interval_s(double write_s, double mtbf_s);

}  // namespace stoker

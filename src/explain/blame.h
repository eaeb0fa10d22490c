// Which node held a gang up, when its attempt has ended: from what the observer wrote of its ranks.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "observe/evidence.h"
#include "run/core/core.h"

namespace stoker {

// One attempt that has ended, as far as blame is concerned.
struct EndedAttempt {
    AttemptId attempt;
    std::vector<std::string> node_of_rank;
    double from_s = 0, to_s = 0;  // that it ran, wall clock
};
std::vector<std::string> nodes_of_ranks(const Attempt& attempt);
// Nothing: it never ran, or on one node only.
std::optional<EndedAttempt> ended_attempt(const State& state, const AttemptId& attempt);

// Nothing: no rank stood out, it shared its node with all others, or its node is no slower than many are among many.
std::optional<BlameNode> blame_of(const EndedAttempt& ended, RunEvidence evidence);

}  // namespace stoker

// What the rules share that look at how a measure went over time.
#pragma once

#include <optional>

#include "observe/evidence.h"

namespace stoker {

// At most forty points, alike in the number of points that each stands for: the medians of their means, with the least
// and the most.
Course condensed(const Course& course);

// From some point on a measure is larger than it was before, by more than it wavers.
struct Rise {
    double before = 0, after = 0;  // medians of the two parts
    double at_s = 0;               // when the second part begins
    bool sudden = false;           // most of it between two neighbouring points
};
// `course`: condensed. `share`: of `before`, that it has to rise by. Nothing
// below six points, or where the two parts overlap; below eight twice the share is asked.
std::optional<Rise> rise_of(const Course& course, double share);

// The rank whose course has most points; none: no rank has it.
const RankEvidence* best_course(const RunEvidence& evidence, std::string_view name);

}  // namespace stoker

// The thresholds of the rules about causes, from data/observe/causes.tsv: what each is and what it was set on stands
// beside it, so that a figure can be held against its source.
#pragma once

#include <string_view>
#include <vector>

namespace stoker {

struct CauseThreshold {
    std::string_view name, unit, set_on;
    double value = 0;
};
const std::vector<CauseThreshold>& cause_thresholds();
// A name that is not in the file is a bug.
double cause_threshold(std::string_view name);

}  // namespace stoker

// What a workload that nothing can do might take back, nearest wish first.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plan/context.h"

namespace stoker {

// One thing that was asked for and could be taken back, and the refusals that it causes.
struct Relaxation {
    std::string text;
    std::function<bool(Workload&)> apply;  // false: it was not asked for
    std::vector<Reason> reasons;           // empty: any
    bool last_resort = false;              // only where nothing runs at all, not to save money or time
};

// Each is worth a search: what was not asked for does not apply.
std::vector<Relaxation> relaxations(const Context& context);

}  // namespace stoker

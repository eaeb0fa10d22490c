// Where a budget runs out and not everything stands equally high: what has to be told first, so that what stands higher
// has a head start in which to go on. Pure.
#pragma once

#include <cstdint>
#include <set>

#include "run/decide/tenant_limits.h"

namespace stoker {

struct StopOrder {
    std::set<StopStanding> now;  // these are told
    std::int64_t next_us = 0;    // when the next will have to be, if all goes on as it does; 0: none
};
// One notice of all that runs is kept, as ever, and for each standing what those above it use in the head start.
// Without one, or where all stand equally high, everything is told at once.
StopOrder stop_order(const StandingRates& rates, const BudgetLoad& load, std::int64_t limit_micro,
                     std::int64_t head_start_us, std::int64_t now_us);

}  // namespace stoker

// Micro-dollars of the whole job, or of the priced period of a service.
#include <cmath>
#include <limits>

#include "plan/option.h"

namespace stoker {

std::int64_t score_cost(const Option& option) {
    if (!option.priced || !(option.usd.mid < 9e12)) return std::numeric_limits<std::int64_t>::max();
    return std::llround(option.usd.mid * 1e6);
}

}  // namespace stoker

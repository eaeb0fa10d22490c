// Micro-dollars of the whole job, or of the priced period of a service; for each request/s where the question is how
// many the machines hold.
#include <algorithm>
#include <cmath>
#include <limits>

#include "plan/option.h"

namespace stoker {

std::int64_t score_cost(const Option& option) {
    // Behind all that has a price; of own machines that serve, and have none, fewer are cheaper.
    constexpr std::int64_t kNoPrice = std::numeric_limits<std::int64_t>::max(), kMostNodes = 1'000'000;
    if (!option.priced && option.latency_s > 0)
        return kNoPrice - kMostNodes + std::min<std::int64_t>(option.nodes, kMostNodes);
    if (!option.priced || !(option.usd.mid < 9e12)) return kNoPrice;
    return std::llround(std::min(option.usd.mid / std::max(option.worth, 1e-9), 9e12) * 1e6);
}

}  // namespace stoker

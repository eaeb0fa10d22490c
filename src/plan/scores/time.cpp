// Milliseconds of the job; for a service microseconds until an answer, since its hours are the same for all.
#include <algorithm>
#include <cmath>

#include "plan/option.h"

namespace stoker {

std::int64_t score_time(const Option& option) {
    if (option.latency_s > 0) return std::llround(std::min(option.latency_s, 1e9) * 1e6);
    return std::llround(std::min(option.hours.mid, 1e9) * 3.6e6);
}

}  // namespace stoker

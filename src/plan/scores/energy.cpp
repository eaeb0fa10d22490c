// Watt-hours at the wall.
#include <algorithm>
#include <cmath>

#include "plan/option.h"

namespace stoker {

std::int64_t score_energy(const Option& option) {
    return std::llround(std::min(option.kwh.mid, 1e12) * 1e3);
}

}  // namespace stoker

// How likely a limit is kept. A Range is the 80 % interval of a quantity whose logarithm is taken as normal on either
// side of the middle (errors are skewed to optimism, so the two sides differ).
#pragma once

#include "base/units.h"

namespace stoker {

double normal_quantile(double probability);                 // of the standard normal distribution; 0 < probability < 1
double chance_below(const Range& range, double limit);      // 0 to 1
double at_quantile(const Range& range, double deviations);  // the value that many standard deviations above the middle
// The interval of a product of two independent factors.
Range combined(const Range& a, const Range& b);

}  // namespace stoker

// What day it is and how much time has passed.
#pragma once

#include <string>

namespace stoker {

// YYYY-MM-DD in UTC. The environment variable STOKER_NOW, when it begins with such a date, stands for the clock, so
// that a test or a repeated run gives the same answer next year.
std::string today();
double monotonic_seconds();  // since an arbitrary start; never goes back

}  // namespace stoker

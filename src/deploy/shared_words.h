// What the ranks of a gang are given alike: said once, where a large gang would repeat it thousands of times.
#pragma once

#include <map>
#include <string>

#include "deploy/driver.h"

namespace stoker {

// True: every rank is given the same words. The gang has a rank.
bool words_are_shared(const GangSpec& gang);
// Variables that every rank is given with the same value.
std::map<std::string, std::string> shared_environment(const GangSpec& gang);

}  // namespace stoker

// Fixed texts back to their files.
#pragma once

#include <string>
#include <vector>

#include "check/project.h"

namespace stoker {

// Writes each whole or not at all, its mode kept. One that is no longer what was read is left as it is: `refused`.
std::vector<Problem> write_fixed(const Project::Fixed& fixed);
// As `diff -u` shows them, for patch -p1.
std::string fixed_diff(const Project::Fixed& fixed);

}  // namespace stoker

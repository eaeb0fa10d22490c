// What stays the same of a finding when lines move, keys change places or the file is reformatted.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lint/finding.h"

namespace stoker::lint {

// The path that goes into a fingerprint: the same from whichever folder the check is started.
using StablePath = std::function<std::string(const std::string&)>;

// 32 hex digits over rule, path, address, value and ordinal; no line, no column, no message. `path` is the stable one.
std::string fingerprint_of(const Finding& finding, std::string_view path, std::size_t ordinal);
// Of each finding: how many before it have the same rule, path, address and value.
std::vector<std::size_t> ordinals_of(const std::vector<Finding>& findings);
// For the findings of a whole run, in their order.
void set_fingerprints(std::vector<Finding>& findings, const StablePath& stable_path);

}  // namespace stoker::lint

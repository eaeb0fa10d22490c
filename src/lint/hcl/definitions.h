// Where the variables and locals that a file of Terraform asks for are defined.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lint/read.h"

namespace stoker::lint {

// Files beside it, apart from variables.tf and its like, that may define what `known(is a local, name)` denies.
std::vector<std::string> files_that_define(const File& file, const ReadOptions& options,
                                           const std::function<bool(bool local, std::string_view name)>& known);

}  // namespace stoker::lint

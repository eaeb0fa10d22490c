// From words to an exit code.
#pragma once

#include <string>
#include <vector>

namespace stoker {

int run_cli(const std::vector<std::string>& words);

}  // namespace stoker

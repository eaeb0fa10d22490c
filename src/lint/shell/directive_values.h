// Which values sbatch refuses for an option, whatever the cluster: checked against sbatch itself by
// tests/e2e/check_oracles_test.py.
#pragma once

#include <string_view>

namespace stoker::lint {

// What is expected in place of `value`; empty where sbatch takes it, where only the cluster can tell, and for a
// placeholder. `option` is the canonical name.
std::string_view expected_by_sbatch(std::string_view option, std::string_view value);

}  // namespace stoker::lint

// The values of sbatch's options: which it refuses whatever the cluster, what sizes and times come to, and the words in
// which check and run say that a line is refused. Checked against sbatch itself by tests/e2e/check_oracles_test.py.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "formats/sbatch_options.h"

namespace stoker::sbatch {

// What is expected in place of `value`; empty where sbatch takes it, where only the cluster can tell, and for a
// placeholder.
std::string_view expected_value(const Option& option, std::string_view value);

// 4096 is MiB; K, M, G and T are powers of 1024. Empty for what sbatch refuses.
std::optional<double> bytes_of(std::string_view value);
// minutes, minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]]; infinity for UNLIMITED.
std::optional<double> seconds_of(std::string_view value);

// An option without its dashes, or a word that is none.
std::string no_such_option(std::string_view written);
std::string missing_value(std::string_view option);
std::string refused_value(std::string_view option, std::string_view value);

}  // namespace stoker::sbatch

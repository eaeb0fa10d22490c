// Reads metrics as strictly as their formats are written, beyond what promtool finds: duplicates, families that are
// torn apart, buckets that fall, NaN, a missing # EOF, an empty page.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

struct ExpositionProblem {
    std::size_t line = 0, column = 0;  // from 1
    std::string message;
    bool lint = false;  // it can be read, and is not as names and units should be
};
struct ExpositionReport {
    std::vector<ExpositionProblem> problems;  // at most 200
    std::size_t families = 0, samples = 0;
    bool broken() const;  // more than lint
};
// dcgm: the names of dcgm-exporter are what they are; exactly their breaches of the naming rules are allowed.
ExpositionReport check_exposition(std::string_view text, bool openmetrics, bool dcgm = false);

}  // namespace stoker

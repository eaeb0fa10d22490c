// What was planned beside what was measured, a row a figure.
#pragma once

#include <string>
#include <vector>

#include "base/style.h"

namespace stoker {

struct HeldRow {
    std::string name, planned, low, high, measured;  // as they are shown
    double ratio = 0;                                // measured over planned
    std::string verdict;
};

std::string held_table(const Style& style, const std::vector<HeldRow>& rows);

}  // namespace stoker

// A quota or a budget that keeps a run back, in words: which number of which level, and what would have to change.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "run/decide/tenant_limits.h"

namespace stoker {

struct LimitText {
    std::string text;
    std::string remedy;  // what would let it start, if there is room; empty: nothing but waiting
    std::vector<std::pair<std::string, std::int64_t>> numbers;
    std::vector<RunId> holders;  // of what is used up
};
LimitText limit_text_of(const State& state, const TenantBlock& block, std::int64_t now_us);

}  // namespace stoker

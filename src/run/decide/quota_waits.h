// When work waited for its quota, of a past that the state still has: told again from what each run held when, by the
// numbers of the quotas as they are now (what they were then stands in the journal only). Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "govern/usage.h"
#include "run/state/state.h"

namespace stoker {

// So much of all that waited would have passed a quota, in this piece of time.
struct QuotaWait {
    std::int64_t from_us = 0, to_us = 0;
    std::int64_t gpu_milli = 0, cpu_milli = 0;
    friend bool operator==(const QuotaWait&, const QuotaWait&) = default;
};

// In order, apart from each other; pieces that follow each other and say the same are one. What a person holds, what
// waits for other runs or for its time, and what has no place for other reasons, waits for no quota.
std::vector<QuotaWait> quota_waits(const State& state, const UsageWindow& window, std::int64_t now_us);

}  // namespace stoker

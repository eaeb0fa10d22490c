// Who has to give back what was borrowed, for a run that has a right to it and is sure to fit then. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "run/decide/gang.h"
#include "run/decide/tenant_limits.h"

namespace stoker {

// A run that what others hold keeps from what it has a right to.
struct ReclaimClaim {
    const Run* run = nullptr;
    Gang gang{};
    QuotaTier tier = QuotaTier::owed;
};
struct Reclaim {
    RunId victim, claimant;
};
// `room_without`: the machines as if these runs were not there. For what is owed, what is borrowed goes, and then what
// is fair; for what is fair, what is borrowed. Nobody is named for a claim that would not fit even so, nor anybody
// whose going would not help; and for one claim whatever costs least: GPUs times the work since the last checkpoint.
std::vector<Reclaim> plan_reclaim(const State& state, const TenantLimits& limits,
                                  const std::vector<ReclaimClaim>& claims, std::size_t nodes, std::int64_t now_us,
                                  const std::function<Placer(const std::set<RunId>&)>& room_without);

}  // namespace stoker

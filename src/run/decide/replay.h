// A day in the life of a fleet that never was: demand is replayed against a placement policy, and what could not be
// used is counted.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "run/decide/fleet_trace.h"
#include "run/decide/place.h"

namespace stoker {

struct ReplayOptions {
    PlacementPolicy policy = PlacementPolicy::fragmentation;
    // GPU demand as a multiple of the fleet's capacity, made from the tasks by leaving some out or drawing more of
    // them; 0: the tasks as they are, in their order.
    double demand = 0;
    std::uint64_t seed = 42;
};

// State when arrived demand first reaches `demand` times the capacity.
struct ReplayPoint {
    double demand = 0;
    double allocated = 0;   // share of the fleet's GPU
    double fragmented = 0;  // share of the fleet's GPU that is free and that the usual tasks cannot use
};

struct ReplayResult {
    std::int64_t tasks = 0, placed = 0, refused = 0;
    std::int64_t capacity_gpu_milli = 0, demand_gpu_milli = 0, allocated_gpu_milli = 0;
    double allocated = 0, fragmented = 0;  // at the end, shares of the capacity
    std::vector<ReplayPoint> points;       // every 10 % of demand
};

// Tasks come in order and never leave, the hardest case for a placement policy.
ReplayResult replay(const Fleet& fleet, const std::vector<FleetTask>& tasks, const ReplayOptions& options);

// The tasks in the order in which they come, for `demand` times the capacity of the fleet.
std::vector<TaskShape> make_demand(const Fleet& fleet, const std::vector<FleetTask>& tasks, double demand,
                                   std::uint64_t seed);

}  // namespace stoker

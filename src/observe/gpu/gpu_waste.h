// What came of the GPU time that a run held, from its series: how much of it in which state, and how much was wasted.
// Pure. Points may be seconds or minutes long; each is judged by itself, so that what a window of seconds would tell
// (allocation_state.h) is told here of what is kept for weeks.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "observe/gpu/allocation_state.h"
#include "observe/series.h"

namespace stoker {

struct GpuWaste {
    double seen_s = 0;                                 // GPU seconds of which figures are there
    std::array<double, kAllocationStates> by_state{};  // GPU seconds
    // GPU seconds that came to nothing: what stood still at least, and at most. With the multiprocessors' own figure
    // the two are one; utilisation alone says 100 % of a GPU on which one kernel waits.
    double least_s = 0, most_s = 0;
    double in(AllocationState state) const { return by_state[static_cast<std::size_t>(state)]; }
    void add(const GpuWaste& other);
};

// The series that it looks at.
const std::vector<std::string>& waste_measures();
// Of all ranks of one run.
GpuWaste gpu_waste_of(const std::vector<RankSeries>& series);

}  // namespace stoker

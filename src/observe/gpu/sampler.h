// The sampler: the process in which NVIDIA's driver is called. One thread for each board, so that a call that hangs
// costs the others nothing; one for events; one that sees whether the boards are still the same.
#pragma once

#include <string>
#include <vector>

#include "observe/gpu/sample_board.h"

namespace stoker {

struct SamplerOptions {
    double period_s = 1;
    std::vector<std::string> skip;  // "#2": the board of that index hangs, and is not even asked for
};
// The end of the boards as they were: another process begins anew, since handles do not outlive it.
inline constexpr int kSamplerChanged = 10;

// Until the agent asks it to end or is gone; the exit code.
int run_gpu_sampler(SharedBoard board, const SamplerOptions& options);

}  // namespace stoker

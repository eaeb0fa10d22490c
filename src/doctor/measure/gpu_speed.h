// How fast the NVIDIA GPUs of this machine copy and compute, and whether they compute the same each time: by CUDA's
// driver library alone. What the library does may never come back, so it is called in a process of its own
// (stoker gpu-sampler --measure), whose answer is read here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/health.h"
#include "base/json.h"
#include "base/result.h"

namespace stoker {

struct GpuSpeed {
    int index = 0;
    std::string name, pci;
    std::string in_use;                           // what else holds it, so that nothing was measured
    std::string problem;                          // the call that failed, and how
    std::optional<double> to_board, from_board;   // bytes/s, from and to memory of the machine that is pinned
    std::optional<double> memory;                 // bytes/s that its own memory reads and writes in copies within it
    std::optional<double> to_peer, to_best_peer;  // bytes/s to another board, the slowest and the fastest
    int peer = -1;                                // the slowest
    std::string work;                             // what it computed: "bf16 products", "fp32"
    std::optional<double> flops;
    std::optional<double> first_flops, last_flops;  // in the first and the last quarter of a burn-in
    double burn_s = 0;
    std::optional<double> wrong;  // results that were not what they were the first time
};

struct GpuSpeeds {
    std::string library_problem;  // no measurement at all: why
    std::vector<GpuSpeed> boards;
    std::optional<double> all_reduce;  // bus bytes/s over all of them
    double all_reduce_bytes = 0;
    std::string all_reduce_problem;
};

struct GpuSpeedOptions {
    HealthLevel level = HealthLevel::quick;
    double burn_s = 0;  // all boards at once; 0: none
    std::string root;   // in front of /sys, for tests
};

// Calls the driver: not in a process that has anything else to do.
GpuSpeeds measure_gpus(const GpuSpeedOptions& options);

Json to_json(const GpuSpeeds& speeds);
Result<GpuSpeeds> read_gpu_speeds(const std::string& json);

}  // namespace stoker

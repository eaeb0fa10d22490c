// What sbatch is asked for, in its options: the engine submits them, and `stoker deploy --render` writes them down.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace stoker {

// All ranks are given the same.
struct SlurmRequest {
    std::int64_t ranks = 1, nodes = 0;  // nodes: exactly so many, ranks spread evenly; 0: as few as there are
    std::int64_t cpus = 1, memory_mib = 0, gpus = 0;  // of a rank
    std::string gpu_type;                             // of gres; empty: any
    bool one_switch = false;
    std::int64_t longest_s = 0;  // 0: no limit
};
// Names and values: {"ntasks", "16"}.
std::vector<std::pair<std::string, std::string>> slurm_options(const SlurmRequest& request);

}  // namespace stoker

// The numbers behind a wait: what is free where a job may run, and who waits before it. No side effects.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "deploy/slurm/queue.h"

namespace stoker::slurm {

struct Room {
    std::int64_t nodes = 0, idle_nodes = 0;
    std::int64_t cores = 0, free_cores = 0;
    std::int64_t gpus = 0, free_gpus = 0;
    std::vector<std::int64_t> waiting;  // priorities of the jobs that wait for the same nodes, of all users
};

// Of the partitions, or of all nodes where none is named. Nodes that take no work have nothing that is free.
Room room_of(const std::vector<SlurmNode>& nodes, const std::vector<std::string>& partitions);
// Lines of `squeue -o %Q` of what is pending.
std::vector<std::int64_t> read_waiting(std::string_view priorities);

// Behind the words of a wait: "5 of 16 GPUs, 20 of 32 cores and 0 of 2 nodes are free"; empty: numbers say nothing of
// it.
std::string numbers_of(const Job& job, const Room& room);

}  // namespace stoker::slurm

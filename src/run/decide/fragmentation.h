// How much of a node's free GPU the usual tasks could not use: the measure behind fragmentation gradient descent
// (Weng et al., "Beware of Fragmentation", USENIX ATC 2023, section 4).
#pragma once

#include <vector>

#include "run/decide/fleet.h"

namespace stoker {

class Fragmentation {
public:
    explicit Fragmentation(const std::vector<TypicalTask>& typical);

    // Expected free GPU, in thousandths of a device, that a task drawn from the typical ones cannot use on this node:
    // all of it when the task does not run here or needs no GPU, else the devices that have too little left for it.
    double of(const NodeRoom& room) const;

private:
    struct Entry {
        std::int64_t cpu_milli;
        GpuModels models;
        double share;
        int gpus, level;  // index into levels_
    };
    std::vector<Entry> entries_;
    std::vector<int> levels_;  // the distinct gpu_milli asked for
    double without_gpu_ = 0;   // share of the tasks that need none
};

}  // namespace stoker

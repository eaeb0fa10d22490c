// The states of all GPUs of this machine (allocation_state.h), from what the driver tells and what the owners'
// processes do beside it.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "observe/gpu/allocation_state.h"
#include "observe/gpu/gpu_view.h"
#include "observe/process_sample.h"

namespace stoker {

struct GpuAllocation {
    AllocationVerdict verdict;
    std::array<double, kAllocationStates> wasted_s{};  // by the state in which nothing came of it
};
using GpuAllocations = std::map<std::string, GpuAllocation, std::less<>>;  // by UUID

class GpuAllocationWatch {
public:
    explicit GpuAllocationWatch(AllocationRules rules = {}, ProcRoots roots = {})
        : rules_(rules), roots_(std::move(roots)) {}
    // Reads a few files of /proc for each process on a GPU: not more often than once a second is of use.
    const GpuAllocations& look(const GpuView& view, double now_s);

private:
    struct Use {
        std::uint64_t start_ticks = 0;
        double cpu_s = 0, disk_bytes = 0;
    };
    struct OwnerUse {
        std::optional<double> cpu, disk;
    };
    OwnerUse use_of(const GpuDevice& device, double seconds);
    std::optional<double> network_rate(double seconds);

    AllocationRules rules_;
    ProcRoots roots_;
    std::map<std::string, AllocationWatch> watches_;
    std::map<std::uint32_t, Use> before_, now_;
    std::optional<double> network_before_;
    double last_s_ = 0;
    GpuAllocations told_;
};

}  // namespace stoker

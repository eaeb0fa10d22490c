// The GPUs of this machine for whoever measures ranks on it (observe/gpu_source.h): one sampler for all of them, which
// runs while somebody asks and never makes anybody wait.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "observe/gpu/gpu_watch.h"
#include "observe/gpu_source.h"

namespace stoker {

// From what is known of the GPUs to figures by the names of series: what counts becomes a rate, an error of the driver
// is told from when it was first seen here on.
class GpuReadings {
public:
    std::vector<GpuReading> of(const GpuView& view, double now_s);

private:
    struct Counter {
        double value = 0, at_s = 0;
        std::optional<double> rate;
    };
    struct Last {
        std::map<GpuMetric, Counter> counters;
        double uncorrected_first = 0;
        bool uncorrected_told = false;
    };
    std::map<std::string, Last, std::less<>> last_;  // by UUID
    std::map<std::string, std::uint64_t, std::less<>>
        xids_before_;  // of a board, by PCI address, when it was first seen
};

// And for whoever asks whether the machine may take work (gpu_health.h).
class MachineGpus : public GpuSource {
public:
    virtual GpuView view() = 0;  // what was seen last; `starting` at first
};

// Whether it is worth while to start a process that asks a driver: its device, or a library that was named, is there.
bool may_have_nvidia_gpus(const std::string& root = "");
// Until this was called there is no source: the process must be one whose program has `gpu-sampler`.
void allow_gpus_of_ranks(GpuWatchOptions options);
// Shared by all who ask while one of them keeps it; none: not allowed, or no GPU here.
std::shared_ptr<MachineGpus> gpus_of_this_machine();

}  // namespace stoker

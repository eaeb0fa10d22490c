// AMD's and Intel's GPUs, as the files say that their kernel drivers keep below /sys/class/drm (amdgpu, i915, xe). No
// library is needed; what a driver has no file for is absent. Written after the kernel's documentation: no board of
// either was seen yet.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "observe/gpu/gpu_view.h"

namespace stoker {

// Whether there is one: a folder is listed, no driver is asked.
bool has_sysfs_gpus(const std::string& root);

class SysfsGpus {
public:
    explicit SysfsGpus(std::string root) : root_(std::move(root)) {}
    // Asks the drivers, and so may hang where one does. What is a rate needs a reading before.
    std::vector<GpuDevice> read(double now_s);

private:
    struct Last {
        double at_s = 0;
        std::optional<double> energy_j, idle_s;
    };
    std::string root_;
    std::map<std::string, Last> last_;  // by PCI address
};

// The same by a thread of its own, which is left behind where it hangs.
class SysfsWatch {
public:
    SysfsWatch(const std::string& root, double period_s);
    ~SysfsWatch();
    SysfsWatch(const SysfsWatch&) = delete;
    SysfsWatch& operator=(const SysfsWatch&) = delete;
    // What was read last, with its age; `first`: waits a moment for the first reading.
    std::vector<GpuDevice> latest(bool first) const;

private:
    struct Shared;
    const std::shared_ptr<Shared> shared_;
};

}  // namespace stoker

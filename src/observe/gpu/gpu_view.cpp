#include "observe/gpu/gpu_view.h"

#include <algorithm>

namespace stoker {

std::string_view to_string(GpuState state) {
    constexpr std::string_view kNames[] = {"ok", "slow", "stale", "hung", "lost", "missing"};
    return kNames[static_cast<std::size_t>(state)];
}

std::string_view to_string(NvmlDown reason) {
    constexpr std::string_view kNames[] = {
        "none",        "starting",      "library_absent",  "driver_not_loaded", "no_permission", "version_mismatch",
        "init_failed", "driver_locked", "sampler_crashed", "fork_failed"};
    return kNames[static_cast<std::size_t>(reason)];
}

std::string in_words(NvmlDown reason) {
    switch (reason) {
        case NvmlDown::none: return "NVIDIA's driver answers";
        case NvmlDown::starting: return "NVIDIA's driver is being asked";
        case NvmlDown::library_absent:
            return "no NVIDIA driver here; install it, or run this on the machine that has the GPUs";
        case NvmlDown::driver_not_loaded:
            return "NVIDIA's driver is installed and not loaded; modprobe nvidia, or restart after an update of the "
                   "kernel";
        case NvmlDown::no_permission:
            return "NVIDIA's driver refuses this user; it has to read /dev/nvidiactl and /dev/nvidia0";
        case NvmlDown::version_mismatch:
            return "library and kernel module of NVIDIA's driver have different versions; restart after its update";
        case NvmlDown::init_failed: return "NVIDIA's driver does not start; dmesg | grep -i nvrm says more";
        case NvmlDown::driver_locked:
            return "NVIDIA's driver does not come back from a call; dmesg | grep -i xid, and a restart of the machine";
        case NvmlDown::sampler_crashed:
            return "the process that asks NVIDIA's driver ended at a call, and is started again";
        case NvmlDown::fork_failed:
            return "no process could be made that asks NVIDIA's driver; limits of processes or memory";
    }
    return "";
}

bool GpuView::without_nvidia() const {
    return down == NvmlDown::library_absent && !devices.empty() &&
           std::none_of(devices.begin(), devices.end(), [](const GpuDevice& device) { return device.driver.empty(); });
}

CounterKeeper::Told CounterKeeper::keep(const std::string& uuid, GpuMetric metric, double raw, double wall_s) {
    const auto [at, fresh] = last_.try_emplace({uuid, metric}, Last{raw, 0, wall_s});
    Last& last = at->second;
    if (fresh) return {raw, wall_s};
    if (raw < last.raw) {
        constexpr double kHalf = 2147483648.0, kWhole = 4294967296.0;
        // Only what the driver counts in 32 bits wraps there.
        const bool narrow = metric == GpuMetric::pcie_replays || metric == GpuMetric::pcie_correctable ||
                            metric == GpuMetric::pcie_sent || metric == GpuMetric::pcie_received;
        if (narrow && last.raw > kHalf && last.raw < kWhole && raw < kHalf) {
            last.base += kWhole;
        } else {  // it begins anew: what was told stays told
            last.base += last.raw;
            last.since_s = wall_s;
        }
    }
    last.raw = raw;
    return {last.base + raw, last.since_s};
}

}  // namespace stoker

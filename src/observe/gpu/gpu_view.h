// What is known of the GPUs of a machine at one moment, as values: made by GpuWatch, read by everything that tells.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "observe/gpu/kernel_xids.h"
#include "observe/gpu/sample_board.h"

namespace stoker {

// stale: its sampler is gone and its last reading is old. slow: a call takes long. hung: it does not come back.
enum class GpuState : std::uint8_t { ok, slow, stale, hung, lost, missing };
std::string_view to_string(GpuState state);

struct GpuDevice {
    GpuState state = GpuState::missing;
    std::string uuid, parent_uuid, pci, name, vbios, serial, mig_profile;
    std::string driver;  // of the kernel, of boards that are read without a library (sysfs_gpus.h); empty: NVIDIA's
    int index = -1, minor = -1, gpu_instance = -1, compute_instance = -1;
    std::optional<double> age_s;  // of the last reading
    double collect_s = 0;
    std::string stuck_call;                                 // of a board that is slow or hung
    std::array<std::optional<double>, kGpuMetrics> values;  // fresh ones alone; counters never fall
    std::array<double, kGpuMetrics> counted_since{};        // of counters: seconds of the wall clock
    std::array<double, kGpuMetrics> read_at_s{};            // by the monotonic clock; 0: with the reading as a whole
    std::vector<GpuProcess> processes;
    bool processes_told = false;
    std::uint32_t processes_left_out = 0;
    bool whole() const { return parent_uuid.empty(); }
    std::optional<double> at(GpuMetric metric) const { return values[index_of(metric)]; }
};

struct XidCount {
    std::uint64_t count = 0;
    std::int64_t last_wall_us = 0;
};
// What happened to a board since the agent began, by its PCI address: it outlives the board's UUID being known.
struct GpuXids {
    std::map<int, XidCount> codes;
    std::array<std::uint64_t, 8> classes{};  // as xid_classes()
    int last = 0;
};

// Ready for others to act on: why NVML gives nothing.
enum class NvmlDown : std::uint8_t {
    none,
    starting,
    library_absent,
    driver_not_loaded,
    no_permission,
    version_mismatch,
    init_failed,
    driver_locked,
    sampler_crashed,
    fork_failed
};
std::string_view to_string(NvmlDown reason);
// The reason as a sentence without its full stop, and what to do.
std::string in_words(NvmlDown reason);

struct GpuView {
    NvmlDown down = NvmlDown::starting;
    std::string detail, driver, nvml, library;
    int cuda = 0;
    std::vector<GpuDevice> devices;  // by index, instances behind their board
    int present = 0, expected = 0;   // boards
    int unread = 0;                  // boards that were found and not read yet
    std::map<std::string, GpuXids, std::less<>> xids;
    bool kernel_log_up = false, pci_up = false;
    std::uint64_t kernel_lost = 0, events_lost = 0;
    int samplers = 0, restarts = 0;
    std::int64_t wall_us = 0;
    bool up() const { return down == NvmlDown::none; }
    // There are boards, and none of them is one that NVIDIA's library would tell of.
    bool without_nvidia() const;
};

// A counter that goes on when the driver's begins again (a reload) or wraps at 32 bits.
class CounterKeeper {
public:
    struct Told {
        double value = 0, since_s = 0;
    };
    Told keep(const std::string& uuid, GpuMetric metric, double raw, double wall_s);

private:
    struct Last {
        double raw = 0, base = 0, since_s = 0;
    };
    std::map<std::pair<std::string, GpuMetric>, Last> last_;
};

}  // namespace stoker

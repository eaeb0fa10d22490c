// Whether a GPU that somebody holds does something, from what was seen over a window. Pure: figures in, verdict out
// with the figures that led to it. A signal that is missing makes it unknown, never idle.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

enum class AllocationState : std::uint8_t {
    unallocated,
    busy,
    underused,
    host_bound,
    waiting,
    stalled,
    allocated_idle,
    unknown
};
std::string_view to_string(AllocationState state);
inline constexpr std::size_t kAllocationStates = 8;

// One second of one GPU; what could not be read is absent.
struct AllocationSample {
    double at_s = 0;
    bool held = false;                                                         // processes on it
    std::optional<double> utilization, sm_active, tensor_active, dram_active;  // shares of 1
    std::optional<double> power_w, power_limit_w, link_bytes_per_s;            // PCIe and NVLink together
    // Of the owner's processes, outside of the GPU.
    std::optional<double> cpu, disk_bytes_per_s, network_bytes_per_s;
    std::optional<bool> progress;       // steps or a heartbeat that it tells of: overrides a look of standing still
    std::optional<bool> open_requests;  // of a server
};

struct AllocationVerdict {
    AllocationState state = AllocationState::unknown;
    std::vector<std::string> evidence;
};

struct AllocationRules {
    double idle_window_s = 300, stall_window_s = 300;
    double quiet_sm = 0.01, quiet_cpu = 0.05;
    double quiet_link = 1e6, quiet_disk = 1e4, quiet_network = 1e4;  // bytes/s; less is keeping a connection
    double floor_slack = 1.10;
    double spin_utilization = 0.95, spin_activity = 0.02, spin_power = 0.25;
    double underused_sm = 0.30;
};

// Of one GPU. The power that its model draws with nothing on it is learned while nobody holds it, for ten minutes, or
// given.
class AllocationWatch {
public:
    explicit AllocationWatch(AllocationRules rules = {}, std::optional<double> idle_floor_w = {})
        : rules_(rules), given_floor_(idle_floor_w) {}
    AllocationVerdict look(const AllocationSample& sample);
    std::optional<double> idle_floor_w() const;

private:
    struct Power {
        double at_s = 0, watts = 0;
    };
    AllocationRules rules_;
    std::optional<double> given_floor_;
    std::deque<AllocationSample> window_;
    std::deque<Power> unheld_;
    std::optional<double> held_since_s_;
};

// The part of the time that was wasted, as an interval: with utilisation alone it is known only that it was no less
// than what stood still.
struct WasteShare {
    double low = 0, high = 1;
};
WasteShare waste_of(const AllocationSample& sample);

}  // namespace stoker

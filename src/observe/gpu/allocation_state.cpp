#include "observe/gpu/allocation_state.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

namespace stoker {

namespace {

using Sample = AllocationSample;

// The mean over the window; nothing when any second of it is without the figure. young: what is before the first that
// was ever told is no gap, since the board had only just been taken, or looked at.
std::optional<double> mean_of(const std::deque<Sample>& window, double from_s, std::optional<double> Sample::*figure,
                              bool young = false) {
    double sum = 0;
    std::size_t count = 0;
    bool told = !young;
    for (const Sample& sample : window) {
        told = told || sample.*figure;
        if (sample.at_s < from_s || !told) continue;
        if (!(sample.*figure)) return std::nullopt;
        sum += *(sample.*figure);
        ++count;
    }
    return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
}

bool any_of_window(const std::deque<Sample>& window, double from_s, const std::function<bool(const Sample&)>& holds) {
    return std::any_of(window.begin(), window.end(),
                       [&](const Sample& sample) { return sample.at_s >= from_s && holds(sample); });
}

}  // namespace

std::string_view to_string(AllocationState state) {
    constexpr std::string_view kNames[] = {"unallocated", "busy",    "underused",      "host_bound",
                                           "waiting",     "stalled", "allocated_idle", "unknown"};
    return kNames[static_cast<std::size_t>(state)];
}

std::optional<double> AllocationWatch::idle_floor_w() const {
    if (given_floor_) return given_floor_;
    if (unheld_.size() < 2 || unheld_.back().at_s - unheld_.front().at_s < 600) return std::nullopt;
    std::vector<double> watts;
    for (const Power& power : unheld_) watts.push_back(power.watts);
    const auto at = watts.begin() + static_cast<std::ptrdiff_t>(watts.size() / 20);
    std::nth_element(watts.begin(), at, watts.end());
    return *at;
}

AllocationVerdict AllocationWatch::look(const AllocationSample& sample) {
    if (!sample.held) {
        held_since_s_.reset();
        window_.clear();
        if (sample.power_w && (unheld_.empty() || sample.at_s - unheld_.back().at_s >= 5))
            unheld_.push_back({sample.at_s, *sample.power_w});
        while (unheld_.size() > 720) unheld_.pop_front();
        return {AllocationState::unallocated, {"no process holds it"}};
    }
    if (!held_since_s_) held_since_s_ = sample.at_s;
    window_.push_back(sample);
    const double most_s = std::max(rules_.idle_window_s, rules_.stall_window_s);
    while (!window_.empty() && window_.front().at_s < sample.at_s - most_s) window_.pop_front();
    // A gap longer than a few samples is a time of which nothing is known.
    for (std::size_t i = window_.size(); i-- > 1;)
        if (window_[i].at_s - window_[i - 1].at_s > 30) {
            window_.erase(window_.begin(), window_.begin() + static_cast<std::ptrdiff_t>(i));
            break;
        }
    const double seen_s = window_.back().at_s - window_.front().at_s;
    const auto progress = [](const Sample& s) { return s.progress.value_or(false); };
    const auto requests = [](const Sample& s) { return s.open_requests.value_or(false); };

    // It spins: kernels are resident and nothing is computed or moved, at a power that tells the same.
    const double stall_from = sample.at_s - rules_.stall_window_s;
    if (seen_s >= rules_.stall_window_s * 0.98) {
        const auto floor = idle_floor_w();
        const bool spins = !any_of_window(window_, stall_from, [&](const Sample& s) {
            if (!s.utilization || *s.utilization < rules_.spin_utilization) return true;
            if (!s.tensor_active || !s.dram_active || *s.tensor_active + *s.dram_active >= rules_.spin_activity)
                return true;
            if (!floor || !s.power_w || !s.power_limit_w || *s.power_limit_w <= *floor) return true;
            return (*s.power_w - *floor) / (*s.power_limit_w - *floor) >= rules_.spin_power;
        });
        if (spins && !any_of_window(window_, stall_from, progress))
            return {AllocationState::stalled,
                    {fmt::format("busy for {:.0f} s, with tensor cores and memory below {:.0f} % and {:.0f} W",
                                 rules_.stall_window_s, rules_.spin_activity * 100, *sample.power_w),
                     "no step and no heartbeat in that time"}};
    }

    const double recent = sample.at_s - 60;
    const auto busy = mean_of(window_, recent, &Sample::utilization, true),
               sm = mean_of(window_, recent, &Sample::sm_active, true);
    const auto cpu = mean_of(window_, recent, &Sample::cpu), disk = mean_of(window_, recent, &Sample::disk_bytes_per_s);
    if (!busy && !sm) return {AllocationState::unknown, {"no figure of its load"}};

    const double idle_from = sample.at_s - rules_.idle_window_s;
    const bool quiet_recently = (sm ? *sm : *busy) < rules_.quiet_sm;
    const bool quiet = !any_of_window(window_, idle_from, [&](const Sample& s) {
        if (s.sm_active) return *s.sm_active >= rules_.quiet_sm;
        return s.utilization.value_or(1) > 0;
    });
    if (quiet_recently) {
        if (any_of_window(window_, idle_from, requests))
            return {AllocationState::waiting, {"requests were open within the window"}};
        const bool host = (cpu && *cpu > 0.5) || (disk && *disk > 1e6);
        if (host)
            return {AllocationState::host_bound,
                    {fmt::format("the GPU is quiet, its owner uses {:.1f} processors and moves {:.0f} MB/s",
                                 cpu.value_or(0), disk.value_or(0) / 1e6)}};
    }
    if (quiet && seen_s >= rules_.idle_window_s * 0.98) {
        const auto floor = idle_floor_w();
        std::string missing;
        const auto needs = [&](bool there, const char* what) {
            if (!there) missing += (missing.empty() ? "" : ", ") + std::string(what);
        };
        needs(floor.has_value(), "the power of an idle board");
        const auto all_have = [&](std::optional<double> Sample::*figure) {
            return mean_of(window_, idle_from, figure).has_value();
        };
        needs(all_have(&Sample::power_w), "power");
        needs(all_have(&Sample::link_bytes_per_s), "PCIe and NVLink");
        needs(all_have(&Sample::cpu), "processors of the owner");
        needs(all_have(&Sample::disk_bytes_per_s), "disks of the owner");
        needs(all_have(&Sample::network_bytes_per_s), "network of the owner");
        if (!missing.empty()) return {AllocationState::unknown, {"quiet, and not known: " + missing}};
        const bool active = any_of_window(window_, idle_from, [&](const Sample& s) {
            return *s.power_w >= *floor * rules_.floor_slack || *s.link_bytes_per_s > rules_.quiet_link ||
                   *s.cpu >= rules_.quiet_cpu || *s.disk_bytes_per_s > rules_.quiet_disk ||
                   *s.network_bytes_per_s > rules_.quiet_network;
        });
        if (!active && !any_of_window(window_, idle_from, progress))
            return {AllocationState::allocated_idle,
                    {fmt::format("quiet for {:.0f} s at {:.0f} W (an idle board draws {:.0f} W)", rules_.idle_window_s,
                                 *sample.power_w, *floor),
                     "its owner uses no processor, disk or network"}};
    }
    if (quiet_recently)
        return {AllocationState::underused, {"quiet for less than the window, or with something going on beside"}};
    const double load = sm ? *sm : *busy;
    const std::string evidence = sm ? fmt::format("multiprocessors active {:.0f} %", load * 100)
                                    : fmt::format("utilisation {:.0f} %, which is an upper bound", load * 100);
    if (load >= rules_.underused_sm) return {AllocationState::busy, {evidence}};
    if (cpu && *cpu > 0.5 && busy && *busy < 0.5)
        return {AllocationState::host_bound,
                {evidence, fmt::format("its owner uses {:.1f} processors meanwhile", *cpu)}};
    return {AllocationState::underused, {evidence}};
}

WasteShare waste_of(const AllocationSample& sample) {
    if (sample.sm_active) return {1 - *sample.sm_active, 1 - *sample.sm_active};
    if (sample.utilization) return {1 - *sample.utilization, 1};
    return {};
}

}  // namespace stoker

#include "observe/gpu/gpu_waste.h"

#include <algorithm>
#include <optional>

namespace stoker {

namespace {

struct WasteMoment {
    double seconds = 1;
    std::map<std::string_view, double> mean, most;
    std::optional<double> at(std::string_view name) const {
        const auto found = mean.find(name);
        return found == mean.end() ? std::nullopt : std::optional(found->second);
    }
    double peak(std::string_view name) const {
        const auto found = most.find(name);
        return found == most.end() ? 0 : found->second;
    }
};

// The lines of AllocationRules, held against one point.
AllocationState state_of(const WasteMoment& moment, bool steps) {
    const AllocationRules rules;
    using S = AllocationState;
    const auto busy = moment.at("gpu_util"), sm = moment.at("gpu_sm");
    if (!busy && !sm) return S::unknown;
    const double load = sm.value_or(busy.value_or(0));
    const auto tensor = moment.at("gpu_tensor"), memory = moment.at("gpu_dram"), power = moment.at("gpu_power"),
               limit = moment.at("gpu_power_limit");
    // What a board draws at rest is not in the series; it is a seventh to a quarter of its limit.
    constexpr double kSpinPower = 0.4;
    const bool known_units = tensor && memory && power && limit && *limit > 0;
    if (busy.value_or(0) >= rules.spin_utilization && known_units && *tensor + *memory < rules.spin_activity &&
        *power < kSpinPower * *limit && !steps)
        return S::stalled;
    const auto cpu = moment.at("cpu");
    const double disk = moment.at("disk_read").value_or(0) + moment.at("disk_write").value_or(0);
    const bool host = cpu.value_or(0) > 0.5 || disk > 1e6;
    if (load < rules.quiet_sm) {
        if (host) return S::host_bound;
        // A GPU that worked at any time within the point is no idle one.
        if (std::max(moment.peak("gpu_util"), moment.peak("gpu_sm")) >= 5 * rules.quiet_sm || steps)
            return S::underused;
        if (!cpu || !moment.at("gpu_pcie")) return S::unknown;
        const bool quiet =
            *cpu < rules.quiet_cpu && *moment.at("gpu_pcie") + moment.at("gpu_nvlink").value_or(0) <= rules.quiet_link;
        return quiet ? S::allocated_idle : S::underused;
    }
    if (load >= rules.underused_sm) return S::busy;
    return host && busy.value_or(1) < 0.5 ? S::host_bound : S::underused;
}

}  // namespace

void GpuWaste::add(const GpuWaste& other) {
    seen_s += other.seen_s, least_s += other.least_s, most_s += other.most_s;
    for (std::size_t i = 0; i < kAllocationStates; ++i) by_state[i] += other.by_state[i];
}

const std::vector<std::string>& waste_measures() {
    static const std::vector<std::string> names = {
        "gpu_count",       "gpu_util",   "gpu_sm", "gpu_tensor", "gpu_dram",   "gpu_power", "gpu_pcie",
        "gpu_power_limit", "gpu_nvlink", "cpu",    "disk_read",  "disk_write", "step"};
    return names;
}

GpuWaste gpu_waste_of(const std::vector<RankSeries>& series) {
    std::map<int, std::map<std::int64_t, WasteMoment>> ranks;
    for (const RankSeries& each : series)
        for (const SeriesPoint& point : each.points) {
            WasteMoment& moment = ranks[each.rank][point.at_s];
            moment.mean[each.metric] = point.mean;
            moment.most[each.metric] = point.max;
            if (each.metric == "gpu_count") moment.seconds = each.seconds;
        }
    GpuWaste all;
    for (const auto& rank : ranks)
        for (const auto& entry : rank.second) {
            const WasteMoment& moment = entry.second;
            const double gpus = moment.at("gpu_count").value_or(0);
            if (gpus <= 0) continue;
            const double held_s = gpus * moment.seconds;
            const AllocationState state = state_of(moment, moment.at("step").has_value());
            all.seen_s += held_s;
            all.by_state[static_cast<std::size_t>(state)] += held_s;
            AllocationSample sample;
            sample.sm_active = moment.at("gpu_sm"), sample.utilization = moment.at("gpu_util");
            WasteShare share = waste_of(sample);
            if (state == AllocationState::stalled) share = {1, 1};  // busy for nothing
            all.least_s += share.low * held_s, all.most_s += share.high * held_s;
        }
    return all;
}

}  // namespace stoker

// What is asked of a board, and how often at least and at most. What is needed in every reading is cheap on every
// driver that was seen; for the rest, call_pace.h finds intervals that keep the budget. Of counters an older answer is
// as good for a rate over a longer time; what only changes when a board fails is worth a minute's delay, its errors
// (Xid) are told at once by an event.
#include <string_view>

#include "io/process.h"
#include "observe/gpu/read_gpu.h"

namespace stoker {

std::span<const GpuReader::Question> GpuReader::questions() {
    static constexpr Question kQuestions[] = {
        {"utilization", {1, 1}, &GpuReader::read_utilization},
        {"memory", {1, 1}, &GpuReader::read_memory},
        // Before the temperature, which stands in for it where it is not told.
        {"temperature margin", {1, 30}, &GpuReader::read_margin},
        {"temperature", {1, 1}, &GpuReader::read_temperature},
        {"clocks", {1, 1}, &GpuReader::read_clocks},
        {"clock reasons", {1, 1}, &GpuReader::read_reasons},
        {"power", {1, 2}, &GpuReader::read_power},
        {"profiling (GPM)", {1, 2}, &GpuReader::read_profile},
        {"profiling of links (GPM)", {1, 10}, &GpuReader::read_profile_of_links},
        {"performance state", {1, 10}, &GpuReader::read_performance_state},
        {"temperature of memory", {1, 10}, &GpuReader::read_heat_of_memory},
        {"energy", {1, 10}, &GpuReader::read_energy},
        {"time held, by policy", {1, 10}, &GpuReader::read_held_by_policy},
        {"time held, by reason", {1, 10}, &GpuReader::read_held_by_reason},
        {"PCIe bytes", {1, 10}, &GpuReader::read_pcie_bytes},
        {"NVLink bytes", {1, 10}, &GpuReader::read_nvlink_bytes},
        {"recovery action", {1, 30}, &GpuReader::read_recovery},
        {"PCIe link", {1, 30}, &GpuReader::read_pcie_link},
        {"PCIe replays", {1, 60}, &GpuReader::read_replays},
        {"processes", {5, 10}, &GpuReader::read_processes},
        {"work of processes", {5, 10}, &GpuReader::read_process_usage},
        {"video engines", {5, 30}, &GpuReader::read_video},
        {"faults, limits and modes", {60, 60}, &GpuReader::read_slow, true},
    };
    return kQuestions;
}

void GpuReader::read(bool whole) {
    lost_ = false;
    const std::int64_t began = monotonic_clock_us();
    const auto all = questions();
    for (std::size_t i = 0; i < all.size(); ++i) {
        if ((part_ && all[i].of_board) || (!whole && !pace_.due(i, reading_))) continue;
        every_ = pace_.next_in(i, reading_);
        answered_ = false;
        const std::int64_t asked_us = monotonic_clock_us();
        (this->*all[i].ask)();
        pace_.took(i, reading_, static_cast<double>(monotonic_clock_us() - asked_us), !answered_);
    }
    // Each time at first, when little is known of what calls cost.
    if (reading_ < 10 || reading_ % 10 == 0) pace_.plan();
    ++reading_;
    // A driver that answers 15 to this board answers it to all of its calls; one call that is not supported is none.
    data_.last_return = lost_ ? static_cast<int>(nvml::kGpuLost) : 0;
    data_.read_at_us = monotonic_clock_us();
    data_.collect_us = data_.read_at_us - began;
}

std::vector<GpuReader::Paced> GpuReader::paced() const {
    std::vector<Paced> rows;
    const auto all = questions();
    for (std::size_t i = 0; i < all.size(); ++i)
        rows.push_back(
            {.question = all[i].name, .wish = all[i].wish, .every = pace_.every(i), .cost_us = pace_.cost_us(i)});
    return rows;
}

}  // namespace stoker

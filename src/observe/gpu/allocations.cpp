#include "observe/gpu/allocations.h"

#include <unistd.h>

#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "observe/proc_text.h"

namespace stoker {

namespace {

std::optional<std::string> text_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return std::nullopt;
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

}  // namespace

// Of all processes on the GPU; nothing when one of them cannot be looked at.
GpuAllocationWatch::OwnerUse GpuAllocationWatch::use_of(const GpuDevice& device, double seconds) {
    OwnerUse sum;
    if (!device.processes_told || device.processes_left_out > 0) return sum;
    double cpu = 0, disk = 0;
    bool cpu_known = seconds > 0, disk_known = seconds > 0;
    for (const GpuProcess& process : device.processes) {
        const std::string folder = fmt::format("{}/{}", roots_.proc, process.pid);
        const auto stat_text = text_of(folder + "/stat"), io_text = text_of(folder + "/io");
        const auto stat = stat_text ? parse_proc_stat(*stat_text) : std::nullopt;
        if (!stat) return sum;
        const auto io = io_text ? parse_proc_io(*io_text) : std::nullopt;
        const Use use{
            stat->start_ticks,
            static_cast<double>(stat->user_ticks + stat->system_ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK)),
            io ? static_cast<double>(io->read_bytes + io->write_bytes) : -1};
        now_[process.pid] = use;
        const auto last = before_.find(process.pid);
        if (last == before_.end() || last->second.start_ticks != use.start_ticks) {
            cpu_known = disk_known = false;
            continue;
        }
        cpu += use.cpu_s - last->second.cpu_s;
        disk_known = disk_known && use.disk_bytes >= 0 && last->second.disk_bytes >= 0;
        disk += use.disk_bytes - last->second.disk_bytes;
    }
    if (cpu_known) sum.cpu = cpu / seconds;
    if (disk_known) sum.disk = disk / seconds;
    return sum;
}

// The whole machine's: an upper bound of what any owner sends. Where that is not quiet, it is not known whose it is.
std::optional<double> GpuAllocationWatch::network_rate(double seconds) {
    const auto text = text_of(roots_.proc + "/net/dev");
    const auto bytes = text ? parse_net_dev(*text) : std::nullopt;
    if (!bytes) return std::nullopt;
    const double now = static_cast<double>(bytes->received + bytes->sent);
    const auto before = std::exchange(network_before_, now);
    if (!before || seconds <= 0 || now < *before) return std::nullopt;
    const double rate = (now - *before) / seconds;
    return rate <= rules_.quiet_network ? std::optional(rate) : std::nullopt;
}

const GpuAllocations& GpuAllocationWatch::look(const GpuView& view, double now_s) {
    using M = GpuMetric;
    const double seconds = last_s_ == 0 ? 0 : now_s - last_s_;
    last_s_ = now_s;
    now_.clear();
    const auto network = network_rate(seconds);
    std::map<std::string, bool> there;
    for (const GpuDevice& device : view.devices) {
        if (!device.whole() || device.uuid.empty() || device.at(M::mig).value_or(0) != 0) continue;
        if (device.state != GpuState::ok && device.state != GpuState::slow) continue;
        there[device.uuid] = true;
        const OwnerUse owner = use_of(device, seconds);
        AllocationSample sample{.at_s = now_s, .held = !device.processes.empty()};
        sample.utilization = device.at(M::utilization), sample.sm_active = device.at(M::sm_active);
        sample.tensor_active = device.at(M::tensor_active), sample.dram_active = device.at(M::dram_active);
        sample.power_w = device.at(M::power_instant) ? device.at(M::power_instant) : device.at(M::power_average);
        sample.power_limit_w = device.at(M::power_limit);
        if (const auto sent = device.at(M::pcie_sent_rate), received = device.at(M::pcie_received_rate);
            sent && received)
            sample.link_bytes_per_s = *sent + *received + device.at(M::nvlink_rate).value_or(0);
        sample.cpu = owner.cpu, sample.disk_bytes_per_s = owner.disk, sample.network_bytes_per_s = network;
        AllocationWatch& watch = watches_.try_emplace(device.uuid, rules_).first->second;
        GpuAllocation& told = told_[device.uuid];
        told.verdict = device.processes_told
                           ? watch.look(sample)
                           : AllocationVerdict{AllocationState::unknown, {"its processes cannot be listed"}};
        const AllocationState state = told.verdict.state;
        if (state == AllocationState::allocated_idle || state == AllocationState::stalled ||
            state == AllocationState::unallocated)
            told.wasted_s[static_cast<std::size_t>(state)] += seconds;
    }
    // Of a board that does not answer nothing is known; its sums stay.
    for (auto& entry : told_)
        if (!there.contains(entry.first))
            entry.second.verdict = {AllocationState::unknown, {"the board does not answer"}};
    before_ = now_;
    return told_;
}

}  // namespace stoker

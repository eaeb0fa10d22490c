#include "observe/gpu_source.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "base/text.h"

namespace stoker {

const std::vector<GpuMeasure>& gpu_measures() {
    using enum GpuJoin;
    static const std::vector<GpuMeasure> all = {
        {"gpu_count", "", "GPUs that the rank has processes on", sum},
        {"gpu_lost", "", "of them, that do not answer", sum},
        {"gpu_util", "of the time", "a kernel was resident on the GPU; one that only waits counts", mean},
        {"gpu_sm", "of the cycles", "multiprocessors with a warp resident", mean},
        {"gpu_tensor", "of the cycles", "a tensor pipe issued", mean},
        {"gpu_dram", "of the bandwidth", "of device memory, used", mean},
        {"gpu_fp64", "of the cycles", "the double-precision pipe issued", mean},
        {"gpu_fp32", "of the cycles", "the single-precision pipe issued, tensor cores apart", mean},
        {"gpu_memory", "bytes", "device memory in use", sum},
        {"gpu_memory_size", "bytes", "device memory", sum},
        {"gpu_power", "W", "drawn by the boards", sum},
        {"gpu_power_limit", "W", "limit in force", sum},
        {"gpu_power_default", "W", "limit as the board was delivered", sum},
        {"gpu_temperature", "C", "of the hottest board", most},
        {"gpu_margin", "C", "left before the board slows down", least},
        {"gpu_clock", "Hz", "of the multiprocessors, the slowest board", least},
        {"gpu_clock_max", "Hz", "the highest clock of the boards", least},
        {"gpu_held_heat", "s/s", "clocks held down by heat", most},
        {"gpu_held_power", "s/s", "clocks held down by the power limit; usual at full load", most},
        {"gpu_held_brake", "s/s", "clocks held down by the power supply or another signal to the board", most},
        {"gpu_lanes", "", "PCIe lanes in use", least},
        {"gpu_lanes_max", "", "PCIe lanes that are possible here", least},
        {"gpu_gen", "", "PCIe generation in use; lower while the board is idle", least},
        {"gpu_gen_max", "", "PCIe generation that is possible here", least},
        {"gpu_pcie", "bytes/s", "over PCIe, both ways", sum},
        {"gpu_nvlink", "bytes/s", "over NVLink, both ways", sum},
        {"gpu_links", "", "NVLinks that a board has", most},
        {"gpu_links_down", "", "NVLinks that are down", most},
        {"gpu_ecc_corrected", "1/s", "memory errors that were corrected", sum},
        {"gpu_ecc_uncorrected", "", "memory errors that were not, since the meter began", sum},
        {"gpu_remap_pending", "", "1 while rows of memory wait for a reset to be replaced", most},
        {"gpu_replays", "1/s", "PCIe packets that had to be sent again", sum},
        {"gpu_xid", "", "the last error of the driver on the board since the meter began", most},
        {"gpu_other", "", "processes on the boards that are of no rank of the run", sum},
        {"gpu_other_sm", "of the time", "the multiprocessors worked for them", most},
        {"gpu_other_instances", "", "instances of the same board (MIG) that others hold", sum},
    };
    return all;
}

namespace {

// "0,2" or "GPU-1b2c,MIG-...": as CUDA reads it, up to the first entry that names nothing.
bool is_visible(const GpuReading& board, std::string_view visible) {
    for (const std::string_view part : split(visible, ',')) {
        const std::string_view word = trim(part);
        if (word.starts_with("GPU-") || word.starts_with("MIG-")) {
            if (board.uuid.starts_with(word)) return true;
            continue;
        }
        int index = -1;
        const auto end = std::from_chars(word.data(), word.data() + word.size(), index);
        if (end.ec != std::errc() || end.ptr != word.data() + word.size() || index < 0) return false;
        if (board.index == index && !board.uuid.starts_with("MIG-")) return true;
    }
    return false;
}

double joined(GpuJoin join, const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    switch (join) {
        case GpuJoin::mean: return sum / static_cast<double>(values.size());
        case GpuJoin::sum: return sum;
        case GpuJoin::most: return *std::max_element(values.begin(), values.end());
        case GpuJoin::least: return *std::min_element(values.begin(), values.end());
    }
    return sum;
}

}  // namespace

std::vector<std::pair<std::string_view, double>> gpu_values_of(const std::vector<GpuReading>& boards,
                                                               const std::vector<std::int64_t>& own,
                                                               const std::vector<std::int64_t>& of_run,
                                                               std::string_view visible) {
    const auto among = [](const std::vector<std::int64_t>& pids, std::int64_t pid) {
        return std::find(pids.begin(), pids.end(), pid) != pids.end();
    };
    std::vector<const GpuReading*> held;
    bool any_ours = false;
    for (const GpuReading& board : boards)
        for (const GpuHolder& holder : board.holders) {
            any_ours = any_ours || among(of_run, holder.pid);
            if (!among(own, holder.pid)) continue;
            held.push_back(&board);
            break;
        }
    // A container without the host's pids is told pids that mean nothing there. What its environment says is as good
    // as long as no holder is known at all; one that was known and let go of its board holds none.
    const bool by_pid = !held.empty();
    if (!by_pid && !any_ours && !visible.empty())
        for (const GpuReading& board : boards)
            if (is_visible(board, visible) && (!board.holders_told || !board.holders.empty())) held.push_back(&board);
    std::vector<std::pair<std::string_view, double>> out;
    if (held.empty()) return out;

    std::map<std::string_view, std::vector<double>> seen;
    for (const GpuReading* board : held) {
        for (const auto& [name, value] : board->values) seen[name].push_back(value);
        if (!by_pid || !board->holders_told) continue;
        double others = 0, sm = 0;
        bool sm_told = false;
        for (const GpuHolder& holder : board->holders) {
            if (among(of_run, holder.pid)) continue;
            ++others;
            if (holder.sm >= 0) sm += holder.sm, sm_told = true;
        }
        seen["gpu_other"].push_back(others);
        if (others == 0 || sm_told) seen["gpu_other_sm"].push_back(std::min(1.0, sm));
    }
    seen["gpu_count"] = {static_cast<double>(held.size())};
    for (const GpuMeasure& measure : gpu_measures())
        if (const auto found = seen.find(measure.name); found != seen.end())
            out.emplace_back(measure.name, joined(measure.join, found->second));
    return out;
}

}  // namespace stoker

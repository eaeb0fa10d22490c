// What the GPUs of this machine do, for whoever measures ranks: figures of each board under the names of the series,
// and whose processes are on it. Who asks the driver (observe/gpu/rank_gpus.h) is behind this, so that a meter that
// hangs on no driver needs to know none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stoker {

struct GpuHolder {
    std::int64_t pid = 0;
    double sm = -1;  // share of the board's multiprocessors that it used lately; -1: not told
};
// A board, or an instance of one (MIG).
struct GpuReading {
    std::string uuid;
    int index = -1;
    bool holders_told = false;
    std::vector<GpuHolder> holders;
    std::vector<std::pair<std::string_view, double>>
        values;  // by the names in gpu_measures(); what is not known is absent
};

class GpuSource {
public:
    virtual ~GpuSource() = default;
    // What was read last; never waits for a driver.
    virtual std::vector<GpuReading> read() = 0;
};

// How what several boards of one rank say becomes one figure.
enum class GpuJoin : std::uint8_t { mean, sum, most, least };
struct GpuMeasure {
    std::string_view name, unit, meaning;
    GpuJoin join = GpuJoin::mean;
};
const std::vector<GpuMeasure>& gpu_measures();

// Of a rank with these processes: the figures of the boards that one of them holds, and what others do on those. Where
// no holder is of this namespace of pids, the boards are those that its environment names (`visible`, the value of
// CUDA_VISIBLE_DEVICES, with UUIDs or indices). Nothing: it holds none.
std::vector<std::pair<std::string_view, double>> gpu_values_of(const std::vector<GpuReading>& boards,
                                                               const std::vector<std::int64_t>& own,
                                                               const std::vector<std::int64_t>& of_run,
                                                               std::string_view visible);

}  // namespace stoker

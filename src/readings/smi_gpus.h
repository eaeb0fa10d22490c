// One GPU as any of nvidia-smi's outputs tells it, and what is judged of all of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "readings/tool_reader.h"

namespace stoker {

struct SmiGpu {
    ToolPlace place;
    std::string index, name, bus;
    std::optional<double> memory_used_mib, memory_total_mib, utilisation, temperature, power, power_limit;
    std::optional<double> ecc_uncorrected;  // volatile: since the driver was loaded
    std::optional<double> pcie_width, pcie_width_most;
    std::string broken;    // "ERR!", "GPU is lost", "[Unknown Error]": as written
    std::string mig;       // Enabled, Disabled, with * while a reset is awaited; empty: not told
    std::string remapped;  // what is told of row remapping that failed or waits for a reset
    std::string slowed;    // reasons for low clocks that are a fault: "hw_thermal_slowdown"
    std::size_t mig_devices = 0;
    bool mig_told = false;  // the output says which MIG devices there are
};

struct SmiSheet {
    std::string driver, cuda;
    std::vector<SmiGpu> gpus;
};

// What nvidia-smi says when it cannot look at any GPU: a cause and what to do. nullopt: it is none of these lines.
struct SmiTrouble {
    ToolPlace place;
    std::string what, fix;
};
std::optional<SmiTrouble> smi_trouble(const ToolLines& lines);

// Of a whole text that lists none.
ToolReading no_gpu_seen(ReadingBuilder& out);

// Count, model and memory against the size; faults that need nothing to be held against.
ToolReading judge_smi(ReadingBuilder& out, const SmiSheet& sheet, const ToolContext& context);

}  // namespace stoker

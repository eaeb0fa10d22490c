// A fleet as placement sees it: what each node has left. Sizes are integers, so that nothing is lost by rounding: CPU
// in thousandths of a core, GPU in thousandths of a device, memory in MiB.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker {

inline constexpr int kWholeGpu = 1000;     // thousandths
inline constexpr int kMaxGpusOfNode = 16;  // devices of one node
inline constexpr int kMaxGpuModels = 64;   // a set of models is one word

// One bit per model of the fleet; 0 asks for none in particular.
using GpuModels = std::uint64_t;

struct FleetNode {
    std::string name;
    std::int64_t cpu_milli = 0, memory_mib = 0;
    int gpus = 0;
    int model = -1;        // index into Fleet::models; -1: no GPU
    std::string topology;  // NodeInfo::topology
    int engine = 0;        // which of several has it
};

// What one task takes from one node: gpus whole devices (gpu_milli 1000), or a part of one device.
struct TaskShape {
    std::int64_t cpu_milli = 0, memory_mib = 0;
    int gpus = 0, gpu_milli = 0;
    GpuModels models = 0;
    int engine = -1;  // on nodes of this one only; -1: on any
    std::int64_t total_gpu_milli() const { return static_cast<std::int64_t>(gpus) * gpu_milli; }
    bool shares_gpu() const { return gpus == 1 && gpu_milli < kWholeGpu; }
    friend bool operator==(const TaskShape&, const TaskShape&) = default;
};

struct Fleet {
    std::vector<FleetNode> nodes;
    std::vector<std::string> models;
    std::int64_t total_gpu_milli() const;
};

// What is free of one node now.
struct NodeRoom {
    std::int64_t cpu_milli = 0, memory_mib = 0;
    std::array<std::int16_t, kMaxGpusOfNode> gpu_milli{};  // of each device
    std::int16_t gpus = 0, model = -1;
    std::int32_t gpu_left = 0;  // sum over devices
    std::int16_t engine = 0;

    bool has_model(GpuModels wanted) const { return wanted == 0 || (model >= 0 && (wanted >> model & 1) != 0); }
    bool is_of(int wanted) const { return wanted < 0 || wanted == engine; }
    int whole_gpus() const;
    // Whole devices for whole requests, one device with enough left for a part of one.
    bool fits(const TaskShape& task) const;
};
NodeRoom room_of(const FleetNode& node);

// Which devices of the node; a bit each. Whole devices are taken in order; for a part, the device with least left.
std::uint32_t whole_devices(const NodeRoom& room, int count);
int tightest_device(const NodeRoom& room, int gpu_milli);  // -1: none has as much left
void take(NodeRoom& room, const TaskShape& task, std::uint32_t devices);
void give_back(NodeRoom& room, const TaskShape& task, std::uint32_t devices);

// The kinds of task a fleet usually gets, each with its share of all tasks; the shares need not add up to 1.
struct TypicalTask {
    TaskShape shape;
    double share = 0;
};
// The most frequent shapes that together make up `covered` of the tasks.
std::vector<TypicalTask> typical_tasks(const std::vector<TaskShape>& tasks, double covered);

}  // namespace stoker

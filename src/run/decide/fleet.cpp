#include "run/decide/fleet.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace stoker {

std::int64_t Fleet::total_gpu_milli() const {
    std::int64_t sum = 0;
    for (const FleetNode& node : nodes) sum += static_cast<std::int64_t>(node.gpus) * kWholeGpu;
    return sum;
}

int NodeRoom::whole_gpus() const {
    int count = 0;
    for (int i = 0; i < gpus; ++i) count += gpu_milli[static_cast<std::size_t>(i)] == kWholeGpu ? 1 : 0;
    return count;
}

bool NodeRoom::fits(const TaskShape& task) const {
    if (cpu_milli < task.cpu_milli || memory_mib < task.memory_mib || !is_of(task.engine)) return false;
    if (task.gpus == 0) return true;
    if (gpu_left < task.total_gpu_milli() || !has_model(task.models)) return false;
    if (task.shares_gpu()) return tightest_device(*this, task.gpu_milli) >= 0;
    return whole_gpus() >= task.gpus;
}

NodeRoom room_of(const FleetNode& node) {
    NodeRoom room;
    room.cpu_milli = node.cpu_milli;
    room.memory_mib = node.memory_mib;
    room.engine = static_cast<std::int16_t>(node.engine);
    room.gpus = static_cast<std::int16_t>(node.gpus);
    room.model = static_cast<std::int16_t>(node.gpus > 0 ? node.model : -1);
    std::fill_n(room.gpu_milli.begin(), node.gpus, static_cast<std::int16_t>(kWholeGpu));
    room.gpu_left = node.gpus * kWholeGpu;
    return room;
}

std::uint32_t whole_devices(const NodeRoom& room, int count) {
    std::uint32_t devices = 0;
    for (int i = 0; i < room.gpus && count > 0; ++i) {
        if (room.gpu_milli[static_cast<std::size_t>(i)] != kWholeGpu) continue;
        devices |= 1U << i;
        --count;
    }
    return devices;
}

int tightest_device(const NodeRoom& room, int gpu_milli) {
    int best = -1;
    for (int i = 0; i < room.gpus; ++i) {
        const int left = room.gpu_milli[static_cast<std::size_t>(i)];
        if (left < gpu_milli) continue;
        if (best < 0 || left < room.gpu_milli[static_cast<std::size_t>(best)]) best = i;
    }
    return best;
}

namespace {

void move_room(NodeRoom& room, const TaskShape& task, std::uint32_t devices, int sign) {
    room.cpu_milli -= sign * task.cpu_milli;
    room.memory_mib -= sign * task.memory_mib;
    for (int i = 0; i < room.gpus; ++i) {
        if ((devices >> i & 1) == 0) continue;
        auto& left = room.gpu_milli[static_cast<std::size_t>(i)];
        left = static_cast<std::int16_t>(left - sign * task.gpu_milli);
        room.gpu_left -= sign * task.gpu_milli;
    }
}

}  // namespace

void take(NodeRoom& room, const TaskShape& task, std::uint32_t devices) {
    move_room(room, task, devices, 1);
}
void give_back(NodeRoom& room, const TaskShape& task, std::uint32_t devices) {
    move_room(room, task, devices, -1);
}

std::vector<TypicalTask> typical_tasks(const std::vector<TaskShape>& tasks, double covered) {
    // Memory does not tell kinds apart: it is never what fragments a GPU.
    using Key = std::tuple<std::int64_t, int, int, GpuModels>;
    std::map<Key, std::int64_t> counts;
    for (const TaskShape& task : tasks) ++counts[{task.cpu_milli, task.gpus, task.gpu_milli, task.models}];
    std::vector<std::pair<std::int64_t, Key>> order;
    order.reserve(counts.size());
    for (const auto& [key, count] : counts) order.emplace_back(count, key);
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
        return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    std::vector<TypicalTask> typical;
    const double all = static_cast<double>(tasks.size());
    double seen = 0;
    for (const auto& [count, key] : order) {
        if (seen >= covered * all) break;
        seen += static_cast<double>(count);
        const auto& [cpu, gpus, milli, models] = key;
        typical.push_back({.shape = {.cpu_milli = cpu, .gpus = gpus, .gpu_milli = milli, .models = models},
                           .share = static_cast<double>(count) / all});
    }
    return typical;
}

}  // namespace stoker

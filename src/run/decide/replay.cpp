#include "run/decide/replay.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

// The share of tasks whose shapes count as typical, as in the published study.
constexpr double kTypical = 0.95;

template <typename T>
void shuffle(std::vector<T>& items, SplitMix& random) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.below(i)]);
}

double share_of(std::int64_t part, std::int64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

double fragmented(const Fleet& fleet, const Placer& placer, const Fragmentation& measure) {
    double sum = 0;
    for (std::size_t node = 0; node < fleet.nodes.size(); ++node)
        sum += measure.of(placer.room(static_cast<int>(node)));
    const auto capacity = static_cast<double>(fleet.total_gpu_milli());
    return capacity > 0 ? sum / capacity : 0;
}

std::vector<TaskShape> shapes_of(const std::vector<FleetTask>& tasks) {
    std::vector<TaskShape> shapes;
    shapes.reserve(tasks.size());
    for (const FleetTask& task : tasks) shapes.push_back(task.shape);
    return shapes;
}

}  // namespace

std::vector<TaskShape> make_demand(const Fleet& fleet, const std::vector<FleetTask>& tasks, double demand,
                                   std::uint64_t seed) {
    std::vector<TaskShape> shapes = shapes_of(tasks);
    if (demand <= 0 || shapes.empty()) return shapes;
    SplitMix random(SplitMix::mix(seed ^ 0x5eed0fdeULL));
    const double wanted = demand * static_cast<double>(fleet.total_gpu_milli());
    double asked = 0;
    for (const TaskShape& shape : shapes) asked += static_cast<double>(shape.total_gpu_milli());
    while (asked > wanted && !shapes.empty()) {
        std::swap(shapes[random.below(shapes.size())], shapes.back());
        asked -= static_cast<double>(shapes.back().total_gpu_milli());
        shapes.pop_back();
    }
    const bool any = std::any_of(tasks.begin(), tasks.end(), [](const FleetTask& t) { return t.shape.gpus > 0; });
    while (any && asked < wanted) {
        const TaskShape& next = tasks[random.below(tasks.size())].shape;
        if (asked + next.gpu_milli > wanted) break;
        asked += static_cast<double>(next.total_gpu_milli());
        shapes.push_back(next);
    }
    shuffle(shapes, random);
    return shapes;
}

ReplayResult replay(const Fleet& as_listed, const std::vector<FleetTask>& tasks, const ReplayOptions& options) {
    // Equal scores go to the first node, so the order decides up to two points of allocation. The published means are
    // met when the order is drawn anew for every run, and missed by up to 2 points in the order of the nodes' names.
    Fleet fleet = as_listed;
    if (options.demand > 0) {
        SplitMix random(SplitMix::mix(options.seed ^ 0x0de50fULL));
        shuffle(fleet.nodes, random);
    }
    const std::vector<TypicalTask> typical = typical_tasks(shapes_of(tasks), kTypical);
    const Fragmentation measure(typical);
    const std::vector<TaskShape> shapes = make_demand(fleet, tasks, options.demand, options.seed);
    Placer placer(fleet, options.policy, typical, options.seed);
    ReplayResult result;
    result.capacity_gpu_milli = fleet.total_gpu_milli();
    int next_tenth = 1;
    for (const TaskShape& shape : shapes) {
        ++result.tasks;
        result.demand_gpu_milli += shape.total_gpu_milli();
        if (placer.place(shape)) {
            ++result.placed;
            result.allocated_gpu_milli += shape.total_gpu_milli();
        } else {
            ++result.refused;
        }
        while (share_of(result.demand_gpu_milli, result.capacity_gpu_milli) >= 0.1 * next_tenth) {
            result.points.push_back({.demand = 0.1 * next_tenth,
                                     .allocated = share_of(result.allocated_gpu_milli, result.capacity_gpu_milli),
                                     .fragmented = fragmented(fleet, placer, measure)});
            ++next_tenth;
        }
    }
    result.allocated = share_of(result.allocated_gpu_milli, result.capacity_gpu_milli);
    result.fragmented = fragmented(fleet, placer, measure);
    return result;
}

}  // namespace stoker

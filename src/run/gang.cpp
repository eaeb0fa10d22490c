#include "run/gang.h"

#include <algorithm>

namespace stoker {
namespace {

constexpr std::int64_t kMiBytes = 1 << 20;

struct GangNode {
    int node = 0, takes = 0;
    std::int64_t gpu_left = 0, cpu_left = 0;
    // The one with least left over.
    auto tightness() const { return std::tuple(gpu_left, cpu_left, node); }
};

void fill_node(Placer& placer, const GangNode& node, int count, const TaskShape& shape, std::vector<Placement>& out) {
    for (int i = 0; i < count; ++i) out.push_back(placer.place_on(node.node, shape));
}

}  // namespace

std::optional<TaskShape> FleetView::shape_of(const RankNeeds& needs) const {
    TaskShape shape{.cpu_milli = needs.cpu_milli,
                    .memory_mib = (needs.memory_bytes + kMiBytes - 1) / kMiBytes,
                    .gpus = needs.gpus,
                    .gpu_milli = needs.gpus == 0 ? 0 : needs.gpu_milli};
    if (!needs.gpu_model.empty()) {
        const auto found = std::find(fleet.models.begin(), fleet.models.end(), needs.gpu_model);
        if (found == fleet.models.end()) return std::nullopt;
        shape.models = GpuModels{1} << (found - fleet.models.begin());
    }
    return shape;
}

Placement FleetView::placement_of(const RankPlace& place) const {
    const auto found = index.find(place.node);
    return found == index.end() ? Placement{} : Placement{.node = found->second, .devices = place.devices};
}

RankPlace FleetView::place_of(const Placement& placement) const {
    return {.node = fleet.nodes[static_cast<std::size_t>(placement.node)].name, .devices = placement.devices};
}

FleetView view_of(const State& state) {
    FleetView view;
    for (const auto& [name, node] : state.nodes) {
        if (node.state != NodeState::ready) continue;
        FleetNode entry{.name = name,
                        .cpu_milli = node.info.cpu_milli,
                        .memory_mib = node.info.memory_bytes / kMiBytes,
                        .gpus = static_cast<int>(std::min<std::size_t>(node.info.devices.size(), kMaxGpusOfNode))};
        if (entry.gpus > 0) {
            const std::string& model = node.info.devices.front().model;
            auto found = std::find(view.fleet.models.begin(), view.fleet.models.end(), model);
            if (found == view.fleet.models.end() && view.fleet.models.size() < kMaxGpuModels)
                found = view.fleet.models.insert(found, model);
            if (found != view.fleet.models.end()) entry.model = static_cast<int>(found - view.fleet.models.begin());
        }
        view.index.emplace(name, static_cast<int>(view.fleet.nodes.size()));
        view.fleet.nodes.push_back(std::move(entry));
    }
    return view;
}

int how_many(const NodeRoom& room, const TaskShape& shape, int most) {
    if (shape.gpus > 0 && !room.has_model(shape.models)) return 0;
    std::int64_t count = most;
    if (room.cpu_milli < 0 || room.memory_mib < 0) return 0;
    if (shape.cpu_milli > 0) count = std::min(count, room.cpu_milli / shape.cpu_milli);
    if (shape.memory_mib > 0) count = std::min(count, room.memory_mib / shape.memory_mib);
    if (shape.gpus == 0 || count == 0) return static_cast<int>(count);
    std::int64_t gpus = 0;
    if (shape.shares_gpu()) {
        for (int i = 0; i < room.gpus; ++i)
            gpus += std::max<int>(room.gpu_milli[static_cast<std::size_t>(i)], 0) / shape.gpu_milli;
    } else {
        gpus = room.whole_gpus() / shape.gpus;
    }
    return static_cast<int>(std::min(count, gpus));
}

std::vector<Placement> place_gang(Placer& placer, std::size_t nodes_of_fleet, const Gang& gang) {
    if (gang.ranks == 1) {
        const Placement one = placer.place(gang.shape);
        return one ? std::vector{one} : std::vector<Placement>{};
    }
    std::vector<GangNode> nodes;
    const int per_node = gang.nodes > 0 ? gang.ranks / gang.nodes : 1;
    std::int64_t room_for = 0;
    for (std::size_t i = 0; i < nodes_of_fleet; ++i) {
        const NodeRoom& room = placer.room(static_cast<int>(i));
        const int takes = how_many(room, gang.shape, gang.nodes > 0 ? per_node : gang.ranks);
        if (takes < per_node) continue;
        room_for += takes;
        nodes.push_back({static_cast<int>(i), takes, room.gpu_left, room.cpu_milli});
    }
    std::vector<Placement> out;
    if (room_for < gang.ranks || (gang.nodes > 0 && nodes.size() < static_cast<std::size_t>(gang.nodes))) return out;
    out.reserve(static_cast<std::size_t>(gang.ranks));
    if (gang.nodes > 0) {
        std::sort(nodes.begin(), nodes.end(),
                  [](const GangNode& a, const GangNode& b) { return a.tightness() < b.tightness(); });
        for (int i = 0; i < gang.nodes; ++i)
            fill_node(placer, nodes[static_cast<std::size_t>(i)], per_node, gang.shape, out);
        return out;
    }
    // The largest first, so that few nodes do; the rest goes where it fits most tightly.
    std::sort(nodes.begin(), nodes.end(), [](const GangNode& a, const GangNode& b) {
        return std::tuple(-a.takes, a.tightness()) < std::tuple(-b.takes, b.tightness());
    });
    int left = gang.ranks;
    for (auto at = nodes.begin(); left > 0; ++at) {
        if (at->takes >= left) {
            const auto last = std::partition_point(at, nodes.end(), [&](const GangNode& n) { return n.takes >= left; });
            const auto tightest = std::min_element(at, last, [](const GangNode& a, const GangNode& b) {
                return std::tuple(a.takes, a.tightness()) < std::tuple(b.takes, b.tightness());
            });
            fill_node(placer, *tightest, left, gang.shape, out);
            return out;
        }
        fill_node(placer, *at, at->takes, gang.shape, out);
        left -= at->takes;
    }
    return out;
}

void release_gang(Placer& placer, const std::vector<Placement>& placements, const TaskShape& shape) {
    for (const Placement& placement : placements) placer.release(placement, shape);
}

}  // namespace stoker

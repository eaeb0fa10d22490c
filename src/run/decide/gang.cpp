#include "run/decide/gang.h"

#include <algorithm>
#include <functional>

#include "base/text.h"
#include "catalog/gpu_names.h"

namespace stoker {
namespace {

constexpr std::int64_t kMiBytes = 1 << 20;

struct GangNode {
    int node = 0, takes = 0;
    std::int64_t gpu_left = 0, cpu_left = 0;
    // The one with least left over.
    auto tightness() const { return std::tuple(gpu_left, cpu_left, node); }
};

// A set of nodes that hang together, and what the gang could have of it: ranks, or nodes when their number is given.
struct Domain {
    std::vector<GangNode> nodes;
    std::int64_t room = 0;
};

// How many of the largest are needed.
template <class List, class Size>
std::size_t fewest(const List& list, std::int64_t wanted, const Size& size) {
    std::vector<std::int64_t> sizes;
    for (const auto& each : list) sizes.push_back(size(each));
    std::sort(sizes.begin(), sizes.end(), std::greater<>());
    std::size_t count = 0;
    for (; count < sizes.size() && wanted > 0; ++count) wanted -= sizes[count];
    return count;
}

std::vector<Domain> domains_of(const std::vector<GangNode>& nodes, const std::vector<int>& level, bool whole_nodes) {
    std::map<int, Domain> found;  // in an order that does not depend on what is free
    for (const GangNode& node : nodes) {
        Domain& domain = found[level[static_cast<std::size_t>(node.node)]];
        domain.nodes.push_back(node);
        domain.room += whole_nodes ? 1 : node.takes;
    }
    std::vector<Domain> domains;
    for (auto& [id, domain] : found) domains.push_back(std::move(domain));
    return domains;
}

// The nodes that the gang may use, so that it is on as few switches as it can be. Empty: it must not be spread as far
// as it would have to be.
std::vector<GangNode> near_each_other(std::vector<GangNode> nodes, const Gang& gang) {
    const auto& levels = gang.topology->levels;
    const bool whole = gang.nodes > 0;
    const std::int64_t wanted = whole ? gang.nodes : gang.ranks;
    const auto nodes_needed = [&](const Domain& domain) {
        return fewest(domain.nodes, wanted, [&](const GangNode& n) { return whole ? 1 : n.takes; });
    };
    const auto switches_needed = [&](const std::vector<GangNode>& of) {
        return fewest(domains_of(of, levels.back(), whole), wanted, [](const Domain& d) { return d.room; });
    };
    const std::size_t least = switches_needed(nodes);
    if (gang.one_switch && least > 1) return {};
    // Of the ways with so few switches, one in the smallest part of the tree.
    for (std::size_t i = levels.size(); i-- > 0;) {
        std::vector<Domain> domains = domains_of(nodes, levels[i], whole);
        const auto cost = [&](const Domain& d) { return std::tuple(nodes_needed(d), d.room); };
        Domain* best = nullptr;
        for (Domain& domain : domains)
            if (domain.room >= wanted && switches_needed(domain.nodes) == least &&
                (best == nullptr || cost(domain) < cost(*best)))
                best = &domain;
        if (best == nullptr) continue;
        nodes = std::move(best->nodes);
        break;
    }
    std::vector<Domain> switches = domains_of(nodes, levels.back(), whole);
    std::stable_sort(switches.begin(), switches.end(),
                     [](const Domain& a, const Domain& b) { return a.room > b.room; });
    // The largest first; the rest goes to the smallest that has room for it.
    nodes.clear();
    std::int64_t left = wanted;
    for (std::size_t i = 0; i < switches.size() && left > 0; ++i) {
        std::size_t use = i;
        if (switches[i].room >= left)
            while (use + 1 < switches.size() && switches[use + 1].room >= left) ++use;
        left -= switches[use].room;
        nodes.insert(nodes.end(), switches[use].nodes.begin(), switches[use].nodes.end());
    }
    return nodes;
}

void fill_node(Placer& placer, const GangNode& node, int count, const TaskShape& shape, std::vector<Placement>& out) {
    for (int i = 0; i < count; ++i) out.push_back(placer.place_on(node.node, shape));
}

}  // namespace

Topology topology_of(const Fleet& fleet) {
    std::vector<std::vector<std::string_view>> paths;
    std::size_t depth = 0;
    for (const FleetNode& node : fleet.nodes) {
        auto& path = paths.emplace_back();
        if (!node.topology.empty()) path = split(node.topology, '/');
        depth = std::max(depth, path.size());
    }
    Topology topology;
    for (std::size_t level = 0; level < depth; ++level) {
        std::map<std::vector<std::string_view>, int> ids;
        std::vector<int>& domains = topology.levels.emplace_back();
        int next = 0;
        for (const auto& path : paths) {
            // Shorter paths end in a switch that stands on a higher level; no path at all is near nobody.
            if (path.empty()) {
                domains.push_back(next++);
                continue;
            }
            const auto end = path.begin() + static_cast<std::ptrdiff_t>(std::min(level + 1, path.size()));
            const auto [at, fresh] = ids.emplace(std::vector(path.begin(), end), next);
            if (fresh) ++next;
            domains.push_back(at->second);
        }
    }
    return topology;
}

std::optional<TaskShape> FleetView::shape_of(const RankNeeds& needs) const {
    TaskShape shape{.cpu_milli = needs.cpu_milli,
                    .memory_mib = (needs.memory_bytes + kMiBytes - 1) / kMiBytes,
                    .gpus = needs.gpus,
                    .gpu_milli = needs.gpus == 0 ? 0 : needs.gpu_milli};
    if (!needs.gpu_model.empty()) {
        const auto found = std::find(fleet.models.begin(), fleet.models.end(), needs.gpu_model);
        if (found != fleet.models.end()) {
            shape.models = GpuModels{1} << (found - fleet.models.begin());
        } else {
            for (std::size_t i = 0; i < fleet.models.size(); ++i)
                if (names_gpu(needs.gpu_model, fleet.models[i])) shape.models |= GpuModels{1} << i;
            if (shape.models == 0) return std::nullopt;
        }
    }
    return shape;
}

std::optional<TaskShape> FleetView::shape_on(const RankNeeds& needs, const std::string& engine) const {
    const auto found = std::find(engines.begin(), engines.end(), engine);
    auto shape = found == engines.end() ? std::nullopt : shape_of(needs);
    if (shape) shape->engine = static_cast<int>(found - engines.begin());
    return shape;
}

Placement FleetView::placement_of(const RankPlace& place) const {
    const auto found = index.find(place.node);
    return found == index.end() ? Placement{} : Placement{.node = found->second, .devices = place.devices};
}

RankPlace FleetView::place_of(const Placement& placement) const {
    return {.node = fleet.nodes[static_cast<std::size_t>(placement.node)].name, .devices = placement.devices};
}

FleetView view_of(const State& state, const HealthGate& gate, std::int64_t now_us) {
    FleetView view;
    std::optional<std::set<std::string>> busy;
    std::vector<NodeTakes> takes;
    for (const auto& [name, node] : state.nodes) {
        if (node.state == NodeState::draining || node.state == NodeState::lost) continue;
        // Who runs where is looked up for nodes that were not checked only: few, and not for long.
        const bool unchecked = gate.level && !is_checked(node, gate.level);
        if (unchecked && !busy) busy = busy_nodes(state);
        const NodeTakes each = takes_of(node, gate, unchecked && busy->contains(name), now_us);
        if (each != NodeTakes::gangs) view.limited = true;
        if (each == NodeTakes::nothing) continue;
        takes.push_back(each);
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
        entry.topology = node.info.topology;
        auto engine = std::find(view.engines.begin(), view.engines.end(), node.info.engine);
        if (engine == view.engines.end()) engine = view.engines.insert(engine, node.info.engine);
        entry.engine = static_cast<int>(engine - view.engines.begin());
        view.index.emplace(name, static_cast<int>(view.fleet.nodes.size()));
        view.fleet.nodes.push_back(std::move(entry));
    }
    view.topology = topology_of(view.fleet);
    if (view.limited) view.takes = std::move(takes);
    return view;
}

int how_many(const NodeRoom& room, const TaskShape& shape, int most) {
    if (!room.is_of(shape.engine) || (shape.gpus > 0 && !room.has_model(shape.models))) return 0;
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

namespace {

// Over the nodes given, which have room for `room_for` ranks.
std::vector<Placement> place_over(Placer& placer, std::vector<GangNode> nodes, std::int64_t room_for,
                                  const Gang& gang) {
    const int per_node = gang.nodes > 0 ? gang.ranks / gang.nodes : 1;
    std::vector<Placement> out;
    const bool together = gang.topology != nullptr && !gang.topology->levels.empty();
    if (gang.one_switch && !together) {
        // Nothing is known of any node: only one is sure to be near itself.
        std::erase_if(nodes, [&](const GangNode& n) { return n.takes < gang.ranks; });
        if (nodes.empty() || gang.nodes > 1) return out;
        room_for = gang.ranks;
    }
    if (room_for < gang.ranks || (gang.nodes > 0 && nodes.size() < static_cast<std::size_t>(gang.nodes))) return out;
    if (together) nodes = near_each_other(std::move(nodes), gang);
    if (nodes.empty()) return out;
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

}  // namespace

std::vector<Placement> place_gang(Placer& placer, std::size_t nodes_of_fleet, const Gang& gang) {
    if (gang.ranks == 1) {
        const Placement one = placer.place(gang.shape);
        return one ? std::vector{one} : std::vector<Placement>{};
    }
    std::vector<GangNode> nodes;
    std::optional<GangNode> alone;  // the tightest of those that take it only as a whole
    const int per_node = gang.nodes > 0 ? gang.ranks / gang.nodes : 1;
    const bool limited = gang.takes != nullptr && !gang.takes->empty();
    std::int64_t room_for = 0;
    for (std::size_t i = 0; i < nodes_of_fleet; ++i) {
        const NodeTakes may = limited ? (*gang.takes)[i] : NodeTakes::gangs;
        if (may < NodeTakes::one_node) continue;
        const NodeRoom& room = placer.room(static_cast<int>(i));
        const int takes = how_many(room, gang.shape, gang.nodes > 0 ? per_node : gang.ranks);
        if (takes < per_node) continue;
        const GangNode node{static_cast<int>(i), takes, room.gpu_left, room.cpu_milli};
        if (may == NodeTakes::gangs) {
            room_for += takes;
            nodes.push_back(node);
        } else if (takes >= gang.ranks && gang.nodes <= 1 && (!alone || node.tightness() < alone->tightness())) {
            alone = node;
        }
    }
    std::vector<Placement> out = place_over(placer, std::move(nodes), room_for, gang);
    if (out.empty() && alone) fill_node(placer, *alone, gang.ranks, gang.shape, out);
    return out;
}

std::vector<Placement> hold_known(Placer& placer, const FleetView& view, const Attempt& attempt,
                                  const TaskShape& shape) {
    std::vector<Placement> held;
    for (const RankPlace& place : attempt.places)
        if (const Placement placement = view.placement_of(place)) held.push_back(placer.hold(placement, shape));
    return held;
}

std::vector<Placement> hold_unbound(Placer& placer, const FleetView& view, const Run& run, const TaskShape& shape) {
    const auto& places = run.attempts.back().places;
    const auto unbound = static_cast<int>(
        std::count_if(places.begin(), places.end(), [](const RankPlace& place) { return place.node.empty(); }));
    if (unbound == 0) return {};
    return place_gang(placer, view.fleet.nodes.size(),
                      {.shape = shape,
                       .ranks = unbound,
                       .nodes = unbound < run.spec.ranks ? 0 : run.spec.nodes,
                       .one_switch = run.spec.topology == TopologyWish::require,
                       .topology = &view.topology,
                       .takes = &view.takes});
}

void release_gang(Placer& placer, const std::vector<Placement>& placements, const TaskShape& shape) {
    for (const Placement& placement : placements) placer.release(placement, shape);
}

}  // namespace stoker

// Gangs on nodes: all ranks of a run or none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "run/decide/health.h"
#include "run/decide/place.h"
#include "run/state/state.h"

namespace stoker {

// What hangs together: by level, from the outermost to that of the switches, the domain of each node. A node of which
// that is not known is alone in its domain. Without levels nothing is known of any.
struct Topology {
    std::vector<std::vector<int>> levels;
};
Topology topology_of(const Fleet& fleet);

// The nodes that may take work, as the placer wants them, in the order of their names.
struct FleetView {
    Fleet fleet;
    Topology topology;
    std::map<std::string, int, std::less<>> index;
    std::vector<NodeTakes> takes;      // of each; empty: gangs, all of them
    std::vector<std::string> engines;  // of several, those that have nodes here; FleetNode::engine counts them
    bool limited = false;              // the health of some node keeps it from work

    // Nothing when the model is nowhere in the fleet.
    std::optional<TaskShape> shape_of(const RankNeeds& needs) const;
    // The same on the nodes of one of several engines; nothing also when that has none.
    std::optional<TaskShape> shape_on(const RankNeeds& needs, const std::string& engine) const;
    Placement placement_of(const RankPlace& place) const;  // none when the node takes no work
    RankPlace place_of(const Placement& placement) const;
};
FleetView view_of(const State& state, const HealthGate& gate = {}, std::int64_t now_us = 0);

struct Gang {
    TaskShape shape;
    int ranks = 1, nodes = 0;
    bool one_switch = false;                        // or not at all
    const Topology* topology = nullptr;             // none: any nodes are as good
    const std::vector<NodeTakes>* takes = nullptr;  // of the fleet; none, or an empty list: all take gangs
    auto key() const {
        return std::tuple(shape.cpu_milli, shape.memory_mib, shape.gpus, shape.gpu_milli, shape.models, ranks, nodes,
                          one_switch, shape.engine);
    }
};

// How many tasks of this shape the room takes, at most `most`.
int how_many(const NodeRoom& room, const TaskShape& shape, int most);

// Places every rank, or nothing. On the fewest switches there can be, and those in the smallest part of the tree; then
// fewest nodes, and among equals the fullest. nodes > 0: exactly that many, ranks spread evenly.
// Only on nodes that take gangs; when there is no way there, on one node that takes gangs of its own.
// Whether it fits is exact: when there is a way, one is found.
std::vector<Placement> place_gang(Placer& placer, std::size_t nodes_of_fleet, const Gang& gang);
// What an attempt holds: its ranks on the nodes where they are known to be, ...
std::vector<Placement> hold_known(Placer& placer, const FleetView& view, const Attempt& attempt,
                                  const TaskShape& shape);
// ... and those that its engine has not put anywhere yet, wherever they will be. Held last: what is known is not moved.
std::vector<Placement> hold_unbound(Placer& placer, const FleetView& view, const Run& run, const TaskShape& shape);
void release_gang(Placer& placer, const std::vector<Placement>& placements, const TaskShape& shape);

}  // namespace stoker

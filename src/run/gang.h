// Gangs on nodes: all ranks of a run or none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "run/place.h"
#include "run/state.h"

namespace stoker {

// The nodes that may take work, as the placer wants them, in the order of their names.
struct FleetView {
    Fleet fleet;
    std::map<std::string, int, std::less<>> index;

    // Nothing when the model is nowhere in the fleet.
    std::optional<TaskShape> shape_of(const RankNeeds& needs) const;
    Placement placement_of(const RankPlace& place) const;  // none when the node takes no work
    RankPlace place_of(const Placement& placement) const;
};
FleetView view_of(const State& state);

struct Gang {
    TaskShape shape;
    int ranks = 1, nodes = 0;
    auto key() const {
        return std::tuple(shape.cpu_milli, shape.memory_mib, shape.gpus, shape.gpu_milli, shape.models, ranks, nodes);
    }
};

// How many tasks of this shape the room takes, at most `most`.
int how_many(const NodeRoom& room, const TaskShape& shape, int most);

// Places every rank, or nothing. Fewest nodes, and among equals the fullest; nodes > 0: exactly that many, ranks spread
// evenly. Whether it fits is exact: when there is a way, one is found.
std::vector<Placement> place_gang(Placer& placer, std::size_t nodes_of_fleet, const Gang& gang);
void release_gang(Placer& placer, const std::vector<Placement>& placements, const TaskShape& shape);

}  // namespace stoker

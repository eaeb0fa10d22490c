// Where a task goes: among the nodes with room, the one that the policy scores highest. Pure and deterministic: the
// same fleet, tasks and seed give the same placements. Live scheduling, what-if and the replay of traces call the same
// code.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "run/decide/fleet.h"
#include "run/decide/fragmentation.h"

namespace stoker {

// The six policies compared in Weng et al., USENIX ATC 2023, section 6; scores are whole numbers from 0 to 100.
enum class PlacementPolicy : std::uint8_t {
    random,          // any node with room
    dot_product,     // small product of request and what is left (Grandl et al., Tetris, SIGCOMM 2014)
    gpu_clustering,  // tasks of one GPU count together
    gpu_packing,     // used GPUs first, then used nodes (Weng et al., MLaaS in the Wild, NSDI 2022)
    best_fit,        // least CPU and GPU left over
    fragmentation,   // steepest descent of fragmentation
};
std::string_view to_string(PlacementPolicy policy);
std::optional<PlacementPolicy> placement_policy(std::string_view name);
const std::vector<PlacementPolicy>& all_placement_policies();

struct Placement {
    int node = -1;  // index into Fleet::nodes; -1: no node has room
    std::uint32_t devices = 0;
    explicit operator bool() const { return node >= 0; }
    friend bool operator==(const Placement&, const Placement&) = default;
};

class Placer {
public:
    // `typical` guides the fragmentation policy and is ignored by the others.
    Placer(const Fleet& fleet, PlacementPolicy policy, const std::vector<TypicalTask>& typical, std::uint64_t seed);

    Placement place(const TaskShape& task);  // and takes what it places
    void release(const Placement& placement, const TaskShape& task);
    // On this node, which must have room for it; devices by the policy.
    Placement place_on(int node, const TaskShape& task);
    // What was placed before this Placer came to be; with devices that stand for those of an engine that chooses them
    // itself. A device or node that has shrunk since may end up below zero.
    Placement hold(Placement placement, const TaskShape& task);
    void set_room(int node, const NodeRoom& room);
    const NodeRoom& room(int node) const { return rooms_[static_cast<std::size_t>(node)]; }

private:
    // Scores of one shape on every node, each valid while the node's stamp is the one it was computed under.
    struct Scores {
        std::vector<std::int16_t> value;  // -1: no room
        std::vector<std::uint32_t> stamp;
    };
    struct ShapeHash {
        std::size_t operator()(const TaskShape& task) const noexcept;
    };

    Scores& scores_of(const TaskShape& task);
    int score(std::size_t at, const TaskShape& task) const;
    int score_fragmentation(std::size_t at, const TaskShape& task, int* device) const;
    void occupy(const Placement& placement, const TaskShape& task);
    std::uint32_t choose_devices(std::size_t at, const TaskShape& task);
    void touched(std::size_t at) { ++stamps_[at]; }
    static std::size_t kind_of(const TaskShape& task);

    PlacementPolicy policy_;
    Fragmentation fragmentation_;
    SplitMix random_;
    std::vector<NodeRoom> rooms_;
    std::vector<double> fragments_;  // of each room as it is; kept by the fragmentation policy only
    std::vector<std::uint32_t> stamps_;
    std::vector<std::array<std::int32_t, kMaxGpusOfNode + 1>>
        kinds_;  // tasks on the node: part of a GPU, 1 GPU, 2, ...
    std::unordered_map<TaskShape, Scores, ShapeHash> scores_;
    std::vector<std::size_t> candidates_;  // of one random draw
};

}  // namespace stoker

// The health gate: which nodes want a check, what a report and a history mean for a node, and what it may take. Pure.
//
//     not checked since it booted   nothing; while it is busy, runs of one rank for an hour more
//     pass                          everything
//     warn, skipped                 no gang over several nodes. A check that could not run is never a pass, and a
//                                   machine of which nobody knows what to expect is of use all the same
//     fail                          quarantined: nothing new, what runs goes on
//     slowest again and again       suspect: no gang over several nodes
//     repaired again and again      quarantined, until a person vouches for it
//
// Without a gate nothing is checked by itself and reports limit nothing; states that were set stay until they are
// lifted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/health.h"
#include "run/state/state.h"

namespace stoker {

// From data/run/health.tsv.
struct HealthPolicy {
    std::size_t at_once = 4;
    std::int64_t again_us = 0, again_most_us = 0, old_us = 0, unchecked_busy_us = 0;
    std::size_t lemon_gangs = 3, lemon_repairs = 3;
    std::int64_t lemon_window_us = 0;
};
const HealthPolicy& health_policy();

struct HealthGate {
    std::optional<HealthLevel> level{};   // none: there is no gate
    std::set<std::string> under_check{};  // take nothing until that has ended; kept by the core
    std::set<std::string> trusted{};      // as if they had passed: to find what would start a run
    bool ignored = false;                 // as if all had
    friend bool operator==(const HealthGate&, const HealthGate&) = default;
};

// What a node takes, each with what stands before it.
enum class NodeTakes : std::uint8_t { nothing, one_rank, one_node, gangs };
// `busy`: something runs there.
NodeTakes takes_of(const NodeStatus& node, const HealthGate& gate, bool busy, std::int64_t now_us);
// It has a check that counts: of this boot, and as thorough as the gate wants.
bool is_checked(const NodeStatus& node, std::optional<HealthLevel> gate);

// What a node that is there and nobody drains is to be, by what is known of it.
struct Standing {
    NodeState state = NodeState::ready;
    Cause cause = Cause::none;
    friend bool operator==(const Standing&, const Standing&) = default;
};
Standing standing_of(const NodeStatus& node, std::optional<HealthLevel> gate, std::int64_t now_us);

// Checks that were asked for or are under way; kept by the core, and forgotten at a restart: then they are due again.
struct AskedCheck {
    HealthLevel level = HealthLevel::quick;
    bool under_way = false;
    std::int64_t asked_us = 0;
    bool then_full = false;  // a thorough one was asked for while a quick one was under way
};
using AskedChecks = std::map<std::string, AskedCheck>;

struct CheckWanted {
    std::string node, boot_id;
    HealthLevel level = HealthLevel::quick;
};
struct ChecksDue {
    std::vector<CheckWanted> now;  // on idle nodes, and no more than may go on at once
    std::int64_t next_us = 0;      // when the next one is; 0: when something happens
};
ChecksDue checks_due(const State& state, std::optional<HealthLevel> gate, const AskedChecks& asked,
                     std::int64_t now_us);

// "link-bandwidth to node-a 6.0 MB/s, expected 1.2 GB/s (median of 9 nodes)".
std::string check_text(const HealthCheck& check);
// Why it takes less than everything: "b is quarantined: link-bandwidth ...". Empty: it takes everything.
std::string limit_text(const NodeStatus& node, const HealthGate& gate, bool busy, std::int64_t now_us);
std::set<std::string> busy_nodes(const State& state);
// Where an engine that chooses the nodes may not put the run: drained, or by its health good for less. What is under
// check for a moment, and was well before, is none of them. What is lost, or not listed just now, the engine knows
// itself: a job that waits in its queue would be kept off such a node for good, also when it is back.
std::vector<std::string> nodes_to_avoid(const State& state, const RunSpec& spec, const HealthGate& gate,
                                        std::int64_t now_us);

constexpr std::array<std::pair<NodeTakes, std::string_view>, 4> enum_names(NodeTakes) {
    return {{{NodeTakes::nothing, "nothing"},
             {NodeTakes::one_rank, "one_rank"},
             {NodeTakes::one_node, "one_node"},
             {NodeTakes::gangs, "gangs"}}};
}

}  // namespace stoker

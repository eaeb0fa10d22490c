#include "explain/blame.h"

#include <algorithm>

#include "observe/collect.h"
#include "observe/diagnosis.h"
#include "observe/health_judge.h"

namespace stoker {
namespace {

constexpr double kMostBlameLookedAtS = 3600;  // as long as seconds are kept

}  // namespace

std::vector<std::string> nodes_of_ranks(const Attempt& attempt) {
    std::vector<std::string> nodes;
    for (const RankPlace& place : attempt.places) nodes.push_back(place.node);
    return nodes;
}

std::optional<EndedAttempt> ended_attempt(const State& state, const AttemptId& id) {
    const Attempt* attempt = state.find(id);
    if (attempt == nullptr || attempt->live() || attempt->running_us == 0) return std::nullopt;
    EndedAttempt ended{.attempt = id, .node_of_rank = nodes_of_ranks(*attempt)};
    const auto& nodes = ended.node_of_rank;
    if (std::all_of(nodes.begin(), nodes.end(), [&](const std::string& node) { return node == nodes.front(); }))
        return std::nullopt;
    ended.to_s = static_cast<double>(attempt->ended_us) / 1e6;
    ended.from_s = std::max(static_cast<double>(attempt->running_us) / 1e6, ended.to_s - kMostBlameLookedAtS);
    return ended;
}

std::optional<BlameNode> blame_of(const EndedAttempt& ended, RunEvidence evidence) {
    name_nodes(evidence, ended.node_of_rank);
    const std::vector<Diagnosis> found = diagnose(evidence).found;
    const auto late =
        std::find_if(found.begin(), found.end(), [](const Diagnosis& each) { return each.rule->late_rank; });
    const auto step = evidence.step_s();
    if (late == found.end() || !late->rank || *late->rank < 0 || !step || !(*step > 0)) return std::nullopt;
    const auto rank = static_cast<std::size_t>(*late->rank);
    if (rank >= ended.node_of_rank.size()) return std::nullopt;
    const bool cleared = std::any_of(found.begin(), found.end(), [&](const Diagnosis& each) {
        const ClearsNode clears = each.rule->clears;
        return clears == ClearsNode::on_any_rank || (clears == ClearsNode::on_that_rank && each.rank == late->rank);
    });
    if (cleared) return std::nullopt;
    // Among many there is always a slowest: as slow as their spread makes one likely is no fault.
    for (const HealthReport& report : judge_nodes_of(evidence))
        for (const HealthCheck& check : report.checks)
            if (check.node == ended.node_of_rank[rank] && check.verdict == HealthVerdict::pass) return std::nullopt;
    return BlameNode{.attempt = ended.attempt, .node = ended.node_of_rank[rank], .share = late->cost_s / *step};
}

}  // namespace stoker

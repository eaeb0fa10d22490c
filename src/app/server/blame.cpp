#include "app/server/blame.h"

#include <algorithm>

namespace stoker {
namespace {

constexpr double kMostBlameLookedAtS = 3600;  // as long as seconds are kept

}  // namespace

std::optional<EndedAttempt> ended_attempt(const State& state, const AttemptId& id) {
    const Attempt* attempt = state.find(id);
    if (attempt == nullptr || attempt->live() || attempt->running_us == 0) return std::nullopt;
    EndedAttempt ended{.attempt = id, .node_of_rank = {}};
    for (const RankPlace& place : attempt->places) ended.node_of_rank.push_back(place.node);
    const auto& nodes = ended.node_of_rank;
    if (std::all_of(nodes.begin(), nodes.end(), [&](const std::string& node) { return node == nodes.front(); }))
        return std::nullopt;
    ended.to_s = static_cast<double>(attempt->ended_us) / 1e6;
    ended.from_s = std::max(static_cast<double>(attempt->running_us) / 1e6, ended.to_s - kMostBlameLookedAtS);
    return ended;
}

std::optional<BlameNode> blame_of(const EndedAttempt& ended, const Evidence& evidence) {
    const Explanation explanation = explain_gap(evidence);
    const auto& findings = explanation.findings;
    const auto slow =
        std::find_if(findings.begin(), findings.end(), [](const Finding& each) { return each.cause == "straggler"; });
    const auto step = evidence.step_s();
    if (slow == findings.end() || !slow->rank || *slow->rank < 0 || !step || !(*step > 0)) return std::nullopt;
    const auto rank = static_cast<std::size_t>(*slow->rank);
    if (rank >= ended.node_of_rank.size()) return std::nullopt;
    // A limit, a loader or a leak of that rank is the job's own doing, and a processor limit stops no two ranks alike;
    // a neighbour on the node is the node's.
    const bool own = std::any_of(findings.begin(), findings.end(), [&](const Finding& each) {
        if (each.cause == "cpu-limit") return true;
        return each.rank == slow->rank && each.cause != "straggler" && each.cause != "noisy-neighbour";
    });
    if (own) return std::nullopt;
    return BlameNode{.attempt = ended.attempt, .node = ended.node_of_rank[rank], .share = slow->cost_s / *step};
}

}  // namespace stoker

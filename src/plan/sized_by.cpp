#include "plan/sized_by.h"

#include <algorithm>

#include <fmt/format.h>

namespace stoker {

std::string_view sized_by_limit(const Candidate& candidate) {
    for (const PlanNote& note : candidate.notes)
        if (note.kind == NoteKind::sized_by_limit) return note.text;
    return {};
}

int carrying_replicas(const Candidate& candidate) {
    const int nodes = std::max(1, candidate.nodes);
    const int on_each = (candidate.replicas + nodes - 1) / nodes;  // of the fullest, or one that spans several nodes
    const int lost = candidate.spare_nodes <= 0 ? 0 : candidate.replicas < nodes ? 1 : on_each * candidate.spare_nodes;
    return std::max(1, candidate.replicas - lost);
}

std::string spare_text(const Candidate& candidate, double models) {
    if (candidate.spare_nodes <= 0) return {};
    const int carrying = carrying_replicas(candidate), spare = candidate.replicas - carrying;
    if (models > 1)
        return fmt::format("each of {:.0f} models has replicas of its own, and any node may be lost", models);
    return fmt::format("{} replica{} carr{} the load, {} there so that a node may be lost",
                       carrying == 1 ? "one" : std::to_string(carrying), carrying == 1 ? "" : "s",
                       carrying == 1 ? "ies" : "y",
                       spare == 1 && carrying == 1 ? std::string("the other is")
                       : spare == 1                ? std::string("one more is")
                                                   : fmt::format("{} more are", spare));
}

}  // namespace stoker

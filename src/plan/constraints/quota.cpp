// Quota of one region: the size's family and the regional total, or the spot pool. A family that the answer does not
// name is unknown, not zero: stray spaces and case differ between Azure's own lists, so names are compared without
// them.
#include <fmt/format.h>

#include "plan/constraints/constraint.h"
#include "plan/quota.h"

namespace stoker {

MaybeRefusal refuse_quota(const Context& context, int type, const Offer& offer, int nodes) {
    // Who did not ask for what can start today sees the rest as well, marked and behind it.
    if (!context.options.startable) return std::nullopt;
    auto shortfall = quota_shortfall(context, type, offer, nodes);
    if (!shortfall) return std::nullopt;
    return Refusal{Reason::quota, shortfall->limit - shortfall->current, shortfall->need, shortfall->text()};
}

MaybeRefusal refuse_count(const Context& context, int type, const Offer& offer, int nodes) {
    const NodeType& node = context.node(type);
    (void)offer;
    if (node.available > 0 && nodes > node.available)
        return Refusal{Reason::node_count, static_cast<double>(node.available), static_cast<double>(nodes),
                       fmt::format("{} nodes wanted, {} exist", nodes, node.available)};
    if (node.mig && nodes > 1 && is_training(context.workload.kind))
        return Refusal{Reason::node_count, 1, static_cast<double>(nodes),
                       fmt::format("{} parts of GPUs ({}) wanted, and NCCL joins no two of them: a training takes one",
                                   nodes, node.mig->profile)};
    const auto& most = context.workload.where.max_nodes;
    if (most && nodes > *most)
        return Refusal{Reason::node_count, *most, static_cast<double>(nodes),
                       fmt::format("{} nodes wanted, {:.0f} allowed", nodes, *most)};
    return std::nullopt;
}

}  // namespace stoker

// InfiniBand on Azure joins the VMs of one scale set with a single placement group only, which holds a limited number
// of them: a gang beyond it has no common network, whatever the budget.
#include <fmt/format.h>

#include "plan/constraints/constraint.h"

namespace stoker {

MaybeRefusal refuse_large_gang(const Context& context, int type, const Offer& offer, int nodes) {
    (void)offer;
    const NodeType& node = context.node(type);
    const double most = context.settings.placement_group_on_request;
    if (node.cloud != "azure" || !is_rdma(node) || !is_training(context.workload.kind) || nodes <= most)
        return std::nullopt;
    return Refusal{Reason::gang_too_large, most, static_cast<double>(nodes),
                   fmt::format("{} nodes in one gang; InfiniBand joins one placement group, which holds {:.0f}, {:.0f} "
                               "by support request",
                               nodes, context.settings.placement_group, most)};
}

}  // namespace stoker

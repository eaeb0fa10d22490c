// InfiniBand is paid for by the hour and a replica inside one node never uses it. Only where the same GPUs without it
// can be had in the same region for no more: a rule that knew no prices refused the cheaper machine.
#include <algorithm>

#include <fmt/format.h>

#include "plan/constraints/constraint.h"

namespace stoker {

MaybeRefusal refuse_unused_rdma(const Context& context, const std::vector<Point>& points, const Point& point,
                                const Offer& offer) {
    const WorkloadKind kind = context.workload.kind;
    if (kind != WorkloadKind::inference && kind != WorkloadKind::batch_inference && kind != WorkloadKind::embedding)
        return std::nullopt;
    const NodeChoice& choice = context.choices[static_cast<std::size_t>(point.choice)];
    const NodeType& node = *choice.node;
    if (!offer.priced || !is_rdma(node) || context.size_was_named(choice.type) ||
        point.replica.gpus() > choice.devices())
        return std::nullopt;
    for (const NodeChoice& twin : context.choices) {
        if (!is_twin_without_rdma(node, *twin.node)) continue;
        const auto at = &twin - context.choices.data();
        const bool does_it = std::any_of(points.begin(), points.end(), [&](const Point& other) {
            return other.choice == at && other.nodes == point.nodes;
        });
        if (!does_it) continue;
        for (const Offer& other : twin.offers) {
            if (!other.priced || other.region != offer.region || other.pricing != offer.pricing ||
                other.usd_per_hour > offer.usd_per_hour)
                continue;
            const double less = 100 * (1 - other.usd_per_hour / offer.usd_per_hour);
            return Refusal{Reason::policy_inference_rdma, offer.usd_per_hour, other.usd_per_hour,
                           fmt::format("InfiniBand is paid for and not used by replicas inside one node; {} has the "
                                       "same GPUs without it: ${:.3f} against ${:.3f} per hour in {}{}",
                                       twin.node->name, other.usd_per_hour, offer.usd_per_hour, offer.region,
                                       less >= 0.5 ? fmt::format(", {:.0f} % less", less) : "")};
        }
    }
    return std::nullopt;
}

}  // namespace stoker

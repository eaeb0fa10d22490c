// InfiniBand is paid for by the hour and a replica inside one node never uses it. Lifted only when the model needs
// several nodes (make_plan then asks again with rdma_allowed_for_inference), or when the user names the size.
#include <fmt/format.h>

#include "plan/constraints/constraint.h"

namespace stoker {

MaybeRefusal refuse_rdma_for_inference(const Context& context, int type) {
    const WorkloadKind kind = context.workload.kind;
    if (kind != WorkloadKind::inference && kind != WorkloadKind::batch_inference && kind != WorkloadKind::embedding)
        return std::nullopt;
    const NodeType& node = context.node(type);
    if (!is_rdma(node) || context.rdma_allowed_for_inference || context.size_was_named(type)) return std::nullopt;

    std::string text = "InfiniBand is paid for and not used by replicas inside one node";
    const int twin = twin_without_rdma(context.catalog, type);
    if (twin >= 0) {
        text += fmt::format("; {} has the same GPUs without it", context.node(twin).name);
        const Price *dear = nullptr, *plain = nullptr;  // where the twin is cheapest
        for (const Price& price : context.catalog.prices_of(type)) {
            if (price.pricing != Pricing::on_demand || price.os != context.workload.where.os) continue;
            const Price* other = context.catalog.price(twin, price.region, price.os, price.pricing);
            if (other == nullptr || (plain != nullptr && plain->per_hour <= other->per_hour)) continue;
            dear = &price;
            plain = other;
        }
        if (plain != nullptr && plain->per_hour < dear->per_hour)
            text += fmt::format(": ${:.3f} against ${:.3f} per hour in {}, {:.0f} % less", plain->per_hour.dollars(),
                                dear->per_hour.dollars(), dear->region,
                                100 * (1 - plain->per_hour.dollars() / dear->per_hour.dollars()));
    }
    return Refusal{Reason::policy_inference_rdma, node.rdma_gbps_per_node, 0, std::move(text)};
}

}  // namespace stoker

// The lists of constraints, in the order in which they are asked: the first no is the one that is told.
#include <algorithm>

#include "plan/constraints/constraint.h"

namespace stoker {

bool is_asked_for(const Context& context, int type) {
    const auto& where = context.workload.where;
    if (!where.takes(context.node(type), context.catalog)) return false;
    if (!where.sizes.empty()) return context.size_was_named(type);
    const std::string& cloud = context.node(type).cloud;
    const bool own = cloud == "on-prem";
    if (where.clouds.empty()) return cloud == "azure" || own;
    const bool any = std::find(where.clouds.begin(), where.clouds.end(), "any") != where.clouds.end();
    if (any) return cloud != "this-machine";
    return std::find(where.clouds.begin(), where.clouds.end(), cloud) != where.clouds.end();
}

MaybeRefusal refuse_node(const Context& context, int type) {
    for (auto constraint : {refuse_retired, refuse_notebook_on_nd, refuse_rdma_for_inference, refuse_wrong_purpose})
        if (auto refusal = constraint(context, type)) return refusal;
    return std::nullopt;
}

MaybeRefusal refuse_offer(const Context& context, int type, Offer& offer) {
    if (auto refusal = refuse_residency(context, type, offer)) return refusal;
    if (auto refusal = refuse_restricted(context, type, offer)) return refusal;
    return refuse_pricing(context, type, offer);
}

MaybeRefusal refuse_nodes(const Context& context, int type, const Offer& offer, int nodes) {
    for (auto constraint : {refuse_count, refuse_quota})
        if (auto refusal = constraint(context, type, offer, nodes)) return refusal;
    return std::nullopt;
}

}  // namespace stoker

// The lists of constraints, in the order in which they are asked: the first no is the one that is told.
#include <algorithm>

#include "plan/constraints/constraint.h"

namespace stoker {

namespace {

bool is_in_clouds(const Context& context, int type);

}  // namespace

bool is_asked_for(const Context& context, int type) {
    if (!is_in_clouds(context, type)) return false;
    const auto& words = context.workload.where.accelerators;
    const NodeType& node = context.node(type);
    if (!node.has_gpu()) return words.empty();
    const Accelerator& accelerator = context.catalog.accelerators()[static_cast<std::size_t>(node.accelerator)];
    // A chip with a toolchain of its own is nobody's default, however cheap: it is planned where it is named.
    if (words.empty()) return accelerator.is_gpu() || !context.workload.where.sizes.empty();
    if (context.accelerator_missing) return accelerator.vendor == "NVIDIA";
    return std::any_of(words.begin(), words.end(),
                       [&](const std::string& word) { return matches_accelerator(word, accelerator); });
}

namespace {

bool is_in_clouds(const Context& context, int type) {
    const auto& where = context.workload.where;
    if (!where.takes(context.node(type))) return false;
    if (!where.sizes.empty()) return context.size_was_named(type);
    const std::string& cloud = context.node(type).cloud;
    const bool own = cloud == "on-prem";
    if (where.clouds.empty()) return cloud == "azure" || own;
    const bool any = std::find(where.clouds.begin(), where.clouds.end(), "any") != where.clouds.end();
    if (any) return cloud != "this-machine";
    return std::find(where.clouds.begin(), where.clouds.end(), cloud) != where.clouds.end();
}

}  // namespace

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
    for (auto constraint : {refuse_count, refuse_large_gang, refuse_quota})
        if (auto refusal = constraint(context, type, offer, nodes)) return refusal;
    return std::nullopt;
}

}  // namespace stoker

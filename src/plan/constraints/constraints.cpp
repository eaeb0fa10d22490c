// Asks the constraints of each shape; they are listed in constraint.h.
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

#define STOKER_NAME(name) name,

MaybeRefusal refuse_node(const Context& context, int type) {
    for (NodeConstraint* constraint : {STOKER_NODE_CONSTRAINTS(STOKER_NAME)})
        if (auto refusal = constraint(context, type)) return refusal;
    return std::nullopt;
}

MaybeRefusal refuse_offer(const Context& context, int type, Offer& offer) {
    for (OfferConstraint* constraint : {STOKER_OFFER_CONSTRAINTS(STOKER_NAME)})
        if (auto refusal = constraint(context, type, offer)) return refusal;
    return std::nullopt;
}

MaybeRefusal refuse_nodes(const Context& context, int type, const Offer& offer, int nodes) {
    for (NodesConstraint* constraint : {STOKER_NODES_CONSTRAINTS(STOKER_NAME)})
        if (auto refusal = constraint(context, type, offer, nodes)) return refusal;
    return std::nullopt;
}

#undef STOKER_NAME

}  // namespace stoker

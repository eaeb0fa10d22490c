// A constraint says no to a node type, an offer, or a number of nodes, with its numbers. To add one: a file here with a
// function of one of the three shapes below, and its name in the list of that shape.
#pragma once

#include <optional>
#include <string>

#include "plan/option.h"

namespace stoker {

struct Refusal {
    Reason reason = Reason::none;
    double have = 0, need = 0;
    std::string text;
};
using MaybeRefusal = std::optional<Refusal>;

// Named in the workload or in a cloud that was asked for; what is not is no candidate and needs no reason.
bool is_asked_for(const Context& context, int type);

using NodeConstraint = MaybeRefusal(const Context& context, int type);  // wherever it is and whatever it costs
using OfferConstraint = MaybeRefusal(const Context& context, int type, Offer& offer);  // may note the zones left
using NodesConstraint = MaybeRefusal(const Context& context, int type, const Offer& offer, int nodes);

// In the order in which they are asked: the first no is the one that is told.
#define STOKER_NODE_CONSTRAINTS(X) \
    X(refuse_retired)              \
    X(refuse_notebook_on_nd)       \
    X(refuse_unmet_needs)          \
    X(refuse_wrong_purpose)
#define STOKER_OFFER_CONSTRAINTS(X) \
    X(refuse_residency)             \
    X(refuse_closed_region)         \
    X(refuse_restricted)            \
    X(refuse_pricing)
#define STOKER_NODES_CONSTRAINTS(X) \
    X(refuse_count)                 \
    X(refuse_quota)

#define STOKER_DECLARE(name) NodeConstraint name;
STOKER_NODE_CONSTRAINTS(STOKER_DECLARE)
#undef STOKER_DECLARE
#define STOKER_DECLARE(name) OfferConstraint name;
STOKER_OFFER_CONSTRAINTS(STOKER_DECLARE)
#undef STOKER_DECLARE
#define STOKER_DECLARE(name) NodesConstraint name;
STOKER_NODES_CONSTRAINTS(STOKER_DECLARE)
#undef STOKER_DECLARE

// InfiniBand that no replica uses, where the same GPUs without it cost no more: once prices are known.
MaybeRefusal refuse_unused_rdma(const Context& context, const std::vector<Point>& points, const Point& point,
                                const Offer& offer);

// The finished candidate.
// The deadline; without one a bound on how long anybody wants to wait, unless machines were named or are owned.
std::optional<Seconds> latest_end(const Context& context);
MaybeRefusal refuse_deadline(const Context& context, const Range& hours);
MaybeRefusal refuse_budget(const Context& context, const Range& usd);
// What a budget is compared with: the whole job, or a month of a service (service_hours > 0) that has no period.
Range budgeted_usd(const Context& context, const Range& usd, double service_hours);

// All of a shape.
MaybeRefusal refuse_node(const Context& context, int type);
MaybeRefusal refuse_offer(const Context& context, int type, Offer& offer);
MaybeRefusal refuse_nodes(const Context& context, int type, const Offer& offer, int nodes);

}  // namespace stoker

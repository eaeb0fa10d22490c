// A constraint says no to a node type, an offer, or a number of nodes, with its numbers. To add one: a file here with a
// function of one of these three shapes, and its name in the list of constraints.cpp.
#pragma once

#include <optional>
#include <string>

#include "plan/context.h"

namespace stoker {

struct Refusal {
    Reason reason = Reason::none;
    double have = 0, need = 0;
    std::string text;
};
using MaybeRefusal = std::optional<Refusal>;

// Named in the workload or in a cloud that was asked for; what is not is no candidate and needs no reason.
bool is_asked_for(const Context& context, int type);

// A node type, wherever it is and whatever it costs.
MaybeRefusal refuse_retired(const Context& context, int type);
MaybeRefusal refuse_notebook_on_nd(const Context& context, int type);
MaybeRefusal refuse_rdma_for_inference(const Context& context, int type);
MaybeRefusal refuse_wrong_purpose(const Context& context, int type);

// A node type in a region at a pricing.
MaybeRefusal refuse_residency(const Context& context, int type, const Offer& offer);
MaybeRefusal refuse_restricted(const Context& context, int type, Offer& offer);  // also notes the zones left
MaybeRefusal refuse_pricing(const Context& context, int type, const Offer& offer);

// That many nodes of an offer.
MaybeRefusal refuse_quota(const Context& context, int type, const Offer& offer, int nodes);
MaybeRefusal refuse_count(const Context& context, int type, const Offer& offer, int nodes);
MaybeRefusal refuse_large_gang(const Context& context, int type, const Offer& offer, int nodes);

// The finished candidate.
MaybeRefusal refuse_deadline(const Context& context, const Range& hours);
MaybeRefusal refuse_budget(const Context& context, const Range& usd);
// What a budget is compared with: the whole job, or a month of a service (service_hours > 0) that has no period.
Range budgeted_usd(const Context& context, const Range& usd, double service_hours);

// The lists.
MaybeRefusal refuse_node(const Context& context, int type);
MaybeRefusal refuse_offer(const Context& context, int type, Offer& offer);
MaybeRefusal refuse_nodes(const Context& context, int type, const Offer& offer, int nodes);

}  // namespace stoker

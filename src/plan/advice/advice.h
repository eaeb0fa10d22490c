// Advice is what a colleague would add after the plan is made. To add one: a file here with a function of this shape,
// and its name in the list of advice.cpp. Ids are stable; docs/reference/reasons.md lists them.
#pragma once

#include "plan/context.h"

namespace stoker {

struct AdviceInput {
    const Context& context;
    const Plan& plan;  // candidates, platform and rejections are filled
    const Candidate* winner() const { return plan.candidates.empty() ? nullptr : plan.candidates.data(); }
    const NodeType& node(const Candidate& candidate) const { return context.node(candidate.node_type); }
};
using AdviceList = std::vector<Advice>;

// Of a fact that holds for every plan of the kind, or that the plan's other parts say already.
Advice as_background(Advice one);

void advise_quota(const AdviceInput& input, AdviceList& out);
void advise_availability(const AdviceInput& input, AdviceList& out);  // what is given out by reservation only
void advise_spot(const AdviceInput& input, AdviceList& out);
void advise_retirement(const AdviceInput& input, AdviceList& out);
void advise_network(const AdviceInput& input, AdviceList& out);  // scale set, InfiniBand per GPU, zones, storage region
void advise_places(const AdviceInput& input, AdviceList& out);   // data and users that are elsewhere
void advise_inference(const AdviceInput& input, AdviceList& out);  // CPU first, T4 first, no InfiniBand, decode bound
void advise_use(const AdviceInput& input, AdviceList& out);        // utilisation, memory, fractions, notebook
void advise_prices(const AdviceInput& input, AdviceList& out);     // stale, estimates, where to verify
void advise_platform(const AdviceInput& input, AdviceList& out);   // PaaS, spot in Batch, one-node jobs
void advise_smells(const AdviceInput& input, AdviceList& out);     // layouts known to be slow
void advise_knowledge(const AdviceInput& input, AdviceList& out);  // what no measurement backs
void advise_recommendations(const AdviceInput& input,
                            AdviceList& out);  // the published table of sizes by role, corrections of it
void advise_api_price(const AdviceInput& input, AdviceList& out);  // what the same tokens cost from a provider
void advise_foregone(const AdviceInput& input, AdviceList& out);  // what is cheaper and was passed over; rules of thumb
void advise_limits(const AdviceInput& input, AdviceList& out);    // deadline or budget inside the interval

AdviceList make_advice(const Context& context, const Plan& plan);

}  // namespace stoker

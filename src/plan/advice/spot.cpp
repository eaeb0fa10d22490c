// Spot: the saving, the evictions to expect, and the checkpoint interval that keeps the loss small.
#include <fmt/format.h>

#include "plan/advice/advice.h"

namespace stoker {

void advise_spot(const AdviceInput& input, AdviceList& out) {
    const Candidate* winner = input.winner();
    if (winner == nullptr) return;
    const CheckpointPlan& plan = winner->prediction.checkpoint;
    if (winner->pricing == Pricing::spot) {
        std::string text;
        if (plan.interval_s > 0)
            text = fmt::format(
                "spot: about {:.1f} evictions expected; checkpoint every {} and lose {:.1f} % of the time",
                plan.expected_evictions, format_seconds(Seconds(plan.interval_s)), 100 * (1 - plan.goodput));
        else
            text = "spot: replicas go with a notice of 30 s or none; keep enough elsewhere to carry the load";
        if (!input.context.settings.eviction_rate_known)
            text += fmt::format(
                ". The eviction rate of this size and region is unknown; {:.0f} % per node and hour is assumed",
                100 * input.context.settings.evictions_per_hour);
        const Price* list = input.context.catalog.price(winner->node_type, winner->region,
                                                        input.context.workload.where.os, Pricing::on_demand);
        if (list != nullptr && list->per_hour.dollars() > 0)
            text += fmt::format(". Saves {:.0f} % of the list price",
                                100 * (1 - winner->node_per_hour.dollars() / list->per_hour.dollars()));
        out.push_back(
            {Severity::warning, "spot-risk", text,
             "eviction rates: Azure Resource Graph, SpotResources; handle the Preempt event and checkpoint on it",
             "Daly 2006"});
    } else if (plan.interval_s > 0 && plan.interval_s < winner->prediction.hours.mid * 3600) {
        out.push_back(
            {Severity::info, "checkpoint",
             fmt::format("checkpoint every {}: {:.2g} failures expected, {:.1f} % of the time lost to both",
                         format_seconds(Seconds(plan.interval_s)), plan.expected_failures, 100 * (1 - plan.goodput)),
             "", "Daly 2006; Llama 3, arXiv 2407.21783"});
    }
    for (const Candidate& candidate : input.plan.candidates)
        if (candidate.price_is_estimate) {
            out.push_back({Severity::warning, "spot-price-estimate",
                           "spot prices marked as estimates come from a published bracket, not from a price list; a "
                           "spot price equal to the list price means unknown",
                           "read the price of the day in the portal or from the Retail Prices API", ""});
            break;
        }
}

}  // namespace stoker

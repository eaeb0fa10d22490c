// Quota before anything else: the shortfall with its numbers, or what to check when no answer of list-usage was given.
#include <fmt/format.h>

#include "base/text.h"
#include "plan/advice/advice.h"
#include "plan/quota.h"

namespace stoker {

void advise_quota(const AdviceInput& input, AdviceList& out) {
    const Context& context = input.context;
    const Candidate* winner = input.winner();
    if (winner == nullptr || input.node(*winner).cloud != "azure") return;
    const NodeType& node = input.node(*winner);
    const int kept = winner->spot_service ? winner->spot_service->on_demand_nodes : 0;
    const double need = static_cast<double>(node.vcpus) * (winner->nodes - kept);
    const bool spot = winner->pricing == Pricing::spot;
    const std::string family = spot ? "lowPriorityCores" : node.quota_family;
    const Offer offer{.region = winner->region, .pricing = winner->pricing};

    if (auto shortfall = quota_shortfall(context, winner->node_type, offer, winner->nodes)) {
        out.push_back({AdviceSeverity::error, "quota-short", shortfall->text() + ". Ask for it before anything else.",
                       std::string(kAskForQuota), "az vm list-usage"});
    } else if (!usages_cover(context, winner->region)) {
        out.push_back(
            {AdviceSeverity::info, "quota-unknown",
             fmt::format(
                 "needs {} vCPUs of {} quota{} in {}: not checked (--usage). list-skus shows offers, not "
                 "quota{}",
                 format_thousands(need), family,
                 kept > 0 ? fmt::format(" and {} of {}", format_thousands(double(node.vcpus) * kept), node.quota_family)
                          : "",
                 winner->region, spot ? "" : "; the regional total must have as many"),
             fmt::format("az vm list-usage -l {} -o json > usage.json; stoker plan FILE --usage usage.json",
                         winner->region),
             ""});
    } else {
        out.push_back(as_background(
            {AdviceSeverity::info, "quota-enough",
             fmt::format("quota of {} in {} covers the {} vCPUs", family, winner->region, format_thousands(need)), "",
             "az vm list-usage"}));
    }
    for (const NodeChoice& choice : context.choices)
        for (const Offer& open : choice.offers)
            if (choice.type == winner->node_type && open.region == winner->region && !open.zones.empty() &&
                open.pricing == winner->pricing)
                out.push_back(as_background({AdviceSeverity::info, "zones-open",
                                             fmt::format("{} is open to this subscription in zone {} of {}", node.name,
                                                         join(open.zones, ", "), open.region),
                                             "name one of them: --zone", "az vm list-skus --all"}));
    // A better size that only quota excludes is worth a request.
    for (const Rejection& rejection : input.plan.rejected) {
        if (rejection.reason != Reason::quota || rejection.node_type == winner->node_type) continue;
        out.push_back(as_background(
            {AdviceSeverity::info, "quota-excludes",
             fmt::format("{} was left out for quota: {}", context.node(rejection.node_type).name, rejection.text),
             std::string(kAskForQuota), "az vm list-usage"}));
        break;
    }
    bool restricted = false;
    for (const Rejection& rejection : input.plan.rejected)
        restricted |= rejection.reason == Reason::restricted || rejection.reason == Reason::zone;
    if (restricted)
        out.push_back({AdviceSeverity::info, "restricted-sizes",
                       "sizes restricted for this subscription were left out (NotAvailableForSubscription: ask support "
                       "for access; QuotaId: the offer type excludes it)",
                       "stoker plan --show rejected", "az vm list-skus --all"});
}

}  // namespace stoker

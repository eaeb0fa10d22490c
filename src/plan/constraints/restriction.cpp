// What `az vm list-skus --all` says about a size in a region: every restriction and every zone counts, not the first.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/constraints/constraint.h"

namespace stoker {

MaybeRefusal refuse_restricted(const Context& context, int type, Offer& offer) {
    const NodeType& node = context.node(type);
    if (context.options.offers.empty() || node.cloud != "azure") return std::nullopt;
    if (const SkuOffer* sku = find_offer(context.options.offers, node.name, offer.region)) {
        const std::string codes = join(sku->reason_codes, ", ");
        if (sku->location_restricted)
            return Refusal{
                Reason::restricted, 0, 1,
                fmt::format("restricted in {}: {}{}", offer.region, codes.empty() ? "no reason given" : codes,
                            codes.find("QuotaId") != std::string::npos
                                ? " (the subscription's offer type excludes it)"
                                : " (ask support for access; this is not a quota number)")};
        if (sku->zones.empty() && !sku->restricted_zones.empty())
            return Refusal{Reason::zone, 0, 1,
                           fmt::format("restricted in every zone of {} ({}): {}", offer.region,
                                       join(sku->restricted_zones, ", "), codes)};
        offer.zones = sku->zones;
        return std::nullopt;
    }
    // A listing taken for one region says nothing about another, and nothing about a size in a region it does not
    // mention.
    if (!lists_region(context.options.offers, offer.region)) return std::nullopt;
    return Refusal{Reason::region, 0, 1,
                   fmt::format("not in the list-skus answer for {} (without --all, az leaves restricted sizes out)",
                               offer.region)};
}

}  // namespace stoker

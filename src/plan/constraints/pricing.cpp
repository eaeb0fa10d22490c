// Which pricings the user wants, and which spot prices mean something.
#include <fmt/format.h>

#include "plan/constraints/constraint.h"

namespace stoker {

MaybeRefusal refuse_pricing(const Context& context, int type, Offer& offer) {
    const Workload& workload = context.workload;
    constexpr double kYear = 365.25 * 86400;
    switch (offer.pricing) {
        case Pricing::owned: return std::nullopt;
        case Pricing::on_demand:
            if (workload.where.spot == SpotUse::only)
                return Refusal{Reason::spot_not_allowed, 0, 0, "where.spot is only"};
            return std::nullopt;
        case Pricing::reserved_1y:
        case Pricing::reserved_3y: {
            const double need = offer.pricing == Pricing::reserved_1y ? kYear : 3 * kYear;
            const double have = workload.where.commitment ? workload.where.commitment->v : 0;
            if (have >= 0.999 * need) return std::nullopt;
            return Refusal{Reason::dominated, have, need,
                           "a reservation outlasts the work: say `commitment` to have it considered"};
        }
        case Pricing::spot: break;
    }
    if (workload.where.spot == SpotUse::never)
        return Refusal{Reason::spot_not_allowed, 0, 0, "spot was not allowed (where: {spot: allowed})"};
    if (!workload.interruptible)
        return Refusal{Reason::spot_not_tolerated, 0, 0, "the work may not be interrupted, and spot is"};
    const Price* list = context.catalog.price(type, offer.region, workload.where.os, Pricing::on_demand);
    if (list != nullptr && !offer.estimate && offer.usd_per_hour >= list->per_hour.dollars())
        return Refusal{Reason::unpriced, offer.usd_per_hour, list->per_hour.dollars(),
                       "the spot price equals the list price, which means that no discount is listed: unknown"};
    return std::nullopt;
}

}  // namespace stoker

// Some regions are only for those who asked for access: a price there is no offer. Whoever names the region, or has it
// as home, knows.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "catalog/geography.h"
#include "plan/constraints/constraint.h"

namespace stoker {

MaybeRefusal refuse_closed_region(const Context& context, int type, Offer& offer) {
    const auto& where = context.workload.where;
    if (offer.pricing == Pricing::owned || !where.regions.empty() ||
        equals_ignore_case(home_of(context.workload, context.options), offer.region) ||
        access_of(context.node(type).cloud, offer.region) != RegionAccess::restricted)
        return std::nullopt;
    return Refusal{Reason::region, 0, 1,
                   fmt::format("access to {} is restricted by the provider and granted on request; where: {{regions: "
                               "[{}]}} plans with it",
                               offer.region, offer.region)};
}

}  // namespace stoker

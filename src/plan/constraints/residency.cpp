// Data may not leave the geographies the user named.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "catalog/geography.h"
#include "plan/constraints/constraint.h"

namespace stoker {

MaybeRefusal refuse_residency(const Context& context, int type, Offer& offer) {
    const auto& where = context.workload.where;
    const auto& allowed =
        where.residency.empty() && where.regions.empty() ? context.options.residency : where.residency;
    const std::string& cloud = context.node(type).cloud;
    if (allowed.empty() || offer.pricing == Pricing::owned || cloud == "this-machine") return std::nullopt;
    const std::string_view geography = geography_of(offer.region);
    for (const std::string& name : allowed)
        if (same_geography(name, offer.region)) return std::nullopt;
    return Refusal{Reason::residency, 0, 0,
                   fmt::format("{} lies in {}; data may not leave {}", offer.region,
                               geography.empty() ? "an unknown geography" : geography, join(allowed, ", "))};
}

}  // namespace stoker

// What a saved `az vm list-usage` answer says about a number of nodes.
#pragma once

#include <optional>
#include <string>

#include "plan/context.h"

namespace stoker {

struct QuotaShortfall {
    std::string family, region;
    double current = 0, limit = 0, need = 0;  // vCPUs
    std::string text() const;
};

// The scarcest pool that refuses; nothing when all pools suffice, or when the answer is about another region.
std::optional<QuotaShortfall> quota_shortfall(const Context& context, int type, const Offer& offer, int nodes);
bool usages_cover(const Context& context, std::string_view region);
std::string fold_family(std::string_view family);
inline constexpr std::string_view kAskForQuota =
    "Azure portal -> Subscriptions -> Usage + quotas -> request increase; current values: az vm list-usage -l REGION "
    "-o json";

}  // namespace stoker

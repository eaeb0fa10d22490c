#include "plan/quota.h"

#include <cctype>

#include <fmt/format.h>

#include "base/text.h"

namespace stoker {

std::string fold_family(std::string_view family) {
    std::string folded;
    for (char c : family)
        if (c != ' ') folded += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return folded;
}

std::string QuotaShortfall::text() const {
    return fmt::format("{} in {}: {:.0f} of {:.0f} vCPUs used, {:.0f} free, {:.0f} needed", family, region, current,
                       limit, limit - current, need);
}

bool usages_cover(const Context& context, std::string_view region) {
    if (context.options.usages.empty()) return false;
    if (!context.options.usages_region.empty()) return equals_ignore_case(context.options.usages_region, region);
    const auto& regions = context.workload.where.regions;
    return regions.size() == 1 && regions.front() == region;
}

std::optional<QuotaShortfall> quota_shortfall(const Context& context, int type, const Offer& offer, int nodes) {
    const NodeType& node = context.node(type);
    if (node.cloud != "azure" || !usages_cover(context, offer.region)) return std::nullopt;
    const double need = static_cast<double>(node.vcpus) * nodes;
    const bool spot = offer.pricing == Pricing::spot;
    const std::string wanted[2] = {spot ? "lowprioritycores" : fold_family(node.quota_family), spot ? "" : "cores"};
    std::optional<QuotaShortfall> worst;
    for (const QuotaUsage& usage : context.options.usages) {
        const std::string family = fold_family(usage.family);
        if (family.empty() || (family != wanted[0] && family != wanted[1])) continue;
        if (usage.limit - usage.current >= need) continue;
        if (worst && worst->limit - worst->current <= usage.limit - usage.current) continue;
        worst = QuotaShortfall{usage.family, offer.region, usage.current, usage.limit, need};
    }
    return worst;
}

}  // namespace stoker

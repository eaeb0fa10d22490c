#include "app/size_answer.h"

#include <fmt/format.h>

#include "base/text.h"

namespace stoker {

SizeAnswer answer_size(const std::vector<SkuOffer>& ordered, std::string_view size, std::string_view region) {
    const std::string what = fmt::format("{} in {}", size, region);
    if (!lists_region(ordered, region))
        return {false, fmt::format("{}: not known: --skus has no answer for {}", what, region)};
    const SkuOffer* offer = find_offer(ordered, size, region);
    if (offer == nullptr) return {false, fmt::format("{}: not offered: the region does not list it", what)};
    const std::string reasons =
        offer->reason_codes.empty() ? std::string() : fmt::format(" ({})", join(offer->reason_codes, ", "));
    const bool no_zone_left = offer->zones.empty() && !offer->restricted_zones.empty();
    if (offer->location_restricted || no_zone_left)
        return {false,
                fmt::format("{}: restricted for this subscription{}: a support request opens it", what, reasons)};
    std::string text = fmt::format("{}: offered to this subscription", what);
    if (!offer->zones.empty()) text += fmt::format(", zones {}", join(offer->zones, ", "));
    if (!offer->restricted_zones.empty())
        text += fmt::format("; not in zones {}{}", join(offer->restricted_zones, ", "), reasons);
    if (!offer->retirement_date.empty()) text += fmt::format("; it retires on {}", offer->retirement_date);
    return {true, text + ". Quota is another matter: --usage tells"};
}

}  // namespace stoker

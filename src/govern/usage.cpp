#include "govern/usage.h"

#include <algorithm>

namespace stoker {
namespace {

__extension__ using Wide = __int128;

}  // namespace

std::int64_t cost_until(std::int64_t microusd_per_hour, std::int64_t milli, std::int64_t start_us, std::int64_t t_us) {
    if (t_us <= start_us || microusd_per_hour <= 0 || milli <= 0) return 0;
    const Wide product = static_cast<Wide>(microusd_per_hour) * milli * (t_us - start_us);
    return static_cast<std::int64_t>(
        std::min<Wide>(product / (static_cast<Wide>(3'600'000'000) * 1000), Wide{1} << 62));
}

std::int64_t marked_up(std::int64_t microusd_per_hour, std::int64_t basis_points) {
    if (basis_points == 0) return microusd_per_hour;
    return static_cast<std::int64_t>(static_cast<Wide>(microusd_per_hour) * (10'000 + basis_points) / 10'000);
}

Cost cost_of(const PriceBook& book, const UsageInterval& interval, const UsageWindow& window) {
    Cost cost;
    if (std::min(interval.to_us, window.to_us) <= std::max(interval.from_us, window.from_us)) return cost;
    const auto rates = book.rates(interval.resource, interval.node, interval.model);
    if (rates.empty() || rates.front().from_us > std::max(interval.from_us, window.from_us)) cost.priced = false;
    for (std::size_t i = 0; i < rates.size(); ++i) {
        const std::int64_t start = std::max(interval.from_us, rates[i].from_us),
                           end = i + 1 < rates.size() ? std::min(interval.to_us, rates[i + 1].from_us) : interval.to_us;
        const std::int64_t from = std::max(start, window.from_us), to = std::min(end, window.to_us);
        if (to <= from) continue;
        const std::int64_t rate = marked_up(rates[i].microusd_per_hour, interval.markup_bp);
        cost.microusd += cost_until(rate, interval.milli, start, to) - cost_until(rate, interval.milli, start, from);
    }
    return cost;
}

double hours_of(const UsageInterval& interval, const UsageWindow& window) {
    const std::int64_t from = std::max(interval.from_us, window.from_us), to = std::min(interval.to_us, window.to_us);
    if (to <= from) return 0;
    return static_cast<double>(to - from) / 3.6e9 * static_cast<double>(interval.milli) / 1000;
}

}  // namespace stoker

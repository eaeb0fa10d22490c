#include "run/decide/stop_order.h"

#include <algorithm>

namespace stoker {
namespace {

constexpr std::int64_t kStopHourUs = std::int64_t{3600} * 1'000'000;

}  // namespace

StopOrder stop_order(const StandingRates& rates, const BudgetLoad& load, std::int64_t limit_micro,
                     std::int64_t head_start_us, std::int64_t now_us) {
    StopOrder order;
    if (load.rate_micro_per_h <= 0) return order;
    const std::int64_t notice = micro_over(load.rate_micro_per_h, load.notice_us);
    for (const auto& [standing, rate] : rates) {
        const std::int64_t line = limit_micro - notice - kept_for_higher(rates, standing, head_start_us);
        if (load.used_micro >= line) {
            order.now.insert(standing);
            continue;
        }
        __extension__ using Wide = __int128;
        const Wide us = static_cast<Wide>(line - load.used_micro) * kStopHourUs / load.rate_micro_per_h + 1;
        const std::int64_t at = now_us + static_cast<std::int64_t>(std::min<Wide>(us, kStopHourUs * 24));
        order.next_us = order.next_us == 0 ? at : std::min(order.next_us, at);
    }
    return order;
}

}  // namespace stoker

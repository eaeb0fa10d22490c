// The order of candidates: what speaks against them, the objective, and then what only decides ties; the names at the
// end make the order total.
#include <algorithm>
#include <tuple>

#include "plan/option.h"

namespace stoker {

std::int64_t score(const Option& option, Minimize minimize) {
    switch (minimize) {
        case Minimize::cost: return score_cost(option);
        case Minimize::time: return score_time(option);
        case Minimize::energy: return score_energy(option);
    }
    return 0;
}

bool ranks_before(const Option& a, const Option& b, Minimize minimize) {
    auto key = [minimize](const Option& o) {
        // Of two that are as fast, the cheaper.
        const bool tied = o.taste < 0 && minimize != Minimize::cost;
        return std::tuple(o.doubts, o.taste, tied ? 0 : score(o, minimize), score_cost(o), score_time(o), -o.year,
                          o.nodes, o.name, o.region, static_cast<int>(o.pricing), o.point);
    };
    return key(a) < key(b);
}

void settle_ties(std::vector<Option>& options, Minimize minimize, double share) {
    for (Option& option : options) option.taste = 0;
    const auto best = std::min_element(options.begin(), options.end(),
                                       [=](const Option& a, const Option& b) { return ranks_before(a, b, minimize); });
    if (best == options.end()) return;
    const int doubts = best->doubts;
    const double most = static_cast<double>(score(*best, minimize)) * (1 + share);
    constexpr int kBeforeAll = 1000;  // any tie comes before any that is none
    for (Option& option : options)
        if (option.doubts == doubts && static_cast<double>(score(option, minimize)) <= most)
            option.taste = option.preference - kBeforeAll;
}

}  // namespace stoker

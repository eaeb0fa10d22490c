#include <algorithm>
#include <limits>

#include "plan/option.h"

namespace stoker {

std::vector<Option> pareto_front(std::vector<Option> options) {
    std::erase_if(options, [](const Option& o) { return !o.priced; });
    std::sort(options.begin(), options.end(), [](const Option& a, const Option& b) {
        if (score_time(a) != score_time(b)) return score_time(a) < score_time(b);
        Option x = a, y = b;
        x.preference = y.preference = 0;
        return ranks_before(x, y, Minimize::cost);
    });
    std::vector<Option> front;
    std::int64_t cheapest = std::numeric_limits<std::int64_t>::max();
    for (Option& option : options) {
        if (score_cost(option) >= cheapest) continue;
        cheapest = score_cost(option);
        front.push_back(option);
    }
    return front;
}

std::vector<Option> best_of_groups(std::vector<Option> options, Minimize minimize) {
    std::sort(options.begin(), options.end(),
              [=](const Option& a, const Option& b) { return ranks_before(a, b, minimize); });
    std::vector<Option> best;
    std::vector<std::pair<int, Pricing>> seen;
    bool second_region = false;
    for (Option& option : options) {
        const std::pair group{option.choice, option.pricing};
        if (std::find(seen.begin(), seen.end(), group) == seen.end()) {
            seen.push_back(group);
            best.push_back(option);
        } else if (!second_region && !best.empty() && group == seen.front() && option.nodes == best.front().nodes &&
                   option.region != best.front().region) {
            best.push_back(option);  // the same machines somewhere else: what a person asks first
            second_region = true;
        }
    }
    return best;
}

}  // namespace stoker

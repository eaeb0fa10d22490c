#include <algorithm>
#include <limits>

#include "plan/option.h"

namespace stoker {

std::vector<Option> pareto_front(std::vector<Option> options) {
    std::erase_if(options, [](const Option& o) { return !o.priced; });
    std::sort(options.begin(), options.end(), [](const Option& a, const Option& b) {
        if (score_time(a) != score_time(b)) return score_time(a) < score_time(b);
        Option x = a, y = b;
        x.doubts = y.doubts = x.taste = y.taste = 0;
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
        const std::pair group{option.kind, option.pricing};
        if (std::find(seen.begin(), seen.end(), group) == seen.end()) {
            seen.push_back(group);
            best.push_back(option);
        } else if (!second_region && group == seen.front() && option.choice == best.front().choice &&
                   option.nodes == best.front().nodes && option.region != best.front().region &&
                   option.usd.mid > 1.005 * best.front().usd.mid) {
            best.push_back(option);  // the same machines somewhere else: what a person asks first
            second_region = true;
        }
    }
    return best;
}

std::vector<Option> worth_showing(const std::vector<Option>& groups, std::vector<Option> options, Minimize minimize,
                                  std::size_t top) {
    // Beyond this factor of the winner's score a row tells nothing but that it is out of the question.
    constexpr double kOutOfQuestion = 10;
    std::vector<Option> shown;
    auto sane = [&](const Option& o) {
        return o.named || static_cast<double>(score(o, minimize)) <=
                              kOutOfQuestion * std::max(1.0, static_cast<double>(score(groups.front(), minimize)));
    };
    // Beside GPUs one CPU row answers "could it run on CPUs?"; a second says the same again.
    auto one_more_cpu = [&](const Option& o) {
        return groups.front().gpu && !o.gpu && !o.named &&
               std::any_of(shown.begin(), shown.end(), [](const Option& s) { return !s.gpu; });
    };
    for (const Option& option : groups)
        if (shown.size() < top && sane(option) && !one_more_cpu(option)) shown.push_back(option);
    if (shown.size() < top) {
        std::sort(options.begin(), options.end(),
                  [=](const Option& a, const Option& b) { return ranks_before(a, b, minimize); });
        for (const Option& option : options) {
            if (shown.size() >= top) break;
            const bool known = std::any_of(shown.begin(), shown.end(), [&](const Option& o) {
                return o.choice == option.choice && o.pricing == option.pricing;
            });
            if (!known && sane(option) && !one_more_cpu(option)) shown.push_back(option);
        }
    }
    // One alternative is always worth more than none.
    if (shown.size() == 1 && top > 1 && groups.size() > 1 && groups[1].gpu == groups[0].gpu) shown.push_back(groups[1]);
    std::stable_sort(shown.begin(), shown.end(),
                     [=](const Option& a, const Option& b) { return ranks_before(a, b, minimize); });
    return shown;
}

}  // namespace stoker

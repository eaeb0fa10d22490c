#include "explain/run_cost.h"

namespace stoker {

std::optional<std::int64_t> cost_of_run(const State& state, const Run& run, const PriceBook& prices,
                                        std::int64_t now_us) {
    if (prices.empty()) return std::nullopt;
    std::int64_t sum = 0;
    const auto add = [&](const Run& each) {
        for (const UsageInterval& interval : intervals_of(state, each, prices, now_us))
            sum += cost_of(prices, interval, {0, now_us}).microusd;
    };
    add(run);
    const auto steps = state.steps.find(run.id);
    if (steps != state.steps.end())
        for (const RunId step : steps->second) add(*state.find(step));
    return sum;
}

Result<RunAsItStands> run_as_it_stands(const State& state, RunId run, const PriceBook& prices, std::int64_t now_us) {
    const Run* found = state.find(run);
    if (found == nullptr) return no_such_run(state, run);
    return RunAsItStands{.run = *found, .now_us = now_us, .cost_microusd = cost_of_run(state, *found, prices, now_us)};
}

}  // namespace stoker

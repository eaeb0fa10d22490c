#include "explain/run_cost.h"

#include <algorithm>

namespace stoker {

std::vector<UsageInterval> intervals_of(const State& state, const Run& run, const PriceBook& prices,
                                        std::int64_t now_us) {
    std::vector<UsageInterval> out;
    const RankNeeds& needs = run.spec.per_rank;
    for (const Attempt& attempt : run.attempts) {
        if (attempt.began_us() == 0) continue;  // it waits at the engine, or did all its time
        const std::int64_t to = attempt.held_until_us(now_us);
        for (const RankPlace& place : attempt.places) {
            const NodeInfo* found = state.find_node(place.node);
            UsageInterval each{.resource = PricedResource::cpu,
                               .node = place.node,
                               .model = "",
                               .milli = needs.cpu_milli,
                               .from_us = attempt.began_us(),
                               .to_us = to};
            // A node with a price of its own is paid by the largest share that a rank takes of it.
            const bool whole = std::any_of(prices.prices.begin(), prices.prices.end(), [&](const BookPrice& price) {
                return price.resource == PricedResource::node && (price.node.empty() || price.node == place.node);
            });
            if (whole && found != nullptr) {
                const NodeInfo& info = *found;
                std::int64_t share = info.cpu_milli > 0 ? 1000 * needs.cpu_milli / info.cpu_milli : 0;
                if (!info.devices.empty())
                    share = std::max(share, std::int64_t{needs.gpus} * needs.gpu_milli /
                                                static_cast<std::int64_t>(info.devices.size()));
                each.resource = PricedResource::node;
                each.milli = std::min<std::int64_t>(1000, share);
                out.push_back(each);
                continue;
            }
            out.push_back(each);
            for (unsigned i = 0; i < 32; ++i) {
                if ((place.devices >> i & 1) == 0) continue;
                each.resource = PricedResource::gpu;
                each.milli = needs.gpu_milli;
                each.model = found != nullptr && i < found->devices.size() ? found->devices[i].model : needs.gpu_model;
                out.push_back(each);
            }
        }
    }
    return out;
}

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

#include "run/state/free_time.h"

#include <algorithm>
#include <variant>

#include "run/state/run_intervals.h"

namespace stoker {

void NodeTime::add(std::int64_t at_us, const RecordBody& body) {
    if (std::holds_alternative<NodeSeen>(body)) {
        // Seen again with other figures, it stays as it is.
        if (changes_.empty() || !changes_.back().there) changes_.push_back({at_us, true, true});
    } else if (const auto* moved = std::get_if<NodeMoved>(&body)) {
        changes_.push_back({at_us, moved->state != NodeState::lost, moved->state == NodeState::ready});
    } else if (std::holds_alternative<NodeRemoved>(body)) {
        changes_.push_back({at_us, false, false});
    }
}

std::vector<NodeSpan> NodeTime::spans(const UsageWindow& window) const {
    std::vector<NodeSpan> out;
    for (std::size_t i = 0; i < changes_.size(); ++i) {
        const std::int64_t from = std::max(changes_[i].at_us, window.from_us);
        const std::int64_t to = i + 1 < changes_.size() ? std::min(changes_[i + 1].at_us, window.to_us) : window.to_us;
        if (!changes_[i].there || to <= from) continue;
        if (!out.empty() && out.back().to_us == from && out.back().ready == changes_[i].ready)
            out.back().to_us = to;
        else
            out.push_back({from, to, changes_[i].ready});
    }
    return out;
}

std::map<std::string, std::vector<UsageInterval>> held_of_nodes(const State& state, const PriceBook& prices,
                                                                const UsageWindow& window, std::int64_t now_us) {
    std::map<std::string, std::vector<UsageInterval>> held;
    for (const auto& [id, run] : state.runs)
        for (const Attempt& attempt : run.attempts) {
            const std::int64_t from = attempt.began_us(), to = attempt.held_until_us(now_us);
            if (from == 0 || from >= window.to_us || to <= window.from_us) continue;
            for (UsageInterval& each : intervals_at(state, run.spec, attempt.places, prices, from, to))
                held[each.node].push_back(std::move(each));
        }
    return held;
}

FreeTime free_time(const State& state, const NodeInfo& node, const std::vector<UsageInterval>& held,
                   const UsageWindow& window, const PriceBook& prices) {
    FreeTime free;
    const auto count = [&](const UsageInterval& interval, int sign) {
        (interval.resource == PricedResource::gpu    ? free.gpu_hours
         : interval.resource == PricedResource::node ? free.node_hours
                                                     : free.cpu_hours) += sign * hours_of(interval, window);
        const Cost cost = cost_of(prices, interval, window);
        free.microusd += sign * cost.microusd;
        if (sign > 0) free.priced = free.priced && cost.priced;
    };
    RunSpec whole;
    whole.per_rank.cpu_milli = node.cpu_milli;
    const bool by_place = node.devices.size() < 32;
    whole.per_rank.gpus = static_cast<int>(node.devices.size());
    whole.per_rank.gpu_milli = 1000;
    const RankPlace place{.node = node.name, .devices = by_place ? (1u << node.devices.size()) - 1 : 0};
    for (const UsageInterval& each : intervals_at(state, whole, {place}, prices, window.from_us, window.to_us))
        count(each, 1);
    for (const UsageInterval& each : held) count(each, -1);
    // More was held than is there, where shares are rounded up.
    for (double* hours : {&free.gpu_hours, &free.cpu_hours, &free.node_hours}) *hours = std::max(0.0, *hours);
    free.microusd = std::max<std::int64_t>(0, free.microusd);
    return free;
}

}  // namespace stoker

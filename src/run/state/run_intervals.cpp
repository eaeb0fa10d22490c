#include "run/state/run_intervals.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "run/state/rules.h"

namespace stoker {
namespace {

constexpr std::int64_t kMicroHoursPerHour = 1'000'000;

void add_rank(const State& state, const RankNeeds& needs, const RankPlace& place, const PriceBook& prices,
              std::int64_t from_us, std::int64_t to_us, std::int64_t markup_bp, std::vector<UsageInterval>& out) {
    const NodeInfo* found = state.find_node(place.node);
    UsageInterval each{.resource = PricedResource::cpu,
                       .node = place.node,
                       .model = "",
                       .milli = needs.cpu_milli,
                       .from_us = from_us,
                       .to_us = to_us,
                       .markup_bp = markup_bp};
    // A node with a price of its own is paid by the largest share that a rank takes of it.
    const bool whole = std::any_of(prices.prices.begin(), prices.prices.end(), [&](const BookPrice& price) {
        return price.resource == PricedResource::node && (price.node.empty() || price.node == place.node);
    });
    if (whole && found != nullptr) {
        const NodeInfo& info = *found;
        std::int64_t share = info.cpu_milli > 0 ? 1000 * needs.cpu_milli / info.cpu_milli : 0;
        if (!info.devices.empty())
            share = std::max(
                share, std::int64_t{needs.gpus} * needs.gpu_milli / static_cast<std::int64_t>(info.devices.size()));
        each.resource = PricedResource::node;
        each.milli = std::min<std::int64_t>(1000, share);
        out.push_back(each);
        return;
    }
    out.push_back(each);
    if (place.devices == 0 && needs.gpus > 0) {
        // The engine chose the devices, and says how many at most.
        each.resource = PricedResource::gpu;
        each.milli = std::int64_t{needs.gpus} * needs.gpu_milli;
        each.model = needs.gpu_model.empty() && found != nullptr && !found->devices.empty() ? found->devices[0].model
                                                                                            : needs.gpu_model;
        out.push_back(each);
    }
    for (unsigned i = 0; i < 32; ++i) {
        if ((place.devices >> i & 1) == 0) continue;
        each.resource = PricedResource::gpu;
        each.milli = needs.gpu_milli;
        each.model = found != nullptr && i < found->devices.size() ? found->devices[i].model : needs.gpu_model;
        out.push_back(each);
    }
}

}  // namespace

std::int64_t markup_of(const State& state, ProjectId project, const PriceBook& prices) {
    if (prices.markups.empty()) return 0;
    const auto found = state.tenants.projects.find(project);
    if (found == state.tenants.projects.end()) return 0;
    return prices.markup_of(state.tenants.organisations.at(found->second.organisation).name);
}

std::vector<UsageInterval> intervals_of(const State& state, const Run& run, const PriceBook& prices,
                                        std::int64_t now_us) {
    std::vector<UsageInterval> out;
    const std::int64_t markup_bp = markup_of(state, run.project, prices);
    for (const Attempt& attempt : run.attempts) {
        if (attempt.began_us() == 0) continue;  // it waits at the engine, or did all its time
        for (const RankPlace& place : attempt.places)
            add_rank(state, run.spec.per_rank, place, prices, attempt.began_us(), attempt.held_until_us(now_us),
                     markup_bp, out);
    }
    return out;
}

std::vector<UsageInterval> intervals_at(const State& state, const RunSpec& spec, const std::vector<RankPlace>& places,
                                        const PriceBook& prices, std::int64_t from_us, std::int64_t to_us,
                                        std::int64_t markup_bp) {
    std::vector<UsageInterval> all;
    for (const RankPlace& place : places) add_rank(state, spec.per_rank, place, prices, from_us, to_us, markup_bp, all);
    std::map<std::tuple<PricedResource, std::string, std::string>, std::int64_t> milli;
    for (const UsageInterval& each : all) milli[{each.resource, each.node, each.model}] += each.milli;
    std::vector<UsageInterval> merged;
    for (const auto& [what, sum] : milli)
        merged.push_back({.resource = std::get<0>(what),
                          .node = std::get<1>(what),
                          .model = std::get<2>(what),
                          .milli = sum,
                          .from_us = from_us,
                          .to_us = to_us,
                          .markup_bp = markup_bp});
    return merged;
}

std::int64_t rate_of(const std::vector<UsageInterval>& intervals, const PriceBook& prices, std::int64_t now_us) {
    std::int64_t sum = 0;
    for (const UsageInterval& each : intervals) {
        std::int64_t rate = 0;
        for (const PriceBook::Rate& known : prices.rates(each.resource, each.node, each.model))
            if (known.from_us <= now_us) rate = known.microusd_per_hour;
        sum += cost_until(marked_up(rate, each.markup_bp), each.milli, 0, 3600 * kSecondUs);
    }
    return sum;
}

std::optional<UsageCharged> next_charge(const State& state, const Run& run, const Attempt& attempt,
                                        const PriceBook& prices, const std::string& book, std::int64_t until_us) {
    const std::int64_t began = attempt.began_us();
    if (began == 0) return std::nullopt;
    const std::int64_t from = std::max(began, attempt.charged_us.value_or(began));
    std::int64_t to = std::max(began, attempt.held_until_us(until_us));
    if (to == from || (to < from && attempt.live())) return std::nullopt;
    UsageCharged charge{.attempt = {run.id, attempt.number},
                        .project = run.project,
                        .user = quota_owner({}, run.submitted_by).user,
                        .credit = to < from,
                        .book = book,
                        .lines = {}};
    charge.from_us = std::min(from, to);
    charge.to_us = std::max(from, to);
    // A piece lies in one month.
    if (const auto month = month_window(month_of(charge.credit ? charge.to_us - 1 : charge.from_us))) {
        if (charge.credit)
            charge.from_us = std::max(charge.from_us, month->from_us);
        else
            charge.to_us = std::min(charge.to_us, month->to_us);
    }
    const std::int64_t sign = charge.credit ? -1 : 1;
    const auto of_piece = [&](std::int64_t rate, std::int64_t milli) {
        return sign * (cost_until(rate, milli, began, charge.to_us) - cost_until(rate, milli, began, charge.from_us));
    };
    charge.gpu_micro_hours = of_piece(kMicroHoursPerHour, quota_demand(run.spec).gpu_milli);
    for (const UsageInterval& each : intervals_at(state, run.spec, attempt.places, prices, began, charge.to_us,
                                                  markup_of(state, run.project, prices))) {
        const Cost cost = cost_of(prices, each, {charge.from_us, charge.to_us});
        charge.lines.push_back({.resource = each.resource,
                                .node = each.node,
                                .model = each.model,
                                .milli = each.milli,
                                .micro_hours = of_piece(kMicroHoursPerHour, each.milli),
                                .microusd = sign * cost.microusd,
                                .priced = cost.priced});
    }
    return charge;
}

}  // namespace stoker

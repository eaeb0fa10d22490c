// Points times offers: money, time and energy of each, and the limits that depend on them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plan/chance.h"
#include "plan/constraints/constraint.h"
#include "plan/option.h"

namespace stoker {
namespace {

double share_busy(const Prediction& prediction) {
    return prediction.utilisation > 0 ? std::min(1.0, prediction.utilisation) : 0.6;
}

double list_price(const NodeChoice& choice, std::string_view region) {
    for (const Offer& offer : choice.offers)
        if (offer.priced && offer.pricing == Pricing::on_demand && offer.region == region) return offer.usd_per_hour;
    return 0;
}

}  // namespace

int on_demand_nodes(const Context& context, const Point& point, const Offer& offer) {
    const auto& kept = context.workload.where.on_demand_replicas;
    if (!kept || offer.pricing != Pricing::spot || point.replicas <= 0 || point.nodes <= 0) return 0;
    const double per_node = static_cast<double>(point.replicas) / point.nodes;
    return std::min(point.nodes, static_cast<int>(std::ceil(*kept / per_node - 1e-9)));
}

Option price_point(const Context& context, const std::vector<Point>& points, int index, int offer_index) {
    const Point& point = points[static_cast<std::size_t>(index)];
    const NodeChoice& choice = context.choices[static_cast<std::size_t>(point.choice)];
    const Offer& offer = choice.offers[static_cast<std::size_t>(offer_index)];
    Option option{.point = index,
                  .choice = point.choice,
                  .offer = offer_index,
                  .kind = choice.kind,
                  .nodes = point.nodes,
                  .year = choice.year(),
                  .preference = point.preference,
                  .doubts = doubts_of(context, point, offer),
                  .priced = offer.priced,
                  .gpu = choice.accelerator != nullptr,
                  .named = context.size_was_named(choice.type),
                  .known_elsewhere = choice.known_elsewhere,
                  .sure_alone = point.sure_alone,
                  .gang = point.gang,
                  .latency_s = point.latency_s,
                  .worth = point.worth,
                  .set_up = point.set_up,
                  .span = point.replicas > 0 && choice.devices() > 0
                              ? std::max(1, (point.replica.gpus() + choice.devices() - 1) / choice.devices())
                              : 1,
                  .pricing = offer.pricing,
                  .name = choice.node->name,
                  .region = offer.region};
    option.unease = std::pow(std::max(point.growth, 1.0), context.settings.evidence_exponent);
    // Scarce, and forgiven for a gang that has to be arranged for (doubts_of): at no more than the same price.
    if (choice.scarce && (option.doubts & doubt::scarce) == 0) option.unease *= 1 + context.settings.most_for_evidence;
    // Gangs of many machines over Ethernet are hardly ever published.
    constexpr int kManyOnEthernet = 8;
    if (point.gang && point.nodes > kManyOnEthernet && !is_rdma(*choice.node))
        option.unease *= 1 + context.settings.most_for_evidence;
    // Nor are gangs on spot that are larger than those that were watched.
    if (point.gang && offer.pricing == Pricing::spot && point.nodes > context.settings.spot_gang_watched)
        option.unease *= 1 + context.settings.most_for_evidence;
    if (point.work_s > 0) {
        const Range& evictions = evictions_of(context.settings, *choice.node);
        // What is paid, and what passes: while there is no capacity nothing is paid.
        auto stretch = [&](double rate) {
            const CheckpointPlan plan = checkpoints_of(context, point, offer.pricing, rate);
            const double paid = 1 / std::max(plan.goodput, 1e-6);
            return std::pair(paid, paid + plan.waiting_s / point.work_s);
        };
        const auto [paid, passed] = stretch(evictions.mid);
        // Step time and evictions err independently; on machines that nobody takes away only the first does.
        Range paid_factor = point.speed * paid, passed_factor = paid_factor;
        if (offer.pricing == Pricing::spot) {
            const auto low = stretch(evictions.low), high = stretch(evictions.high);
            paid_factor = combined(point.speed, {low.first, paid, high.first});
            passed_factor = combined(point.speed, {low.second, passed, high.second});
        }
        option.goodput = 1 / paid_factor.mid;
        const double base = start_s(context, *choice.node) / 3600, work_h = point.work_s / 3600;
        const auto hours = [&](const Range& factor) {
            return Range{base + work_h * factor.low, base + work_h * factor.mid, base + work_h * factor.high};
        };
        option.hours = hours(passed_factor);
        option.paid_hours = hours(paid_factor);
    } else {
        option.hours = option.paid_hours = {point.service_hours, point.service_hours, point.service_hours};
    }

    // Nodes x hours x price, and nothing else: the same figure stands in run reports and invoices. Disks are told
    // apart.
    // Nodes that a service on spot is never to lose are paid at list price.
    const int kept = on_demand_nodes(context, point, offer);
    const double list = kept > 0 ? list_price(choice, offer.region) : 0;
    auto money = [&](double hours, double price) { return hours * ((point.nodes - kept) * price + kept * list); };
    option.priced = offer.priced && (kept == 0 || list > 0);
    if (option.priced)
        option.usd = {money(option.paid_hours.low, std::min(offer.low, offer.usd_per_hour)),
                      money(option.paid_hours.mid, offer.usd_per_hour),
                      money(option.paid_hours.high, std::max(offer.high, offer.usd_per_hour))};

    const Accelerator* accelerator = choice.accelerator;
    const double count = accelerator != nullptr ? choice.node->accelerators * point.nodes : point.nodes;
    const double full =
        accelerator != nullptr ? accelerator->power.v : context.settings.cpu_w_per_core * choice.node->cores;
    const double idle =
        accelerator != nullptr
            ? (accelerator->idle_power.v > 0 ? accelerator->idle_power.v : context.settings.idle_power_fraction * full)
            : context.settings.cpu_idle_power_fraction * full;
    const double host =
        accelerator != nullptr
            ? std::min(context.settings.host_w_per_gpu,
                       context.settings.host_w_per_vcpu * choice.node->vcpus / std::max(1.0, choice.node->accelerators))
            : context.settings.cpu_host_w;
    // What is given back draws nothing.
    auto energy = [&](double hours) {
        return energy_kwh(count, full, idle, share_busy(point.prediction), host, hours * 3600, context.settings.pue);
    };
    option.kwh = {energy(option.paid_hours.low), energy(option.paid_hours.mid), energy(option.paid_hours.high)};
    return option;
}

TieRules tie_rules(const PlanSettings& settings) {
    return {.share = settings.tie_share,
            .most_for_time = settings.most_for_time,
            .time_exponent = settings.time_exponent,
            .nodes_exponent = settings.nodes_exponent,
            .most_for_money = settings.most_for_money,
            .money_exponent = settings.money_exponent,
            .unnoticed_s = settings.unnoticed_s,
            .most_for_whole = settings.most_for_whole,
            .most_for_evidence = settings.most_for_evidence};
}

namespace {

// A file that describes a machine of one's own without a count promises no second one: of each, no more than the fewest
// that keep the limits with the least against them.
void keep_fewest_uncounted(const Context& context, std::vector<Option>& options) {
    std::map<int, std::pair<int, int>> least;  // by choice: doubts, nodes
    const auto uncounted = [&](const Option& option) {
        const NodeType& node = *context.choices[static_cast<std::size_t>(option.choice)].node;
        return node.cloud == "on-prem" && node.available <= 0 && !context.workload.where.pinned_nodes(node);
    };
    for (const Option& option : options) {
        if (!uncounted(option)) continue;
        const std::pair known(option.doubts, option.nodes);
        const auto [at, first] = least.try_emplace(option.choice, known);
        at->second = std::min(at->second, known);
    }
    if (least.empty()) return;
    std::erase_if(options, [&](const Option& option) {
        return uncounted(option) && option.nodes > least.at(option.choice).second;
    });
}

}  // namespace

Expansion expand(const Context& context, const std::vector<Point>& points, bool forgiving) {
    Expansion out;
    for (std::size_t p = 0; p < points.size(); ++p) {
        const NodeChoice& choice = context.choices[static_cast<std::size_t>(points[p].choice)];
        int near[5] = {0, 0, 0, 0, 0}, far[5] = {0, 0, 0, 0, 0}, blocked[5] = {0, 0, 0, 0, 0};
        for (std::size_t o = 0; o < choice.offers.size(); ++o) {
            const Offer& offer = choice.offers[o];
            ++out.considered;
            // Dearer regions of the same thing are left out; one that is far or has no quota does not stand for others.
            int& taken = (offer.far > 0 ? far : near)[static_cast<int>(offer.pricing)];
            if (taken >= 2) continue;
            auto say_no = [&](const Refusal& refusal) {
                out.rejected.add({.node_type = choice.type,
                                  .region = offer.region,
                                  .nodes = points[p].nodes,
                                  .reason = refusal.reason,
                                  .have = refusal.have,
                                  .need = refusal.need,
                                  .text = refusal.text});
                ++out.refused;
            };
            auto refusal = refuse_nodes(context, choice.type, offer, points[p].nodes);
            if (!refusal) refusal = refuse_unused_rdma(context, points, points[p], offer);
            if (refusal) {
                say_no(*refusal);
                continue;
            }
            Option option = price_point(context, points, static_cast<int>(p), static_cast<int>(o));
            const bool no_quota = (option.doubts & doubt::blocked) != 0;
            if (++(no_quota ? blocked[static_cast<int>(offer.pricing)] : taken) > 2) continue;
            auto late = points[p].work_s > 0 ? refuse_deadline(context, option.hours) : std::nullopt;
            const double service = points[p].work_s > 0 ? 0 : points[p].service_hours;
            auto dear =
                option.priced ? refuse_budget(context, budgeted_usd(context, option.usd, service)) : std::nullopt;
            if (late)
                say_no(*late);
            else if (dear)
                say_no(*dear);
            (late || dear ? out.over_limit : out.options).push_back(option);
        }
    }
    keep_fewest_uncounted(context, out.options);
    if (forgiving)
        forgive_small_doubts(out.options, context.workload.objective.minimize,
                             context.settings.small_doubt_most_factor);
    settle_ties(out.options, context.workload.objective.minimize, tie_rules(context.settings));
    return out;
}

}  // namespace stoker

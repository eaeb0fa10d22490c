// Spot: the saving, the evictions to expect, and the checkpoint interval that keeps the loss small.
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/advice/advice.h"

namespace stoker {
namespace {

// Which rate is planned with, where it comes from, and where the choice would be another.
std::string rate_text(const SpotRate& rate, bool spot) {
    std::string text = fmt::format("Evictions of one node: {:.2g} an hour ({:.2g} - {:.2g}), {}", rate.per_hour.mid,
                                   rate.per_hour.low, rate.per_hour.high,
                                   rate.given ? rate.from : rate.from + "; of this size and region it is not known");
    if (rate.flips_at > 0)
        text +=
            fmt::format("; {} {:.2g} an hour the choice is {}", spot ? "above" : "below", rate.flips_at, rate.outcome);
    return text;
}

std::string service_text(const Candidate::SpotService& s, const Candidate& c) {
    const auto span = [](const Range& range, auto&& text) {
        const std::string low = text(range.low), high = text(range.high);
        return low == high ? low : low + " - " + high;
    };
    const auto hours = [](double h) { return h < 9.95 ? fmt::format("{:.1f}", h) : fmt::format("{:.0f}", h); };
    const auto count = [](double n) {
        if (n < 1000) return fmt::format("{:.0f}", n);
        const double unit = std::pow(10.0, std::floor(std::log10(n)) - 1);
        return format_count(std::round(n / unit) * unit);
    };
    std::string text = fmt::format("spot: about {} evictions a month; too few nodes for the load in {} h of 730",
                                   count(s.evictions), span(s.hours_below, hours));
    if (s.requests.high >= 1) text += fmt::format(", {} requests without room", span(s.requests, count));
    if (hours(s.hours_below.low) != hours(s.hours_below.high)) text += " (each node for itself - all at once)";
    if (s.on_demand_nodes > 0)
        text += fmt::format(". {} of {} nodes {} on demand and stay", s.on_demand_nodes, c.nodes,
                            s.on_demand_nodes == 1 ? "is" : "are");
    return text;
}

// The rate is a guess within a factor of ten: two digits at most.
std::string evictions_text(double count) {
    if (count < 9.95) return fmt::format("{:.1f}", count);
    const double unit = std::pow(10.0, std::floor(std::log10(count)) - 1);
    return format_thousands(std::round(count / unit) * unit);
}

// Where the rates and prices of spot capacity stand, and how it says that it goes.
struct SpotWords {
    std::string_view rates, notice, prices;
};
SpotWords words_of(std::string_view cloud) {
    if (cloud == "azure")
        return {"look it up in Azure Resource Graph, SpotResources", "on the Preempt event",
                "read the price of the day in the portal or from the Retail Prices API"};
    if (cloud == "aws")
        return {"look it up in the EC2 Spot Instance Advisor", "on the notice of two minutes (spot/instance-action)",
                "aws ec2 describe-spot-price-history has the price of the day"};
    if (cloud == "gcp")
        return {"Google publishes none: ask for a few days before you count on it", "on the notice of 30 s (preempted)",
                "read the price of the day in the console or from the Cloud Billing Catalog API"};
    return {"ask the provider", "on its notice", "read the price of the day at the provider"};
}

}  // namespace

void advise_spot(const AdviceInput& input, AdviceList& out) {
    const Candidate* winner = input.winner();
    if (winner == nullptr) return;
    const CheckpointPlan& plan = winner->prediction.checkpoint;
    const SpotWords words = words_of(input.node(*winner).cloud);
    // What works through a pile has no checkpoint: what is finished is.
    const bool trains = is_training(input.context.workload.kind);
    if (winner->pricing == Pricing::spot) {
        std::string text;
        if (plan.interval_s > 0)
            text =
                fmt::format("spot: about {} evictions expected; {} every {} and lose {:.1f} % of the time",
                            evictions_text(plan.expected_evictions), trains ? "checkpoint" : "write what is finished",
                            format_seconds(Seconds(plan.interval_s)), 100 * (1 - plan.goodput));
        else if (winner->prediction.step_s.mid > 0)
            text = fmt::format(
                "spot: about {} evictions expected; it is too short for checkpoints before its end, and {:.1f} % of "
                "the time is lost",
                evictions_text(plan.expected_evictions), 100 * (1 - plan.goodput));
        else
            text = winner->spot_service ? service_text(*winner->spot_service, *winner)
                                        : "spot: machines go with a notice of 30 s or none";
        if (plan.waiting_s > 0)
            text += fmt::format("; {:.0f} % of the time waits for capacity",
                                100 * plan.waiting_s / std::max(1.0, winner->prediction.hours.mid * 3600));
        if (input.plan.spot_rate) text += ". " + rate_text(*input.plan.spot_rate, true);
        const Price* list = input.context.catalog.price(winner->node_type, winner->region,
                                                        input.context.workload.where.os, Pricing::on_demand);
        if (list != nullptr && list->per_hour.dollars() > 0)
            text += fmt::format(". Saves {:.0f} % of the list price",
                                100 * (1 - winner->node_per_hour.dollars() / list->per_hour.dollars()));
        out.push_back({AdviceSeverity::warning, "spot-risk", text,
                       fmt::format("{}; {} {}", words.rates,
                                   trains                                         ? "checkpoint"
                                   : winner->prediction.checkpoint.interval_s > 0 ? "write what is finished"
                                                                                  : "take no more requests",
                                   words.notice),
                       "Daly 2006"});
    } else if (is_training(input.context.workload.kind) && plan.expected_failures > 0.01 && plan.interval_s > 0 &&
               plan.interval_s < winner->prediction.hours.mid * 3600) {
        out.push_back(
            {AdviceSeverity::info, "checkpoint",
             fmt::format("checkpoint every {}: {:.2g} failures expected, {:.1f} % of the time lost to both",
                         format_seconds(Seconds(plan.interval_s)), plan.expected_failures, 100 * (1 - plan.goodput)),
             "", "Daly 2006; failures of two large clusters, arXiv 2410.21680"});
    }
    if (winner->pricing != Pricing::spot && input.plan.spot_rate)
        out.push_back({AdviceSeverity::info, "spot-passed",
                       (input.plan.spot_rate->flips_at > 0 || !input.context.options.what_if
                            ? "spot is allowed and not first. "
                            : "spot is allowed and is first at no rate of evictions. ") +
                           rate_text(*input.plan.spot_rate, false),
                       input.plan.spot_rate->given
                           ? std::string()
                           : fmt::format("{}; where: {{evictions_per_hour: ...}} or stoker config evictions plans with "
                                         "what you know",
                                         words.rates),
                       "Daly 2006"});
    if (winner->spot_service && winner->spot_service->on_demand_nodes == 0 &&
        winner->spot_service->hours_below.high > 1)
        out.push_back({AdviceSeverity::info, "spot-no-floor", "nothing of this service stays when spot capacity goes",
                       fmt::format("where: {{on_demand_replicas: {}}} keeps the load carried at list price, fewer keep "
                                   "that share of it",
                                   std::max(1, winner->replicas - winner->spare_nodes * winner->replicas /
                                                                      std::max(1, winner->nodes))),
                       ""});
    if (winner->price_is_estimate && winner->price_is_of.empty()) {
        const Price* listed = input.context.catalog.price(winner->node_type, winner->region,
                                                          input.context.workload.where.os, winner->pricing);
        out.push_back({AdviceSeverity::warning, "spot-price-estimate",
                       listed != nullptr && !listed->estimate
                           ? fmt::format("this spot price is of {} and may be anything up to the list price today",
                                         winner->price_provenance.as_of)
                           : "this spot price is an estimate from a published bracket, not from a price list",
                       std::string(words.prices), ""});
    }
}

}  // namespace stoker

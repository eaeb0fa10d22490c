// From an Option to what people and files see.
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/evidence.h"
#include "plan/option.h"
#include "plan/quota.h"
#include "sizing/disk.h"
#include "sizing/precision.h"

namespace stoker {

std::string refusal_text(Reason reason, double have, double need) {
    auto gib = [](double bytes) { return format_bytes_gib(Bytes(bytes)); };
    switch (reason) {
        case Reason::memory: return fmt::format("needs {} on one device, {} usable", gib(need), gib(have));
        case Reason::host_memory: return fmt::format("needs {} of host memory, {} there", gib(need), gib(have));
        case Reason::batch_too_large:
            return fmt::format("{} sequences at once asked of a global batch of {}", format_thousands(need),
                               format_thousands(have));
        case Reason::wasteful:
            return fmt::format("MFU {:.1f} %: more than nine tenths of what you pay for is wasted at this scale",
                               100 * need);
        case Reason::no_rdma:
            return fmt::format("no RDMA network: {:.0f} % of the step would wait for it and for the pipeline",
                               100 * need);
        case Reason::batch_indivisible:
            return fmt::format("a global batch of {} cannot be shared evenly by {} ranks", format_thousands(have),
                               format_thousands(need));
        case Reason::shape_indivisible: return "no way to divide the model over that many devices";
        case Reason::precision_unsupported: return "the device has no units for this precision";
        case Reason::dominated:
            return fmt::format("even at its matmul ceiling {} and still beaten", format_seconds(Seconds(need)));
        case Reason::latency:
            return fmt::format("a lone request takes {}, {} allowed", format_seconds(Seconds(need)),
                               format_seconds(Seconds(have)));
        case Reason::throughput: return fmt::format("holds {:.3g} requests/s of {:.3g} asked", have, need);
        case Reason::cpu_too_slow: return fmt::format("at best {} on CPU cores", format_seconds(Seconds(need)));
        default: return std::string(sentence(reason));
    }
}

std::string disks_text(const Context& context, const Candidate& candidate) {
    constexpr double kHoursPerMonth = 730;
    const Disk disk = disk_of(context.workload.disk, context.catalog);
    std::string text = fmt::format("disks: {} x {}", candidate.nodes, disk.text());
    if (disk.usd_per_month > 0)
        text += fmt::format(", {} on top of the VMs",
                            format_usd(Usd::from_double(candidate.prediction.hours.mid * candidate.nodes *
                                                        disk.usd_per_month / kHoursPerMonth)));
    else
        text += ", price not known";
    const auto& example = context.workload.data.bytes_per_example;
    if (!is_training(context.workload.kind) || !example || !(candidate.prediction.step_s.mid > 0)) return text;
    const double wanted = candidate.layout.global_batch() * example->v / candidate.prediction.step_s.mid;
    const double there = disk.bytes_per_s * candidate.nodes;
    if (!(there > 0)) return text;
    const bool waits = candidate.prediction.seconds[static_cast<std::size_t>(TimeTerm::data_stall)] > 0;
    return text + fmt::format("; the input reads {:.0f} of {:.0f} MB/s, so they are {}the bottleneck", wanted / 1e6,
                              there / 1e6, waits && wanted > 0.95 * there ? "" : "not ");
}

Candidate make_candidate(const Context& context, const Search& search, const Option& option) {
    const Point& point = search.points[static_cast<std::size_t>(option.point)];
    const NodeChoice& choice = context.choices[static_cast<std::size_t>(option.choice)];
    const Offer& offer = choice.offers[static_cast<std::size_t>(option.offer)];
    Candidate candidate;
    candidate.node_type = choice.type;
    candidate.region = offer.region;
    candidate.pricing = offer.pricing;
    candidate.node_per_hour = Usd::from_double(offer.usd_per_hour);
    candidate.price_is_estimate = offer.estimate;
    candidate.priced = option.priced;
    if (!offer.listed_in.empty()) {
        candidate.price_is_of = offer.listed_in;
        for (const RegionPriceRatio& ratio : context.unlisted)
            if (ratio.cloud == choice.node->cloud && ratio.region == offer.region)
                candidate.list_ratio = {ratio.low, (ratio.low + ratio.high) / 2, ratio.high};
    }
    candidate.price_provenance = offer.provenance;
    candidate.nodes = point.nodes;
    candidate.layout = point.layout;
    candidate.replica = point.replica;
    candidate.replicas = point.replicas;
    candidate.devices_used = point.devices;
    candidate.framework = point.framework;
    candidate.precision = point.precision;
    candidate.kv_precision = point.kv_precision;
    candidate.weight_only = point.weight_only;
    candidate.notes = point.notes;
    if (std::string why = why_precision(context.workload, point.precision, choice.accelerator); !why.empty())
        candidate.notes.push_back(std::move(why));
    candidate.refused = point.refused;
    candidate.have = point.have;
    candidate.need = point.need;
    candidate.measured_rows = choice.measured_rows;
    candidate.measured = choice.is_measured(context.settings) && !lacks_evidence(choice, point.replica) &&
                         !hardly_published(context.workload);
    candidate.doubt = doubt_text(context, point, offer);
    if (const auto shortfall = quota_shortfall(context, choice.type, offer, point.nodes))
        candidate.blocked_by = "quota: " + shortfall->text();
    if (point.refused != Reason::none) candidate.refusal = refusal_text(point.refused, point.have, point.need);

    Prediction& prediction = candidate.prediction = point.prediction;
    prediction.hours = option.hours;
    prediction.usd = option.usd;
    prediction.kwh = option.kwh;
    if (context.workload.kind == WorkloadKind::training && point.work_s > context.settings.campaign_least_s)
        prediction.campaign_factor = context.settings.campaign_factor;
    if (point.work_s > 0)
        prediction.checkpoint =
            checkpoints_of(context, point, offer.pricing, evictions_of(context.settings, *choice.node).mid);
    if (!point.gang)  // planned for each node by itself; told of all of them
        for (double* count : {&prediction.checkpoint.expected_evictions, &prediction.checkpoint.expected_failures})
            *count *= point.nodes;
    candidate.spot_service = spot_service_of(context, point, offer);
    if (offer.pricing == Pricing::spot)
        for (std::size_t i = 0; i < choice.offers.size(); ++i) {
            const Offer& list = choice.offers[i];
            if (!list.priced || list.pricing != Pricing::on_demand || list.region != offer.region) continue;
            const Option same = price_point(context, search.points, option.point, static_cast<int>(i));
            candidate.on_demand = {Usd::from_double(list.usd_per_hour), same.hours, same.usd};
        }
    candidate.spare_nodes = point.spare_nodes;
    if (point.units_asked > 0)
        prediction.usd_per_unit_asked = option.usd * (1 / (point.units_asked * std::max(point.service_hours, 1e-9)));
    if (point.units > 0) {
        // A job divides by its work; a service makes `units` in each of its hours.
        const double units = point.work_s > 0 ? point.units : point.units * std::max(point.service_hours, 1e-9);
        prediction.usd_per_unit = option.usd * (1 / units);
        if (point.work_s <= 0) {  // a slower replica sells fewer units for the same money
            prediction.usd_per_unit.low *= point.speed.low;
            prediction.usd_per_unit.high *= point.speed.high;
        }
    }
    if (point.spare_nodes > 0)
        candidate.notes.push_back(fmt::format(
            "{} of {} nodes {} there so that one may be lost{}: objective.survive_one_replica_lost: false saves {}",
            point.spare_nodes, point.nodes, point.spare_nodes == 1 ? "is" : "are",
            offer.priced
                ? fmt::format(", {} per hour", format_usd(Usd::from_double(point.spare_nodes * offer.usd_per_hour)))
                : "",
            point.spare_nodes == 1 ? "it" : "them"));
    if (choice.node->cloud == "azure" && offer.priced) candidate.notes.push_back(disks_text(context, candidate));
    if (!offer.zones.empty())
        candidate.notes.emplace_back("zones open to this subscription: " + join(offer.zones, ", "));
    if (!offer.priced) candidate.notes.emplace_back("unpriced: no price is known, which is not zero");
    return candidate;
}

std::string why_not_first(const Context& context, const std::vector<Point>& points, const Option& winner,
                          const Option& other, Minimize minimize) {
    const NodeChoice& a = context.choices[static_cast<std::size_t>(winner.choice)];
    const NodeChoice& b = context.choices[static_cast<std::size_t>(other.choice)];
    if (!other.priced) return "unpriced";
    auto percent = [](double x, double y) { return y > 0 ? 100 * (x / y - 1) : 0; };
    const bool dearer = score_cost(other) > score_cost(winner), slower = score_time(other) > score_time(winner);
    std::string cause;
    if (other.choice == winner.choice && other.pricing == winner.pricing && other.region != winner.region)
        cause = "costs more in this region";
    else if (other.choice == winner.choice && winner.pricing == Pricing::spot && other.pricing != Pricing::spot)
        cause = "no eviction risk, full price";
    else if (other.doubts > winner.doubts)
        cause = doubt_text(context, points[static_cast<std::size_t>(other.point)],
                           b.offers[static_cast<std::size_t>(other.offer)]);
    else if (score(other, minimize) < score(winner, minimize) && minimize != Minimize::cost)
        cause = dearer ? "no better, and costs more" : "";
    else if (score(other, minimize) < score(winner, minimize) && other.hours.mid > 1.02 * winner.hours.mid)
        cause = fmt::format("{:.1f} x as long", other.hours.mid / winner.hours.mid);
    else if (score(other, minimize) < score(winner, minimize) && winner.set_up <= 0 && other.set_up > 0)
        cause = "takes Megatron, which does not pay here";
    else if (score(other, minimize) < score(winner, minimize) && winner.unease * 1.01 < other.unease)
        cause = b.scarce ? "hard to get" : "farther from what was measured";
    else if (score(other, minimize) < score(winner, minimize))
        cause = points[static_cast<std::size_t>(winner.point)].rule;  // of two that cost nearly the same
    else if (a.accelerator != nullptr && b.accelerator == a.accelerator && other.pricing == winner.pricing)
        cause = dearer ? "same GPUs in a size that costs more" : "same GPUs";
    else if (dearer && slower)
        cause = "slower for the money";
    else if (other.nodes > winner.nodes)
        cause = "more nodes, less from each";
    else
        cause = minimize == Minimize::cost
                    ? (winner.worth != 1                                           ? "costs more per request"
                       : points[static_cast<std::size_t>(winner.point)].work_s > 0 ? "costs more"
                                                                                   : "costs more per hour")
                : slower ? "slower"
                         : "costs more";

    const double cost = percent(other.usd.mid / other.worth, winner.usd.mid / winner.worth),
                 energy = percent(other.kwh.mid, winner.kwh.mid);
    const double time =
        winner.latency_s > 0 ? percent(other.latency_s, winner.latency_s) : percent(other.hours.mid, winner.hours.mid);
    // "11 % more", "twice as much", "2.9 x as much"; from half as much again on, percent are read wrongly.
    const auto much = [](double value, std::string_view more, std::string_view less, std::string_view same,
                         std::string_view as) {
        if (std::abs(value) < 0.5) return std::string(same);
        if (value >= 95 && value < 105) return fmt::format("twice as {}", as);
        if (value >= 95) return fmt::format("{:.1f} x as {}", 1 + value / 100, as);
        return fmt::format("{:.0f} % {}", std::abs(value), value > 0 ? more : less);
    };
    const auto money = [&] { return much(cost, "more", "cheaper", "same cost", "much"); };
    std::string numbers;
    switch (minimize) {
        case Minimize::cost: numbers = money(); break;
        case Minimize::time: numbers = much(time, "longer", "faster", "as fast", "long") + ", " + money(); break;
        case Minimize::energy:
            numbers = much(energy, "more energy", "less energy", "same energy", "much energy");
            break;
    }
    return cause.empty() ? numbers : cause + ": " + numbers;
}

}  // namespace stoker

// From an Option to what people and files see.
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/option.h"

namespace stoker {

std::string refusal_text(Reason reason, double have, double need) {
    auto gib = [](double bytes) { return format_bytes_gib(Bytes(bytes)); };
    switch (reason) {
        case Reason::memory: return fmt::format("needs {} on one device, {} usable", gib(need), gib(have));
        case Reason::host_memory: return fmt::format("needs {} of host memory, {} there", gib(need), gib(have));
        case Reason::batch_too_large:
            return fmt::format("{:.0f} sequences at once asked of a global batch of {:.0f}", need, have);
        case Reason::no_rdma: return fmt::format("no RDMA network: {:.0f} % of the step would wait for it", 100 * need);
        case Reason::shape_indivisible: return "no way to divide the model over that many devices";
        case Reason::precision_unsupported: return "the device has no units for this precision";
        case Reason::dominated:
            return fmt::format("even at its matmul ceiling {} and still beaten", format_seconds(Seconds(need)));
        case Reason::cpu_too_slow: return fmt::format("at best {} on CPU cores", format_seconds(Seconds(need)));
        default: return std::string(sentence(reason));
    }
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
    candidate.priced = offer.priced;
    candidate.price_provenance = offer.provenance;
    candidate.nodes = point.nodes;
    candidate.layout = point.layout;
    candidate.replica = point.replica;
    candidate.replicas = point.replicas;
    candidate.devices_used = point.devices;
    candidate.framework = point.framework;
    candidate.notes = point.notes;

    Prediction& prediction = candidate.prediction = point.prediction;
    prediction.hours = option.hours;
    prediction.usd = option.usd;
    prediction.kwh = option.kwh;
    if (point.work_s > 0) prediction.checkpoint = checkpoints_of(context, point, offer.pricing);
    if (point.units > 0) {
        // A job divides by its work; a service makes `units` in each of its hours.
        const double units = point.work_s > 0 ? point.units : point.units * std::max(point.service_hours, 1e-9);
        prediction.usd_per_unit = option.usd * (1 / units);
        if (point.work_s <= 0) {  // a slower replica sells fewer units for the same money
            prediction.usd_per_unit.low *= point.speed.low;
            prediction.usd_per_unit.high *= point.speed.high;
        }
    }
    if (choice.node->cloud == "azure" && offer.priced)
        candidate.notes.push_back(fmt::format(
            "storage apart: {} x premium SSD P10 (128 GiB, 100 MB/s): {}", point.nodes,
            format_usd(Usd::from_double(option.hours.mid * point.nodes * context.settings.disk_usd_per_month / 730))));
    if (!offer.zones.empty()) candidate.notes.push_back("zones open to this subscription: " + join(offer.zones, ", "));
    if (!offer.priced) candidate.notes.push_back("unpriced: no price is known, which is not zero");
    return candidate;
}

std::string why_not_first(const Context& context, const Option& winner, const Option& other, Minimize minimize) {
    const NodeChoice& a = context.choices[static_cast<std::size_t>(winner.choice)];
    const NodeChoice& b = context.choices[static_cast<std::size_t>(other.choice)];
    if (!other.priced) return "unpriced";
    auto percent = [](double x, double y) { return y > 0 ? 100 * (x / y - 1) : 0; };
    std::string cause;
    if (other.choice == winner.choice && other.pricing == winner.pricing && other.region != winner.region) {
        if (score_cost(other) == score_cost(winner)) return "same machines at the same price, in another region";
        cause = "dearer region";
    } else if (other.choice == winner.choice && winner.pricing == Pricing::spot && other.pricing != Pricing::spot)
        cause = "no eviction risk, full price";
    else if (other.preference > winner.preference)
        cause = a.accelerator != nullptr && b.accelerator == nullptr
                    ? (context.workload.kind == WorkloadKind::notebook ? "no GPU in it"
                                                                       : "a GPU answers surer within the limit")
                : a.accelerator == nullptr && b.accelerator == nullptr ? "F series first for small models"
                                                                       : "policy: the plainer device first";
    else if (other.nodes > winner.nodes)
        cause = "more nodes, less from each";
    else if (a.accelerator != nullptr && b.accelerator == a.accelerator)
        cause = "same GPUs in a dearer size";
    else if (score_time(other) > score_time(winner) && score_cost(other) > score_cost(winner))
        cause = "slower for the money";
    else
        cause = "price per hour";

    const double cost = percent(other.usd.mid, winner.usd.mid), energy = percent(other.kwh.mid, winner.kwh.mid);
    const double time =
        winner.latency_s > 0 ? percent(other.latency_s, winner.latency_s) : percent(other.hours.mid, winner.hours.mid);
    auto signed_text = [](double value, std::string_view up, std::string_view down) {
        if (value >= 300)  // nobody reads "9,609 % dearer"
            return fmt::format("{:.0f} times {}", 1 + value / 100,
                               up == "dearer"   ? "the cost"
                               : up == "slower" ? "the time"
                                                : "the energy");
        return std::abs(value) < 0.5 ? fmt::format("as {}", up == "dearer"   ? "dear"
                                                            : up == "slower" ? "fast"
                                                                             : "hungry")
                                     : fmt::format("{:.0f} % {}", std::abs(value), value > 0 ? up : down);
    };
    switch (minimize) {
        case Minimize::cost: return fmt::format("{}: {}", cause, signed_text(cost, "dearer", "cheaper"));
        case Minimize::time:
            return fmt::format("{}: {}, {}", cause, signed_text(time, "slower", "faster"),
                               signed_text(cost, "dearer", "cheaper"));
        case Minimize::energy: return fmt::format("{}: {}", cause, signed_text(energy, "more energy", "less energy"));
    }
    return cause;
}

}  // namespace stoker

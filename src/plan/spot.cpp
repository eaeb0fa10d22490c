// What spot capacity takes from a service, and at which rate of evictions the choice would be another.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "plan/pipeline.h"

namespace stoker {
namespace {

constexpr double kHoursPerMonth = 730;

// Of `needed` nodes, the expected share that is not there, and the chance that any is not: `kept` are never taken, of
// `spot` each is there with probability `up`, for itself.
struct Short {
    double chance = 0, share = 0;
};
Short each_for_itself(int needed, int kept, int spot, double up) {
    Short out;
    double exactly = std::pow(1 - up, spot);  // so many of them are there
    for (int there = 0; there <= spot && kept + there < needed; ++there) {
        if (there > 0) exactly = up >= 1 ? 0 : exactly * (spot - there + 1) / there * up / (1 - up);
        out.chance += exactly;
        out.share += exactly * (needed - kept - there) / needed;
    }
    return out;
}

}  // namespace

std::optional<Candidate::SpotService> spot_service_of(const Context& context, const Point& point, const Offer& offer) {
    if (offer.pricing != Pricing::spot || point.work_s > 0 || point.replicas <= 0) return std::nullopt;
    const NodeChoice& choice = context.choices[static_cast<std::size_t>(point.choice)];
    Candidate::SpotService out{.on_demand_nodes = on_demand_nodes(context, point, offer)};
    const int spot = point.nodes - out.on_demand_nodes, needed = std::max(1, point.nodes - point.spare_nodes);
    const double rate = evictions_of(context.settings, *choice.node).mid;
    const double away_h = (context.settings.spot_wait_s + context.settings.provision_s) / 3600;
    const double up = 1 / (1 + rate * away_h);
    out.evictions = spot * up * rate * kHoursPerMonth;
    const Short alone = each_for_itself(needed, out.on_demand_nodes, spot, up);
    const double missing = std::max(0, needed - out.on_demand_nodes);
    const Short together{missing > 0 ? 1 - up : 0, (1 - up) * missing / needed};
    const auto range = [](double a, double b) { return Range{std::min(a, b), (a + b) / 2, std::max(a, b)}; };
    out.hours_below = range(alone.chance, together.chance) * kHoursPerMonth;
    const double requests = point.prediction.requests_per_s * 3600 * kHoursPerMonth;
    out.requests = range(alone.share, together.share) * requests;
    return out;
}

namespace {

// What comes first where spot nodes are taken so often, its middle and its ends alike.
std::optional<Option> first_at(const Context& context, const std::vector<Point>& points, double times) {
    Context changed = context;
    for (Range* rate : {&changed.settings.evictions_per_hour, &changed.settings.evictions_per_hour_cpu})
        *rate = *rate * times;
    const Ranking ranking = rank(changed, points);
    if (ranking.groups.empty()) return std::nullopt;
    return ranking.groups.front();
}

}  // namespace

std::optional<SpotRate> spot_rate_of(const Context& context, const Search& search, const Option& winner) {
    const Workload& workload = context.workload;
    if (workload.where.spot == SpotUse::never) return std::nullopt;
    const bool any = std::any_of(context.choices.begin(), context.choices.end(), [](const NodeChoice& choice) {
        return std::any_of(choice.offers.begin(), choice.offers.end(),
                           [](const Offer& offer) { return offer.pricing == Pricing::spot && offer.priced; });
    });
    if (!any) return std::nullopt;
    const NodeType& node = *context.choices[static_cast<std::size_t>(winner.choice)].node;
    SpotRate out{.per_hour = evictions_of(context.settings, node),
                 .wait_h = context.settings.spot_wait_s / 3600,
                 .from = context.settings.evictions_from,
                 .given = context.settings.evictions_given};
    if (!out.given && !node.has_gpu())
        if (const Constant* cpu = context.catalog.constant("spot_evictions_per_cpu_node_hour"))
            out.from = cpu->provenance.source;
    // A service loses hours and no money; nothing in its order depends on the rate.
    if (!context.options.what_if || search.points[static_cast<std::size_t>(winner.point)].work_s <= 0) return out;
    const bool spot = winner.pricing == Pricing::spot;
    // Between the rate that is planned with and one that is far beyond it, on a logarithmic scale.
    constexpr double kFar = 64;
    constexpr int kSteps = 7;
    double same = 1, other = spot ? kFar : 1 / kFar;
    const auto flips = [&](double times, std::string* outcome) {
        const std::optional<Option> first = first_at(context, search.points, times);
        const bool flipped = !first || (first->pricing == Pricing::spot) != spot;
        if (flipped && outcome != nullptr) *outcome = first ? outcome_text(context, *first) : "nothing is feasible";
        return flipped;
    };
    if (!flips(other, &out.outcome)) return out;
    for (int i = 0; i < kSteps; ++i) {
        const double middle = std::sqrt(same * other);
        (flips(middle, &out.outcome) ? other : same) = middle;
    }
    out.flips_at = out.per_hour.mid * std::sqrt(same * other);
    return out;
}

// The next region of the same machines, and the next machines, as they come in the order of the plan.
std::vector<Fallback> fallbacks_of(const Context& context, const Search& search, const Ranking& ranking) {
    std::vector<Fallback> out;
    const Minimize minimize = context.workload.objective.minimize;
    const Option& winner = ranking.groups.front();
    if (winner.pricing == Pricing::owned) return out;
    const auto add = [&](std::string_view id, auto&& may) {
        const Option* best = nullptr;
        for (const Option& option : ranking.expansion.options)
            if (may(option) && (best == nullptr || ranks_before(option, *best, minimize))) best = &option;
        if (best == nullptr) return;
        Fallback one{.id = std::string(id), .needs = {}, .candidate = make_candidate(context, search, *best)};
        const Candidate& c = one.candidate;
        const NodeType& node = context.node(c.node_type);
        if (node.cloud == "azure")
            one.needs = fmt::format("{} vCPUs of {} quota in {}", format_thousands(double(node.vcpus) * c.nodes),
                                    c.pricing == Pricing::spot ? "lowPriorityCores" : node.quota_family, c.region);
        out.push_back(std::move(one));
    };
    add("region", [&](const Option& o) { return o.choice == winner.choice && o.region != winner.region; });
    // Sizes with the same GPU come from the same racks, and run short together.
    add("size", [&](const Option& o) { return o.kind != winner.kind && o.pricing != Pricing::owned; });
    return out;
}

}  // namespace stoker

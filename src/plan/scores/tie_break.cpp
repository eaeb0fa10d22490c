// The order of candidates: what speaks against them, the objective, and then what only decides ties; the names at the
// end make the order total.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "plan/option.h"

namespace stoker {

std::int64_t score(const Option& option, Minimize minimize) {
    switch (minimize) {
        case Minimize::cost: return score_cost(option);
        case Minimize::time: return score_time(option);
        case Minimize::energy: return score_energy(option);
    }
    return 0;
}

bool ranks_before(const Option& a, const Option& b, Minimize minimize) {
    auto key = [minimize](const Option& o) {
        // Of two that are as fast, the cheaper.
        const bool tied = o.taste < 0 && minimize != Minimize::cost;
        return std::tuple(o.doubts, o.taste, tied ? 0 : score(o, minimize), score_cost(o), score_time(o), -o.year,
                          o.nodes, o.name, o.region, static_cast<int>(o.pricing), o.point);
    };
    return key(a) < key(b);
}

namespace {

// What a choice costs, counting its time, its machines and how little is known of it. A fleet is not had by the hour:
// capacity blocks, reservations and quota are by the day, and its first hours bring it up.
double eased(const Option& option, double unease, const TieRules& rules) {
    constexpr int kFleet = 8;
    constexpr double kDay = 24;
    const double least_hours = option.gang && option.nodes >= kFleet ? kDay : 1e-6;
    return static_cast<double>(score_cost(option)) * unease *
           std::pow(std::max(option.hours.mid, least_hours), rules.time_exponent) *
           std::pow(std::max(option.nodes, 1), rules.nodes_exponent);
}

// Of other machines, no more of them, that cost little more than the best: the one that is worth it for being nearer to
// what was measured.
const Option* measured_nearer(const std::vector<Option>& options, const Option& best, Minimize minimize,
                              const TieRules& rules) {
    if (minimize != Minimize::cost || !(rules.most_for_evidence > 0)) return nullptr;
    constexpr double kNoticed = 1.01;
    const double most = static_cast<double>(score_cost(best)) * (1 + rules.most_for_evidence);
    const Option* found = nullptr;
    double least = static_cast<double>(score_cost(best)) * best.unease / (1 + rules.share);  // or it is a tie
    for (const Option& option : options) {
        if (option.doubts != best.doubts || option.span > best.span || option.nodes > best.nodes ||
            option.choice == best.choice || static_cast<double>(score_cost(option)) > most ||
            option.unease * kNoticed > best.unease)
            continue;
        if (const double value = static_cast<double>(score_cost(option)) * option.unease; value < least)
            found = &option, least = value;
    }
    return found;
}

}  // namespace

void forgive_small_doubts(std::vector<Option>& options, Minimize minimize, double most_factor) {
    if (minimize != Minimize::cost) return;  // what is new is fast: that is no reason to count on it
    const auto forgive = [&](int small, double factor, const auto& concerns) {
        // The least that anything costs with no more against it than this, the small ones left out.
        std::map<int, double> least;
        for (const Option& option : options)
            if ((option.doubts & small) == 0) {
                const auto [known, first] = least.try_emplace(option.doubts, kInfinity);
                known->second = std::min(known->second, static_cast<double>(score(option, minimize)));
            }
        for (Option& option : options) {
            if ((option.doubts & small) == 0 || !concerns(option)) continue;
            const int without = option.doubts & ~small;
            double others = kInfinity;
            for (const auto& [doubts, lowest] : least)
                if (doubts <= without) others = std::min(others, lowest);
            if (others < kInfinity && static_cast<double>(score(option, minimize)) * factor < others)
                option.doubts = without;
        }
    };
    forgive(doubt::far | doubt::scarce, most_factor, [](const Option&) { return true; });
    forgive(doubt::limits_unsure, most_factor, [](const Option& o) { return o.sure_alone; });
    forgive(doubt::unmeasured, most_factor * most_factor, [](const Option& o) { return o.known_elsewhere; });
}

void settle_ties(std::vector<Option>& options, Minimize minimize, const TieRules& rules) {
    for (Option& option : options) option.taste = 0;
    auto best = std::min_element(options.begin(), options.end(),
                                 [=](const Option& a, const Option& b) { return ranks_before(a, b, minimize); });
    if (best == options.end()) return;
    if (minimize == Minimize::cost && best->span > 1) {
        const double most = static_cast<double>(score_cost(*best)) * (1 + rules.most_for_whole);
        auto whole = options.end();
        for (auto option = options.begin(); option != options.end(); ++option)
            if (option->span == 1 && option->doubts == best->doubts &&
                static_cast<double>(score_cost(*option)) <= most &&
                (whole == options.end() || ranks_before(*option, *whole, minimize)))
                whole = option;
        if (whole != options.end()) best = whole;
    }
    // What a plain script does may cost and take as much more as setting up a stack for the other is worth.
    if (minimize == Minimize::cost && best->set_up > 0) {
        // Machines of one's own cost nothing: there it is their hours, and fewer of them may take as much longer as
        // others may cost more for their time.
        const bool priced = best->priced && score_cost(*best) > 0;
        const auto takes = [priced](const Option& option) {
            return priced ? static_cast<double>(score_cost(option)) : option.nodes * option.hours.mid;
        };
        const double longest =
            best->hours.mid * (1 + (priced ? best->set_up : std::max(best->set_up, rules.most_for_time)));
        const double most = takes(*best) * (1 + best->set_up);
        auto plain = options.end();
        for (auto option = options.begin(); option != options.end(); ++option)
            if (option->set_up <= 0 && option->doubts == best->doubts && option->nodes <= best->nodes &&
                option->hours.mid <= longest && takes(*option) <= most &&
                (plain == options.end() || ranks_before(*option, *plain, minimize)))
                plain = option;
        if (plain != options.end()) best = plain;
    }
    if (const Option* nearer = measured_nearer(options, *best, minimize, rules))
        best = options.begin() + (nearer - options.data());
    const int doubts = best->doubts, nodes = best->nodes, preference = best->preference, span = best->span;
    const double unease = best->unease;
    const auto lowest = static_cast<double>(score(*best, minimize));
    const bool by_money = minimize == Minimize::cost && rules.most_for_time > 0;
    const bool by_time = minimize == Minimize::time && rules.most_for_money > 0;
    const double unnoticed = by_time && best->latency_s > 0 ? rules.unnoticed_s * 1e6 : 0;  // as score_time counts
    const double traded = by_money ? rules.most_for_time : by_time ? rules.most_for_money : 0;
    const double most = lowest * (1 + std::max(rules.share, traded)) + unnoticed;
    const auto value = [&](const Option& option) {
        const auto one = static_cast<double>(score(option, minimize));
        // What costs more than evidence may is worth no more for it.
        if (by_money)
            return eased(
                option, one <= lowest * (1 + rules.most_for_evidence) ? option.unease : std::max(option.unease, unease),
                rules);
        return by_time ? (one + unnoticed) * std::pow(std::max(option.usd.mid, 1e-6), rules.money_exponent) : one;
    };
    const auto is_near = [&](const Option& option) {
        const auto one = static_cast<double>(score(option, minimize));
        if (option.doubts != doubts || one > most || option.span > span) return false;
        // More machines of the same are nearly always as cheap and faster: who minimises cost has not asked for a
        // fleet.
        return !by_money || option.nodes <= nodes ||
               (option.preference < preference && one <= lowest * (1 + rules.share));
    };
    double least = std::numeric_limits<double>::infinity();
    for (const Option& option : options)
        if (is_near(option) && option.nodes <= nodes) least = std::min(least, value(option));
    constexpr int kBeforeAll = 1000;  // any tie comes before any that is none
    for (Option& option : options)
        if (is_near(option) && value(option) <= least * (1 + rules.share))
            option.taste = option.preference - kBeforeAll;
}

}  // namespace stoker

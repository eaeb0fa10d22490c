// What the first choice passes over: cheaper or faster, and something speaks against it; or what a rule of thumb would
// have taken, and at what price.
#include <algorithm>
#include <array>
#include <tuple>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/pipeline.h"

namespace stoker {
namespace {

constexpr std::array<std::pair<int, std::string_view>, 9> kKinds{{{doubt::blocked, "blocked"},
                                                                  {doubt::wasteful, "wasteful"},
                                                                  {doubt::evicted, "evicted"},
                                                                  {doubt::unlikely_to_fit, "unlikely-to-fit"},
                                                                  {doubt::by_arrangement, "by-arrangement"},
                                                                  {doubt::unmeasured, "unmeasured"},
                                                                  {doubt::limits_unsure, "limits-unsure"},
                                                                  {doubt::scarce, "scarce"},
                                                                  {doubt::far, "far"}}};

}  // namespace

std::vector<Foregone> foregone(const Context& context, const Search& search, const Ranking& ranking) {
    const Minimize minimize = context.workload.objective.minimize;
    const Option& winner = ranking.groups.front();
    const auto& options = ranking.expansion.options;
    std::vector<Foregone> out;
    auto add = [&](std::string_view id, const Option& option, std::string why) {
        out.push_back({std::string(id), std::move(why), make_candidate(context, search, option)});
    };
    auto point_of = [&](const Option& option) -> const Point& {
        return search.points[static_cast<std::size_t>(option.point)];
    };
    for (const auto& [kind, id] : kKinds) {
        const Option* best = nullptr;
        for (const Option& option : options) {
            const bool worst = (option.doubts & kind) != 0 && option.doubts < 2 * kind;
            if (worst && (option.doubts & winner.doubts) != option.doubts &&
                score(option, minimize) < score(winner, minimize) &&
                (best == nullptr || score(option, minimize) < score(*best, minimize)))
                best = &option;
        }
        if (best == nullptr) continue;
        const Offer& offer =
            context.choices[static_cast<std::size_t>(best->choice)].offers[static_cast<std::size_t>(best->offer)];
        add(id, *best, doubt_text(context, point_of(*best), offer));
    }
    const Option* slower = nullptr;  // cheaper as well, and so little that its time is not worth it
    for (const Option& option : options)
        if (minimize == Minimize::cost && option.doubts == winner.doubts &&
            static_cast<double>(score_cost(option)) < 0.995 * static_cast<double>(score_cost(winner)) &&
            (slower == nullptr || score_cost(option) < score_cost(*slower)))
            slower = &option;
    if (slower != nullptr)
        add("slower", *slower,
            slower->span > winner.span
                ? fmt::format("one machine holds a replica, where it takes {} of those", slower->span)
            : slower->hours.mid > 1.02 * winner.hours.mid
                ? fmt::format("{:.1f} x as long", slower->hours.mid / winner.hours.mid)
            : slower->nodes > 1.5 * winner.nodes
                ? fmt::format("{} instead of {} machines to get and to run", winner.nodes, slower->nodes)
            : winner.set_up <= 0 && slower->set_up > 0 ? std::string("which takes Megatron")
            : winner.unease * 1.01 < slower->unease ? context.choices[static_cast<std::size_t>(slower->choice)].scarce
                                                          ? std::string("which is hard to get")
                                                          : std::string("which lies farther from what was measured")
                                                    : std::string(point_of(winner).rule));
    const Option* faster = nullptr;  // by so little that it is not worth its money
    for (const Option& option : options)
        if (minimize == Minimize::time && option.doubts == winner.doubts &&
            static_cast<double>(score_time(option)) < 0.98 * static_cast<double>(score_time(winner)) &&
            (faster == nullptr || score_time(option) < score_time(*faster)))
            faster = &option;
    if (faster != nullptr && score_cost(winner) > 0)
        add("faster", *faster,
            fmt::format("{:.1f} x the money",
                        static_cast<double>(score_cost(*faster)) / static_cast<double>(score_cost(winner))));
    // A fleet for minutes is more to ask for than a few machines for hours that cost the same: of the same kind, else
    // of another that is had in the same way.
    constexpr int kFleet = 4;
    const Option* fewer = nullptr;
    const auto kin = [&](const Option& option) {
        return std::tuple(option.choice == winner.choice && option.offer == winner.offer, option.nodes);
    };
    for (const Option& option : options)
        if (winner.nodes >= kFleet && option.pricing == winner.pricing && point_of(winner).work_s > 0 &&
            option.doubts == winner.doubts && kFleet * option.nodes <= winner.nodes &&
            option.usd.mid <= 1.05 * winner.usd.mid && (fewer == nullptr || kin(option) > kin(*fewer)))
            fewer = &option;
    if (fewer != nullptr)
        add("fewer", *fewer, fmt::format("{:.1f} x as long", fewer->hours.mid / std::max(winner.hours.mid, 1e-9)));
    // Where processors answer for the least money, one asks what a GPU would for a little more.
    constexpr double kLittleMore = 1.5, kFaster = 4;
    const Option* gpu = nullptr;
    for (const Option& option : options)
        if (!winner.gpu && option.gpu && minimize == Minimize::cost && option.doubts == winner.doubts &&
            point_of(winner).work_s <= 0 && kFaster * option.latency_s < winner.latency_s &&
            static_cast<double>(score_cost(option)) < kLittleMore * static_cast<double>(score_cost(winner)) &&
            (gpu == nullptr || score_cost(option) < score_cost(*gpu)))
            gpu = &option;
    if (gpu != nullptr)
        add("gpu", *gpu,
            fmt::format("answers in {} instead of {}", format_seconds(Seconds(gpu->latency_s)),
                        format_seconds(Seconds(winner.latency_s))));
    const Option* ruled = nullptr;  // earlier by a rule of thumb, and dearer
    for (const Option& option : options)
        if ((option.doubts & (doubt::unpriced | doubt::blocked)) == 0 && option.preference < winner.preference &&
            !point_of(option).rule.empty() && score(option, minimize) > score(winner, minimize) &&
            (ruled == nullptr || std::pair(option.preference, score(option, minimize)) <
                                     std::pair(ruled->preference, score(*ruled, minimize))))
            ruled = &option;
    if (ruled != nullptr) add("rule", *ruled, std::string(point_of(*ruled).rule));
    return out;
}

}  // namespace stoker

// A limit that the middle estimate meets and the 80 % interval does not: only where less confidence was asked for.
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/advice/advice.h"
#include "plan/chance.h"

namespace stoker {

void advise_limits(const AdviceInput& input, AdviceList& out) {
    const Candidate* winner = input.winner();
    if (winner == nullptr) return;
    const ObjectiveSpec& objective = input.context.workload.objective;
    const Prediction& p = winner->prediction;
    if (objective.deadline && p.hours.high * 3600 > objective.deadline->v)
        out.push_back({AdviceSeverity::warning, "deadline-tight",
                       fmt::format("the interval ends at {}, after the deadline of {}",
                                   format_seconds(Seconds(p.hours.high * 3600)), format_seconds(*objective.deadline)),
                       "one node more, or check the step time after the first hour", ""});
    // Machines that are there are all there is: what a run of months would need says whether to wait or to rent.
    constexpr double kTooLongHours = 120 * 24.0, kQuarterHours = 90 * 24.0;
    const NodeType& node = input.node(*winner);
    if (winner->pricing == Pricing::owned && node.cloud == "on-prem" && is_training(input.context.workload.kind) &&
        p.hours.mid > kTooLongHours)
        out.push_back({AdviceSeverity::warning, "own-too-small",
                       fmt::format("your machines are too few for this: {} on {} of them, where a run of three months "
                                   "takes about {} x {}",
                                   format_seconds(Seconds(p.hours.mid * 3600)), winner->nodes,
                                   format_thousands(std::ceil(winner->nodes * p.hours.mid / kQuarterHours)), node.name),
                       "fewer tokens, a smaller model, or rent the rest: where: {cloud: any}", ""});
    // Processors train what is small. Days of them for what a GPU does over lunch are nobody's plan.
    constexpr double kLongOnProcessorsHours = 48;
    if (winner->pricing == Pricing::owned && !node.has_gpu() && is_training(input.context.workload.kind) &&
        p.hours.mid > kLongOnProcessorsHours)
        out.push_back({AdviceSeverity::warning, "no-gpu-here",
                       fmt::format("no GPU is seen on {}: nobody trains for days on processors",
                                   node.cloud == "this-machine" ? "this machine" : "your machines"),
                       "where: {cloud: any} says what to rent, and for how much", ""});
    auto latency = [&](std::string_view what, const Range& predicted, const std::optional<Seconds>& limit) {
        if (!limit || !(predicted.mid > 0) || predicted.high <= limit->v) return;
        out.push_back(
            {AdviceSeverity::warning, "latency-tight",
             fmt::format("{} p95 of {} holds with {:.0f} %: the interval ends at {}", what, format_seconds(*limit),
                         100 * chance_below(predicted, limit->v), format_seconds(Seconds(predicted.high))),
             "measure one replica under load before buying the rest", ""});
    };
    latency("TTFT", p.ttft_p95_s, objective.latency.ttft_p95);
    latency("TPOT", p.tpot_p95_s, objective.latency.tpot_p95);
    if (objective.budget && p.usd.high > objective.budget->dollars())
        out.push_back({AdviceSeverity::warning, "budget-tight",
                       fmt::format("the interval ends at {}, over the budget of {}",
                                   format_usd(Usd::from_double(p.usd.high)), format_usd(*objective.budget)),
                       "", ""});
}

}  // namespace stoker

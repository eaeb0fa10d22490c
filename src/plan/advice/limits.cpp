// A limit that the middle estimate meets and the 80 % interval does not: only where less confidence was asked for.
#include <fmt/format.h>

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
    auto latency = [&](std::string_view what, const Range& predicted, const std::optional<Seconds>& limit) {
        if (!limit || !(predicted.mid > 0) || predicted.high <= limit->v) return;
        out.push_back(
            {AdviceSeverity::warning, "latency-tight",
             fmt::format("{} p95 of {} is kept with {:.0f} %: the interval ends at {}", what, format_seconds(*limit),
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

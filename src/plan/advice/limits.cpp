// A limit that the middle estimate meets and the 80 % interval does not.
#include <fmt/format.h>

#include "plan/advice/advice.h"

namespace stoker {

void advise_limits(const AdviceInput& input, AdviceList& out) {
    const Candidate* winner = input.winner();
    if (winner == nullptr) return;
    const ObjectiveSpec& objective = input.context.workload.objective;
    const Prediction& p = winner->prediction;
    if (objective.deadline && p.hours.high * 3600 > objective.deadline->v)
        out.push_back({Severity::warning, "deadline-tight",
                       fmt::format("the interval ends at {}, after the deadline of {}",
                                   format_seconds(Seconds(p.hours.high * 3600)), format_seconds(*objective.deadline)),
                       "one node more, or check the step time after the first hour", ""});
    if (objective.budget && p.usd.high > objective.budget->dollars())
        out.push_back({Severity::warning, "budget-tight",
                       fmt::format("the interval ends at {}, over the budget of {}",
                                   format_usd(Usd::from_double(p.usd.high)), format_usd(*objective.budget)),
                       "", ""});
}

}  // namespace stoker

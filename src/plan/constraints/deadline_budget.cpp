// The two limits that are known only once time and cost are.
#include <fmt/format.h>

#include "plan/constraints/constraint.h"

namespace stoker {

MaybeRefusal refuse_deadline(const Context& context, double hours) {
    const auto& deadline = context.workload.objective.deadline;
    if (!deadline || hours * 3600 <= deadline->v) return std::nullopt;
    return Refusal{
        Reason::deadline, deadline->v, hours * 3600,
        fmt::format("takes {}, the deadline is {}", format_seconds(Seconds(hours * 3600)), format_seconds(*deadline))};
}

MaybeRefusal refuse_budget(const Context& context, double usd) {
    const auto& budget = context.workload.objective.budget;
    if (!budget || usd <= budget->dollars()) return std::nullopt;
    return Refusal{Reason::budget, budget->dollars(), usd,
                   fmt::format("costs {}, the budget is {}", format_usd(Usd::from_double(usd)), format_usd(*budget))};
}

}  // namespace stoker

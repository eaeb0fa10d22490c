// The two limits that are known only once time and cost are. A limit counts as kept when it is kept with the confidence
// asked for (objective.confidence, objective_confidence of defaults.tsv when nothing is said): a middle estimate alone
// misses half the time.
#include <fmt/format.h>

#include "plan/chance.h"
#include "plan/constraints/constraint.h"

namespace stoker {

namespace {

constexpr double kHoursPerMonth = 730;

std::string percent(double chance) {
    return fmt::format("{:.0f} %", 100 * chance);
}

}  // namespace

Range budgeted_usd(const Context& context, const Range& usd, double service_hours) {
    return service_hours > 0 && !context.workload.period ? usd * (kHoursPerMonth / service_hours) : usd;
}

MaybeRefusal refuse_deadline(const Context& context, const Range& hours) {
    const auto& deadline = context.workload.objective.deadline;
    if (!deadline) return std::nullopt;
    const double need = at_quantile(hours, context.settings.confidence_deviations) * 3600;
    if (need <= deadline->v) return std::nullopt;
    return Refusal{Reason::deadline, deadline->v, need,
                   fmt::format("takes {}, with {} confidence {}; the deadline is {}, kept with {}",
                               format_seconds(Seconds(hours.mid * 3600)), percent(context.settings.confidence),
                               format_seconds(Seconds(need)), format_seconds(*deadline),
                               percent(chance_below(hours, deadline->v / 3600)))};
}

MaybeRefusal refuse_budget(const Context& context, const Range& usd) {
    const auto& budget = context.workload.objective.budget;
    if (!budget) return std::nullopt;
    const double need = at_quantile(usd, context.settings.confidence_deviations);
    if (need <= budget->dollars()) return std::nullopt;
    return Refusal{Reason::budget, budget->dollars(), need,
                   fmt::format("costs {}, with {} confidence {}; the budget is {}, kept with {}",
                               format_usd(Usd::from_double(usd.mid)), percent(context.settings.confidence),
                               format_usd(Usd::from_double(need)), format_usd(*budget),
                               percent(chance_below(usd, budget->dollars())))};
}

}  // namespace stoker

// The two limits that are known only once time and cost are. A limit counts as kept when it is kept with the confidence
// asked for (objective.confidence, objective_confidence of defaults.tsv when nothing is said): a middle estimate alone
// misses half the time.
#include <algorithm>

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

std::optional<Seconds> latest_end(const Context& context) {
    const Workload& workload = context.workload;
    if (workload.objective.deadline) return workload.objective.deadline;
    const WhereSpec& where = workload.where;
    const bool given = where.nodes || where.gpus || !where.sizes.empty() || where.describes_nodes() ||
                       std::any_of(where.clouds.begin(), where.clouds.end(), [](const std::string& cloud) {
                           return cloud == "on-prem" || cloud == "this-machine";
                       });
    if (given) return std::nullopt;
    return Seconds(context.settings.longest_run_s);
}

MaybeRefusal refuse_deadline(const Context& context, const Range& hours) {
    const auto deadline = latest_end(context);
    if (!deadline) return std::nullopt;
    const double need = at_quantile(hours, context.settings.confidence_deviations) * 3600;
    if (need <= deadline->v) return std::nullopt;
    if (!context.workload.objective.deadline)
        return Refusal{Reason::deadline, deadline->v, need,
                       fmt::format("takes {}; without a deadline nothing of more than {} is planned (objective: "
                                   "{{deadline: ...}})",
                                   format_seconds(Seconds(hours.mid * 3600)), format_seconds(*deadline))};
    return Refusal{Reason::deadline, deadline->v, need,
                   fmt::format("takes {}, with {} confidence {}; the deadline is {}, which holds with {}",
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
                   fmt::format("costs {}, with {} confidence {}; the budget is {}, which holds with {}",
                               format_usd(Usd::from_double(usd.mid)), percent(context.settings.confidence),
                               format_usd(Usd::from_double(need)), format_usd(*budget),
                               percent(chance_below(usd, budget->dollars())))};
}

}  // namespace stoker

// When nothing is possible: which constraint says so, by how much, and what comes nearest once it is relaxed.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "plan/pipeline.h"

namespace stoker {
namespace {

void add_nearest(const Context& context, const Search& search, const Option& option, std::string relaxation,
                 Plan& plan) {
    Candidate candidate = make_candidate(context, search, option);
    candidate.why_not_first = std::move(relaxation);
    plan.nearest.push_back(std::move(candidate));
}

std::string hours_text(double hours) {
    return format_seconds(Seconds(hours * 3600));
}
std::string usd_text(double usd) {
    return format_usd(Usd::from_double(usd));
}

// Deadline or budget: fastest at any price, cheapest at any time, and what meets one of the two.
void nearest_over_limit(const Context& context, const Search& search, const std::vector<Option>& over, Plan& plan) {
    const ObjectiveSpec& objective = context.workload.objective;
    const double deadline_h = objective.deadline ? objective.deadline->v / 3600 : INFINITY;
    const double budget = objective.budget ? objective.budget->dollars() : INFINITY;
    const Option* soonest = nullptr;   // within the budget
    const Option* cheapest = nullptr;  // within the deadline
    for (const Option& o : over) {
        if ((!o.priced || o.usd.mid <= budget) && (soonest == nullptr || ranks_before(o, *soonest, Minimize::time)))
            soonest = &o;
        if (o.hours.mid <= deadline_h && (cheapest == nullptr || ranks_before(o, *cheapest, Minimize::cost)))
            cheapest = &o;
    }
    std::vector<std::string> why;
    if (soonest != nullptr && objective.deadline) {
        why.push_back(fmt::format("the deadline of {} is missed by {}: the fastest{} needs {}", hours_text(deadline_h),
                                  hours_text(soonest->hours.mid - deadline_h),
                                  objective.budget ? " within the budget" : "", hours_text(soonest->hours.mid)));
        add_nearest(context, search, *soonest,
                    fmt::format("deadline {} -> {}", hours_text(deadline_h), hours_text(soonest->hours.mid)), plan);
    }
    if (cheapest != nullptr && objective.budget) {
        why.push_back(fmt::format("the budget of {} is missed by {}: the cheapest{} costs {}", usd_text(budget),
                                  usd_text(cheapest->usd.mid - budget),
                                  objective.deadline ? " within the deadline" : "", usd_text(cheapest->usd.mid)));
        add_nearest(context, search, *cheapest,
                    fmt::format("budget {} -> {}", usd_text(budget), usd_text(cheapest->usd.mid)), plan);
    }
    if (why.empty() && !over.empty()) {  // each limit alone excludes everything
        const Option *best = &over.front(), *frugal = &over.front();
        for (const Option& o : over) {
            if (ranks_before(o, *best, Minimize::time)) best = &o;
            if (ranks_before(o, *frugal, Minimize::cost)) frugal = &o;
        }
        why.push_back(
            fmt::format("deadline and budget are both missed: the fastest needs {} and costs {}, the cheapest needs {} "
                        "and costs {}",
                        hours_text(best->hours.mid), usd_text(best->usd.mid), hours_text(frugal->hours.mid),
                        usd_text(frugal->usd.mid)));
        add_nearest(context, search, *best,
                    fmt::format("deadline {} -> {}, budget {} -> {}", hours_text(deadline_h),
                                hours_text(best->hours.mid), usd_text(budget), usd_text(best->usd.mid)),
                    plan);
        add_nearest(context, search, *frugal,
                    fmt::format("deadline {} -> {}, budget {} -> {}", hours_text(deadline_h),
                                hours_text(frugal->hours.mid), usd_text(budget), usd_text(frugal->usd.mid)),
                    plan);
    }
    for (const std::string& line : why) plan.infeasible_because += (plan.infeasible_because.empty() ? "" : "; ") + line;
}

// The refusal that most candidates met, and among those of memory the nearest miss.
const Rejection* main_refusal(const Plan& plan) {
    const Rejection* best = nullptr;
    auto weight = [](const Rejection& r) {
        switch (r.reason) {
            case Reason::retired:
            case Reason::policy_notebook:
            case Reason::wrong_purpose:
            case Reason::policy_inference_rdma:
            case Reason::spot_not_allowed:
            case Reason::dominated:
            case Reason::unpriced: return 0;
            case Reason::shape_indivisible:
            case Reason::batch_too_large: return 1;
            default: return 2;
        }
    };
    auto gap = [](const Rejection& r) {
        return r.have > 0 && r.need > 0 ? std::max(r.need / r.have, r.have / r.need) : 1e9;
    };
    for (const Rejection& r : plan.rejected) {
        if (best == nullptr ||
            std::tuple(-weight(r), gap(r), -r.count) < std::tuple(-weight(*best), gap(*best), -best->count))
            best = &r;
    }
    return best;
}

// Asks again with one limit lifted; the first that helps is told.
void nearest_relaxed(const Context& context, Plan& plan) {
    struct Relaxation {
        std::string_view text;
        bool (*apply)(Workload&);
    };
    const Relaxation relaxations[] = {
        {"latency objective",
         [](Workload& w) {
             const bool had = w.objective.latency.any();
             w.objective.latency = {};
             return had;
         }},
        {"number of nodes",
         [](Workload& w) {
             const bool had = w.where.nodes || w.where.max_nodes || w.where.gpus;
             w.where.nodes.reset();
             w.where.gpus.reset();
             w.where.max_nodes.reset();
             return had;
         }},
        {"pinned layout",
         [](Workload& w) {
             w.layout = {};
             return true;
         }},
        {"pricing (spot only)",
         [](Workload& w) {
             const bool had = w.where.spot == SpotUse::only;
             w.where.spot = SpotUse::allowed;
             return had;
         }},
        {"list of regions",
         [](Workload& w) {
             const bool had = !w.where.regions.empty();
             w.where.regions.clear();
             return had;
         }},
        {"list of accelerators",
         [](Workload& w) {
             const bool had = !w.where.accelerators.empty();
             w.where.accelerators.clear();
             return had;
         }},
        {"list of sizes",
         [](Workload& w) {
             const bool had = !w.where.sizes.empty();
             w.where.sizes.clear();
             return had;
         }},
    };
    for (const Relaxation& relaxation : relaxations) {
        Workload relaxed = context.workload;
        if (!relaxation.apply(relaxed)) continue;
        relaxed.objective.deadline.reset();
        relaxed.objective.budget.reset();
        Context changed = make_context(relaxed, context.catalog, context.options, true);
        auto search = run_search(changed, {.quick = true});
        if (!search || search->points.empty()) continue;
        const Ranking ranking = rank(changed, search->points);
        if (ranking.groups.empty()) continue;
        std::string text = fmt::format("without the {}", relaxation.text);
        const Point& point = search->points[static_cast<std::size_t>(ranking.groups.front().point)];
        if (relaxation.text == "latency objective")
            text += fmt::format(": TTFT p95 {}, TPOT p95 {}", format_seconds(Seconds(point.prediction.ttft_p95_s.mid)),
                                format_seconds(Seconds(point.prediction.tpot_p95_s.mid)));
        add_nearest(changed, *search, ranking.groups.front(), std::move(text), plan);
        return;
    }
}

}  // namespace

void explain_infeasible(const Context& context, const Search& search, const Ranking& ranking, Plan& plan) {
    if (!ranking.expansion.over_limit.empty())
        return nearest_over_limit(context, search, ranking.expansion.over_limit, plan);
    const Rejection* refusal = main_refusal(plan);
    if (refusal != nullptr)
        plan.infeasible_because = fmt::format("{}: {}", context.node(refusal->node_type).name, refusal->text);
    else
        plan.infeasible_because = "no machine of the catalogue is in the clouds, regions and sizes asked for";
    nearest_relaxed(context, plan);
}

}  // namespace stoker

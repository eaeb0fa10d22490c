// When nothing is possible: which constraint says so, by how much, and what comes nearest once it is relaxed.
#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/chance.h"
#include "plan/constraints/constraint.h"
#include "plan/pipeline.h"
#include "plan/ways_out.h"

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
// Three digits, as estimates are known.
std::string usd_text(double usd) {
    if (!(usd >= 99.5)) return format_usd(Usd::from_double(usd));
    const double unit = std::pow(10.0, std::floor(std::log10(usd)) - 2);
    return asked_usd(Usd::from_double(std::round(usd / unit) * unit));
}

// Deadline and budget, with what an option needs of each: both at the confidence asked for, as the constraints count.
class Limits {
public:
    Limits(const Context& context, const Search& search)
        : context_(context),
          search_(search),
          deadline_h(latest_end(context) ? latest_end(context)->v / 3600 : kInfinity),
          budget(context.workload.objective.budget ? context.workload.objective.budget->dollars() : kInfinity) {}

    double hours(const Option& o) const { return at_quantile(o.hours, context_.settings.confidence_deviations); }
    double usd(const Option& o) const {
        return o.priced ? at_quantile(money(o), context_.settings.confidence_deviations) : 0;
    }
    Range money(const Option& o) const {
        const Point& point = search_.points[static_cast<std::size_t>(o.point)];
        return budgeted_usd(context_, o.usd, point.work_s > 0 ? 0 : point.service_hours);
    }
    bool a_service(const Option& o) const { return search_.points[static_cast<std::size_t>(o.point)].work_s <= 0; }
    bool in_time(const Option& o) const { return a_service(o) || hours(o) <= deadline_h; }
    bool affordable(const Option& o) const { return usd(o) <= budget; }

    // `fastest`: in words, the fastest of what.
    std::string late_text(const Option& o, std::string_view fastest) const {
        if (!context_.workload.objective.deadline)
            return fmt::format("{}{} takes {}, and without a deadline nothing of more than {} is planned", fastest,
                               budget < kInfinity ? " within the budget" : "", hours_text(o.hours.mid),
                               hours_text(deadline_h));
        const double need = hours(o), chance = chance_below(o.hours, deadline_h);
        const std::string within = budget < kInfinity ? " within the budget" : "";
        if (o.hours.mid <= deadline_h)
            return fmt::format(
                "the deadline of {} holds with {} at best, objective.confidence asks for {}: the "
                "safest{} needs {}, with {} confidence {}",
                hours_text(deadline_h), percent(chance), asked(), within, hours_text(o.hours.mid), asked(),
                hours_text(need));
        return fmt::format("the deadline of {} is missed by {}: {}{} needs {}, with {} confidence {}",
                           hours_text(deadline_h), hours_text(o.hours.mid - deadline_h), fastest, within,
                           hours_text(o.hours.mid), asked(), hours_text(need));
    }
    std::string late_relaxation(const Option& o) const {
        std::string text = fmt::format("deadline {} -> {}", hours_text(deadline_h), hours_text(hours(o)));
        if (o.hours.mid <= deadline_h)
            text += fmt::format(", or confidence {:.2g}", 0.01 * std::floor(100 * chance_below(o.hours, deadline_h)));
        const NodeType& node = context_.node(context_.choices[static_cast<std::size_t>(o.choice)].type);
        if (o.pricing == Pricing::owned && node.cloud == "on-prem" && o.hours.mid > deadline_h)
            text += fmt::format(", or about {} x {}", format_thousands(std::ceil(o.nodes * hours(o) / deadline_h)),
                                node.name);
        return text + less_data(deadline_h / hours(o));
    }
    // `cheapest`: in words, what is the cheapest of what.
    std::string dear_text(const Option& o, std::string_view which) const {
        const Range cost = money(o);
        const std::string within = context_.workload.objective.deadline && !a_service(o) ? " within the deadline" : "";
        const std::string month = a_service(o) && !context_.workload.period ? " a month" : "";
        if (cost.mid <= budget)
            return fmt::format(
                "the budget of {} holds with {} at best, objective.confidence asks for {}: {}{} costs {}, with {} "
                "confidence {}",
                asked_usd(Usd::from_double(budget)), percent(chance_below(cost, budget)), asked(), which, within,
                usd_text(cost.mid), asked(), usd_text(usd(o)));
        return fmt::format("the budget of {}{} is missed by {}: {}{} costs {}{}", asked_usd(Usd::from_double(budget)),
                           month, usd_text(cost.mid - budget), which, within, usd_text(cost.mid), month) +
               (usd(o) > 1.005 * cost.mid ? fmt::format(", with {} confidence {}", asked(), usd_text(usd(o))) : "");
    }
    std::string dear_relaxation(const Option& o) const {
        return fmt::format("budget {} -> {}", asked_usd(Usd::from_double(budget)), usd_text(usd(o))) +
               less_data(budget / usd(o)) + hours_a_day(budget / usd(o));
    }
    // A notebook that is kept for weeks is used by day.
    std::string hours_a_day(double share) const {
        const Workload& w = context_.workload;
        constexpr double kDay = 86'400;
        const double hours = std::floor(24 * share);
        if (w.kind != WorkloadKind::notebook || !w.period || w.period->v < 3 * kDay || hours < 1) return {};
        return fmt::format(", or switched off but for {:.0f} hour{} a day", hours, hours == 1 ? "" : "s");
    }
    // Time and money follow the data: what a share of it would be, as long as that is still a training.
    std::string less_data(double share) const {
        const Workload& w = context_.workload;
        const double tokens = w.total_tokens();
        if (!is_training(w.kind) || !w.data.tokens || !(tokens > 0) || !(share < 1) || share * tokens < 1e6) return {};
        return fmt::format(", or about {} tokens of the {}", format_count(rounded_down(share * tokens)),
                           format_count(tokens));
    }

private:
    static double rounded_down(double count) {  // to two digits
        const double unit = std::pow(10.0, std::floor(std::log10(count)) - 1);
        return std::floor(count / unit) * unit;
    }
    std::string percent(double chance) const { return fmt::format("{:.0f} %", std::floor(100 * chance + 1e-9)); }
    std::string asked() const { return percent(context_.settings.confidence); }

    const Context& context_;
    const Search& search_;

public:
    const double deadline_h, budget;
};

// Deadline or budget: fastest at any price, cheapest at any time, and what meets one of the two.
void nearest_over_limit(const Context& context, const Search& search, const std::vector<Option>& over, Plan& plan) {
    const Limits limits(context, search);
    auto best = [&](auto&& allowed, auto&& value) {
        const Option* found = nullptr;
        for (const Option& o : over)
            if (allowed(o) && (found == nullptr || std::tuple(o.doubts, value(o), score_cost(o)) <
                                                       std::tuple(found->doubts, value(*found), score_cost(*found))))
                found = &o;
        return found;
    };
    auto hours = [&](const Option& o) { return limits.hours(o); };
    auto usd = [&](const Option& o) { return limits.usd(o); };
    const Option* soonest = best([&](const Option& o) { return limits.affordable(o); }, hours);
    const Option* cheapest = best([&](const Option& o) { return o.priced && limits.in_time(o); }, usd);
    std::vector<std::string> why;
    if (soonest != nullptr && limits.deadline_h < kInfinity) {
        const bool doubted_is_faster = std::any_of(over.begin(), over.end(), [&](const Option& o) {
            return limits.affordable(o) && o.doubts > soonest->doubts && hours(o) < hours(*soonest);
        });
        why.push_back(limits.late_text(*soonest, doubted_is_faster ? "the fastest without a caveat" : "the fastest"));
        add_nearest(context, search, *soonest, limits.late_relaxation(*soonest), plan);
    }
    if (cheapest != nullptr && limits.budget < kInfinity) {
        const bool doubted_is_cheaper = std::any_of(over.begin(), over.end(), [&](const Option& o) {
            return o.priced && limits.in_time(o) && o.doubts > cheapest->doubts && usd(o) < usd(*cheapest);
        });
        why.push_back(
            limits.dear_text(*cheapest, doubted_is_cheaper ? "the cheapest without a caveat" : "the cheapest"));
        add_nearest(context, search, *cheapest, limits.dear_relaxation(*cheapest), plan);
    }
    if (why.empty() && !over.empty()) {  // each limit alone excludes everything
        auto any = [](const Option&) { return true; };
        const Option *fast = best(any, hours), *frugal = best([](const Option&o) { return o.priced; }, usd);
        if (frugal == nullptr) frugal = fast;
        why.push_back(
            fmt::format("deadline and budget are both missed: the fastest needs {} and costs {}, the cheapest needs {} "
                        "and costs {}",
                        hours_text(fast->hours.mid), usd_text(fast->usd.mid), hours_text(frugal->hours.mid),
                        usd_text(frugal->usd.mid)));
        for (const Option* o : {fast, frugal})
            add_nearest(context, search, *o, limits.late_relaxation(*o) + ", " + limits.dear_relaxation(*o), plan);
    }
    plan.infeasible_because = join(why, "; ");
}

// Of the refusals with these reasons the nearest miss; what concerns GPUs before CPUs, whose misses say little.
const Rejection* main_refusal(const Context& context, const std::vector<Rejection>& rejected,
                              const std::vector<Reason>& reasons) {
    auto rank = [&](const Rejection& r) {
        const auto at = std::find(reasons.begin(), reasons.end(), r.reason);
        if (!reasons.empty() && at != reasons.end()) return static_cast<int>(at - reasons.begin());
        switch (r.reason) {
            case Reason::retired:
            case Reason::policy_notebook:
            case Reason::wrong_purpose:
            case Reason::policy_inference_rdma:
            case Reason::spot_not_allowed:
            case Reason::dominated:
            case Reason::unpriced: return 102;
            case Reason::host_memory:  // the last resort, told only when the device is not the matter
            case Reason::shape_indivisible:
            case Reason::batch_too_large:
            case Reason::batch_indivisible: return 101;
            default: return 100;
        }
    };
    auto key = [&](const Rejection& r) {
        const double gap = r.have > 0 && r.need > 0 ? std::max(r.need / r.have, r.have / r.need) : 1e9;
        return std::tuple(rank(r), !context.node(r.node_type).has_gpu(), gap, -r.count);
    };
    const Rejection* best = nullptr;
    for (const Rejection& r : rejected)
        if (best == nullptr || key(r) < key(*best)) best = &r;
    return best;
}

// Asks again with one thing taken back; the first that helps is told, and returned.
std::optional<Relaxation> nearest_relaxed(const Context& context, bool keep_limits, Plan& plan) {
    // With the limits kept, each way out is one by itself: the first two are enough to choose from.
    const std::size_t most = keep_limits ? 2 : 1;
    std::size_t found = 0;
    for (Relaxation& relaxation : relaxations(context)) {
        Workload relaxed = context.workload;
        if (keep_limits && relaxation.last_resort) continue;
        if (!relaxation.apply(relaxed)) continue;
        if (!keep_limits) {
            relaxed.objective.deadline.reset();
            relaxed.objective.budget.reset();
        }
        PlanOptions quiet = context.options;
        quiet.progress = {};
        const Context changed = make_context(relaxed, context.catalog, quiet);
        auto search = run_search(changed, {.quick = true});
        if (!search || search->points.empty()) continue;
        const Ranking ranking = rank(changed, search->points);
        if (ranking.groups.empty()) continue;
        std::string text = relaxation.text;
        const Prediction& p = search->points[static_cast<std::size_t>(ranking.groups.front().point)].prediction;
        if (relaxation.text.starts_with("latency limits"))
            text +=
                p.tpot_p95_s.mid > 0
                    ? fmt::format(": first token {}, then {} a token (p95)", format_seconds(Seconds(p.ttft_p95_s.mid)),
                                  format_seconds(Seconds(p.tpot_p95_s.mid)))
                    : fmt::format(": answer in {} (p95)", format_seconds(Seconds(p.ttft_p95_s.mid)));
        add_nearest(changed, *search, ranking.groups.front(), std::move(text), plan);
        if (++found == most) return std::move(relaxation);
    }
    return std::nullopt;
}

std::string narrower_words(Precision to) {
    return fmt::format("precision: {} (weights in {} bits{})", to_string(to), to == Precision::int8 ? 8 : 4,
                       to == Precision::int8 ? "" : "; test the answers");
}

// Neither narrower weights nor one machine fewer keeps the budget: both, where it is a default that one is to spare.
bool nearest_of_both(const Context& context, Plan& plan) {
    const Workload& workload = context.workload;
    if (!workload.objective.budget || workload.kind != WorkloadKind::inference ||
        workload.model.kind != ModelKind::decoder || !workload.objective.survive_one_replica_lost ||
        workload.objective.at.contains("survive_one_replica_lost"))
        return false;
    for (const Precision to : {Precision::int8, Precision::int4}) {
        if (bytes_per_weight(to) >= bytes_per_weight(workload.precision)) continue;
        Workload relaxed = workload;
        fix_precision(relaxed, to);
        relaxed.objective.survive_one_replica_lost = false;
        PlanOptions quiet = context.options;
        quiet.progress = {};
        const Context changed = make_context(relaxed, context.catalog, quiet);
        const auto search = run_search(changed, {.quick = true});
        if (!search) continue;
        const Ranking ranking = rank(changed, search->points);
        if (ranking.groups.empty() || !ranking.groups.front().priced) continue;
        add_nearest(changed, *search, ranking.groups.front(),
                    narrower_words(to) + ", and objective.survive_one_replica_lost: false (a default)", plan);
        return true;
    }
    return false;
}

// A service that no way out brings within its budget: what weights of fewer bits would cost, where that is much less.
// The widest that the budget pays for, else the narrowest.
void nearest_narrower(const Context& context, const Search& search, const std::vector<Option>& over, Plan& plan) {
    const Workload& workload = context.workload;
    if (!workload.objective.budget || workload.kind != WorkloadKind::inference ||
        workload.model.kind != ModelKind::decoder)
        return;
    const Limits limits(context, search);
    double least = kInfinity;
    for (const Option& option : over)
        if (option.priced && option.doubts == 0) least = std::min(least, limits.usd(option));
    const auto bytes_now = bytes_per_weight(workload.precision);
    for (const Precision to : {Precision::int8, Precision::int4}) {
        if (bytes_per_weight(to) >= bytes_now) continue;
        Workload relaxed = workload;
        fix_precision(relaxed, to);
        if (to == Precision::int4) relaxed.objective.budget.reset();  // shown even where it is missed
        PlanOptions quiet = context.options;
        quiet.progress = {};
        const Context changed = make_context(relaxed, context.catalog, quiet);
        const auto narrow = run_search(changed, {.quick = true});
        if (!narrow) continue;
        const Ranking ranking = rank(changed, narrow->points);
        if (ranking.groups.empty() || !ranking.groups.front().priced) continue;
        const Option& best = ranking.groups.front();
        const double usd = Limits(changed, *narrow).usd(best), budget = workload.objective.budget->dollars();
        constexpr double kMuchLess = 0.9;
        if (!(usd < kMuchLess * least) || (to != Precision::int4 && usd > budget)) continue;
        add_nearest(
            changed, *narrow, best,
            narrower_words(to) + (usd > budget ? fmt::format(", and budget {} -> {}",
                                                             asked_usd(*workload.objective.budget), usd_text(usd))
                                               : ""),
            plan);
        return;
    }
}

std::vector<std::string> clouds_with_processors(const Context& context) {
    std::vector<std::string> clouds;
    for (const NodeType& node : context.catalog.node_types())
        if (node.accelerator < 0 && node.cloud != "on-prem" && node.cloud != "this-machine" &&
            std::find(clouds.begin(), clouds.end(), node.cloud) == clouds.end())
            clouds.push_back(node.cloud);
    std::sort(clouds.begin(), clouds.end());
    return clouds;
}

// Work for processors where only machines with GPUs are known: nothing that is said of those is the reason.
bool only_gpus_for_processors(const Context& context) {
    const Workload& w = context.workload;
    const bool on_processors =
        !w.gpu_hours && (w.kind == WorkloadKind::preprocessing || (w.kind == WorkloadKind::simulation && w.vcpu_hours));
    if (!on_processors) return false;
    if (!context.choices.empty())
        return std::all_of(context.choices.begin(), context.choices.end(),
                           [](const NodeChoice& choice) { return choice.accelerator != nullptr; });
    // None has a price: that of a machine with GPUs is not what is missing.
    std::vector<std::string> others = clouds_with_processors(context);
    others.insert(others.end(), {"any", "on-prem", "this-machine"});
    const auto& asked = w.where.clouds;
    return !asked.empty() && std::none_of(asked.begin(), asked.end(), [&](const std::string& cloud) {
        return std::find(others.begin(), others.end(), cloud) != others.end();
    });
}

// Where all prices of the clouds asked for are of one region, what lies elsewhere is no matter of the cloud, but of
// what is known here.
std::string only_region_known(const Context& context) {
    std::string only;
    for (std::size_t type = 0; type < context.catalog.node_types().size(); ++type) {
        const auto& clouds = context.workload.where.clouds;
        if (std::find(clouds.begin(), clouds.end(), context.catalog.node_types()[type].cloud) == clouds.end()) continue;
        for (const Price& price : context.catalog.prices_of(static_cast<int>(type))) {
            if (!only.empty() && only != price.region) return {};
            only = price.region;
        }
    }
    return only.empty() ? only
                        : fmt::format("; the only prices known of {} are those of {}",
                                      join(context.workload.where.clouds, ", "), only);
}

bool is_about_the_place(Reason reason) {
    return reason == Reason::residency || reason == Reason::restricted || reason == Reason::zone;
}

}  // namespace

std::string asked_usd(Usd usd) {
    const double dollars = usd.dollars();
    return dollars >= 1 && dollars == std::floor(dollars) ? "$" + format_thousands(dollars) : format_usd(usd);
}

void explain_infeasible(const Context& context, const Search& search, const Ranking& ranking, Plan& plan) {
    if (!ranking.expansion.over_limit.empty()) {
        nearest_over_limit(context, search, ranking.expansion.over_limit, plan);
        const std::size_t before = plan.nearest.size();
        nearest_relaxed(context, true, plan);
        if (plan.nearest.size() == before && !nearest_of_both(context, plan))
            nearest_narrower(context, search, ranking.expansion.over_limit, plan);
        return;
    }
    if (only_gpus_for_processors(context)) {
        const std::string known = join(clouds_with_processors(context), ", ");
        plan.infeasible_because = fmt::format(
            "the catalogue has no machines without GPUs in these clouds; those of {0} are known (where: {{cloud: "
            "[{0}]}})",
            known);
        return;
    }
    const auto relaxation = nearest_relaxed(context, false, plan);
    // Where something would run and is not allowed, that is the reason, and not what did not fit on other machines.
    const std::vector<Rejection> found = ranking.expansion.rejected.sorted();
    const Rejection* refusal = main_refusal(context, search.points.empty() ? plan.rejected : found,
                                            relaxation ? relaxation->reasons : std::vector<Reason>{});
    if (refusal == nullptr)
        plan.infeasible_because = "the catalogue has no machine in these clouds, regions and sizes";
    else if (is_about_the_place(refusal->reason) && context.workload.where.sizes.size() != 1)
        plan.infeasible_because = refusal->text + only_region_known(context);
    else if (refusal->reason == Reason::unpriced && context.workload.where.spot == SpotUse::only &&
             context.workload.where.sizes.size() != 1)
        plan.infeasible_because = "where.spot is only, and of nothing that could do it a spot price is known";
    else
        plan.infeasible_because =
            fmt::format("{}{}: {}", refusal->nodes > 1 ? fmt::format("{} x ", refusal->nodes) : "",
                        context.node(refusal->node_type).name, refusal->text);
    if (refusal != nullptr && refusal->reason == Reason::node_count && serves(context.workload)) {
        const Point* best = nullptr;  // what one node of it would hold
        for (const Point& point : search.points)
            if (context.choices[static_cast<std::size_t>(point.choice)].type == refusal->node_type &&
                (best == nullptr || point.nodes < best->nodes))
                best = &point;
        if (best != nullptr && best->prediction.knee_requests_per_s > 0)
            plan.infeasible_because += fmt::format(
                "; one node holds {:.3g} requests/s within the limits",
                best->prediction.knee_requests_per_s * std::max(1, best->replicas) / std::max(1, best->nodes));
    }
}

}  // namespace stoker

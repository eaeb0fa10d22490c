// The one path from a question to a plan: constraints, search, money, limits, ranking, platform, advice, what-ifs,
// words.
#include "plan/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "catalog/azure_answers.h"
#include "plan/advice/advice.h"
#include "plan/chance.h"
#include "plan/constraints/constraint.h"
#include "plan/evidence.h"
#include "plan/pipeline.h"
#include "plan/platform.h"
#include "plan/search_serving.h"
#include "plan/search_simple.h"
#include "plan/search_training.h"
#include "sizing/engine_era.h"
#include "sizing/precision.h"

namespace stoker {

bool serves(const Workload& workload) {
    return workload.kind == WorkloadKind::inference || workload.kind == WorkloadKind::batch_inference ||
           workload.kind == WorkloadKind::embedding;
}

namespace {

Result<Search> search_kind(const Context& context, const SearchMode& mode) {
    switch (context.workload.kind) {
        case WorkloadKind::training:
        case WorkloadKind::fine_tuning:
            return search_training(context, {.exhaustive = mode.exhaustive,
                                             .top = std::max(1, context.options.top),
                                             .quick = mode.quick,
                                             .cache = mode.cache});
        case WorkloadKind::embedding:
            if (!context.workload.traffic.requests_per_second && context.workload.total_examples() > 0)
                return search_batch(context);
            [[fallthrough]];
        case WorkloadKind::inference:
            return search_serving(context, {.top = mode.quick ? 1 : std::max(1, context.options.top),
                                            .most_simulated = mode.quick ? 8 : 12,
                                            .exhaustive = mode.exhaustive,
                                            .affordable = mode.quick});
        case WorkloadKind::batch_inference: return search_batch(context);
        case WorkloadKind::preprocessing: return search_preprocessing(context);
        case WorkloadKind::notebook: return search_notebook(context);
        case WorkloadKind::simulation: return search_simulation(context);
    }
    return Search{};
}

}  // namespace

Result<Search> run_search(const Context& context, const SearchMode& mode) {
    auto search = search_kind(context, mode);
    if (!search) return search;
    for (Point& point : search->points) {
        if (!is_training(context.workload.kind)) widen_for_unmeasured(context, point);  // trainings need it earlier
        hold_nearest_run(context, point);
    }
    return search;
}

Ranking rank(const Context& context, const std::vector<Point>& points) {
    Ranking ranking{.expansion = expand(context, points), .groups = {}};
    ranking.groups = best_of_groups(ranking.expansion.options, context.workload.objective.minimize);
    return ranking;
}

namespace {

// The best NC, within the limits or else what comes nearest to them.
void add_ethernet_alternative(const Context& context, const Search& search, const Ranking& ranking, Plan& plan) {
    const Minimize minimize = context.workload.objective.minimize;
    auto best_of = [&](const std::vector<Option>& options) {
        const Option* best = nullptr;
        for (const Option& option : options) {
            const NodeType& node = *context.choices[static_cast<std::size_t>(option.choice)].node;
            if (node.cloud == "azure" && node.has_gpu() && !is_rdma(node) && short_size(node.name).starts_with("NC") &&
                (best == nullptr || ranks_before(option, *best, minimize)))
                best = &option;
        }
        return best;
    };
    const Option* within = best_of(ranking.expansion.options);
    const Option* over = within == nullptr ? best_of(ranking.expansion.over_limit) : nullptr;
    if (within == nullptr && over == nullptr) return;
    plan.ethernet.push_back(make_candidate(context, search, within != nullptr ? *within : *over));
    if (over != nullptr) plan.ethernet.back().why_not_first = "outside the limits";
}

void fill_candidates(const Context& context, const Search& search, const Ranking& ranking, Plan& plan) {
    const Minimize minimize = context.workload.objective.minimize;
    const std::vector<Option> shown = worth_showing(ranking.groups, ranking.expansion.options, minimize,
                                                    static_cast<std::size_t>(std::max(1, context.options.top)));
    plan.foregone = foregone(context, search, ranking);
    for (const Option& option : shown) {
        Candidate candidate = make_candidate(context, search, option);
        candidate.orchestrator = choose_platform(context.workload, context, candidate).orchestrator;
        if (&option != &shown.front())
            candidate.why_not_first = why_not_first(context, search.points, shown.front(), option, minimize);
        plan.candidates.push_back(std::move(candidate));
    }
    if (is_training(context.workload.kind)) add_ethernet_alternative(context, search, ranking, plan);
    std::vector<Option> all = ranking.expansion.options;
    all.insert(all.end(), ranking.expansion.over_limit.begin(), ranking.expansion.over_limit.end());
    std::vector<Option> front = pareto_front(std::move(all));
    constexpr std::size_t kFront = 64;
    for (std::size_t i = 0; i < front.size() && i < kFront; ++i) {
        Candidate candidate = make_candidate(context, search, front[i]);
        candidate.orchestrator = choose_platform(context.workload, context, candidate).orchestrator;
        plan.pareto.push_back(std::move(candidate));
    }
}

}  // namespace

namespace {

// A batch that no number of the machines can make is never changed in silence.
void say_batch(Plan& plan) {
    if (!is_training(plan.workload.kind)) return;
    std::string text = batch_text(plan.candidates.front().layout, global_batch_of(plan.workload));
    if (!text.empty()) plan.workload.assumptions.push_back(std::move(text));
}

// One machine that is lost takes the service with it, whatever a default says.
void say_survival(Plan& plan, const Catalog& catalog) {
    const Candidate& chosen = plan.candidates.front();
    const bool parts = catalog.node_types()[static_cast<std::size_t>(chosen.node_type)].mig.has_value();
    if (plan.workload.kind != WorkloadKind::inference || (chosen.nodes != 1 && !parts)) return;
    for (std::string& line : plan.workload.assumptions)
        if (line.starts_with("with one node lost the middle estimate"))
            line = chosen.nodes == 1 ? "nothing answers while the one machine is down: there is no second of it"
                                     : "no part is to spare, since those of one machine are lost together; "
                                       "objective.survive_one_replica_lost: true plans the parts of one more machine";
}

// Several replicas carry as much as is said only behind a router that knows who is busy.
void say_router(Plan& plan) {
    const Candidate& chosen = plan.candidates.front();
    const bool generates =
        plan.workload.model.kind == ModelKind::decoder || plan.workload.model.kind == ModelKind::encoder_decoder;
    if (plan.workload.kind != WorkloadKind::inference || !generates || chosen.replicas - chosen.spare_nodes < 2 ||
        !(plan.workload.traffic.requests_per_second.value_or(0) > 0))
        return;
    plan.workload.assumptions.push_back(
        "requests go to the replica with the least to do, or to each in turn; spread at random, as a Kubernetes "
        "Service does, they wait for one another longer");
}

// Who commits for a year expects its discount, and has to hear that none is known.
void say_commitment(Plan& plan, const Catalog& catalog) {
    if (!plan.workload.where.commitment) return;
    const Candidate& chosen = plan.candidates.front();
    if (chosen.pricing == Pricing::owned) return;
    const NodeType& node = catalog.node_types()[static_cast<std::size_t>(chosen.node_type)];
    for (const Price& price : catalog.prices_of(chosen.node_type))
        if (price.pricing == Pricing::reserved_1y || price.pricing == Pricing::reserved_3y) return;
    plan.workload.assumptions.push_back(
        fmt::format("no reserved price of {} is known: the commitment lowers nothing here{}", node.name,
                    node.cloud == "azure" ? "; --prices takes a saved page of the Azure Retail Prices API, whose "
                                            "reservations and savings plans count"
                                          : ""));
}

// What the description of one's own machines leaves out. How many there are: no more are planned than it takes.
void say_own_machines(Plan& plan, const Catalog& catalog) {
    const Candidate& chosen = plan.candidates.front();
    const NodeType& node = catalog.node_types()[static_cast<std::size_t>(chosen.node_type)];
    if (node.cloud != "on-prem") return;
    if (is_training(plan.workload.kind) && chosen.nodes > 1 && !is_rdma(node) && node.ethernet_gbps <= 0 &&
        node.link_across >= 0)
        plan.workload.assumptions.push_back(
            fmt::format("about {:.0f} Gb/s of Ethernet between the machines, since ethernet_gbps is not given",
                        catalog.links()[static_cast<std::size_t>(node.link_across)].bandwidth.v * 8 / 1e9));
    if (host_is_assumed(node))
        plan.workload.assumptions.push_back(
            fmt::format("{} has {} vCPUs and {} of memory, since vcpus and memory are not both given", node.name,
                        node.vcpus, format_bytes_gib(node.memory)));
    if (node.cpu_assumed && !node.has_gpu() && plan.workload.model_known)
        plan.workload.assumptions.push_back(
            fmt::format("the processors of {} are as fast as {}, since cpu is not given", node.name,
                        catalog.cpus()[static_cast<std::size_t>(node.cpu)].name));
    if (node.available > 0 || plan.workload.where.pinned_nodes(node)) return;
    plan.workload.assumptions.push_back(
        chosen.nodes == 1
            ? fmt::format("there is one {}, since its file gives no count; count: N lets a plan use N", node.name)
            : fmt::format("there are {} of {}, the fewest that keep the limits, since its file gives no count",
                          chosen.nodes, node.name));
}

// A release is planned as engines of its time were measured, or makes no difference: either is said.
void say_release(Plan& plan) {
    const Workload& w = plan.workload;
    const auto release = release_of(w.framework_version);
    if (!release) return;
    const EngineEra era = era_of_release(w.framework, *release);
    plan.workload.assumptions.push_back(
        !has_eras(w.framework) ? fmt::format("framework_version {} changes nothing: what is measured of {} is not told "
                                             "apart by release",
                                             w.framework_version, w.framework)
        : era == EngineEra::current
            ? fmt::format("{} {} is planned as today's releases, which it schedules like", w.framework,
                          w.framework_version)
            : fmt::format("{} {} is planned as releases of {} were measured: scheduler and kernels are slower than "
                          "today's",
                          w.framework, w.framework_version, era == EngineEra::y2023 ? "2023" : "2024"));
}

// What follows the choice speaks of what the chosen device runs, not of what a default began with.
void take_precision(Plan& plan, const Catalog& catalog) {
    const Candidate& chosen = plan.candidates.front();
    const NodeType& node = catalog.node_types()[static_cast<std::size_t>(chosen.node_type)];
    std::string why =
        why_precision(plan.workload, chosen.precision,
                      node.has_gpu() ? &catalog.accelerators()[static_cast<std::size_t>(node.accelerator)] : nullptr);
    if (plan.workload.precision_order.empty()) return;
    const std::string before = fmt::format("precision {}, since none is given", to_string(plan.workload.precision));
    fix_precision(plan.workload, chosen.precision);
    if (why.empty()) return;
    for (std::string& line : plan.workload.assumptions)
        if (line.starts_with(before)) return void(line = std::move(why));
    plan.workload.assumptions.push_back(std::move(why));
}

// Nothing keeps deadline and budget with the confidence that is wanted when nobody says one: how likely the safest of
// what speaks least against it keeps both, where that is more likely than not. Whoever asks for a plan gets it, and its
// chance in the headline; whoever names a confidence gets that or a refusal. In whole percent, rounded down.
std::optional<double> confidence_to_be_had(const Context& context, const std::vector<Option>& over_limit,
                                           const std::vector<Point>& points) {
    const ObjectiveSpec& objective = context.workload.objective;
    if (context.options.settle_for || objective.confidence || serves(context.workload)) return std::nullopt;
    const std::optional<Seconds> end = latest_end(context);
    int least = std::numeric_limits<int>::max();
    double best = 0;
    for (const Option& option : over_limit) {
        const Point& point = points[static_cast<std::size_t>(option.point)];
        double chance = 1;
        if (end && point.work_s > 0) chance = std::min(chance, chance_below(option.hours, end->v / 3600));
        if (objective.budget && option.priced)
            chance = std::min(
                chance, chance_below(budgeted_usd(context, option.usd, point.work_s > 0 ? 0 : point.service_hours),
                                     objective.budget->dollars()));
        if (chance < 0.5 || option.doubts > least || (option.doubts == least && chance <= best)) continue;
        least = option.doubts;
        best = chance;
    }
    if (best < 0.5 || best >= context.settings.confidence) return std::nullopt;
    return std::floor(100 * best + 1e-9) / 100;
}

// Nobody said how long an answer may take, and on the machines that are there it takes longer than people like: what
// they do is the answer. Of machines that could be others it is no plan. The first that helps, with what is said of it.
std::optional<Workload> with_slower_answers(const Context& context) {
    const Workload& workload = context.workload;
    const LatencySpec& limits = workload.objective.latency;
    const auto& clouds = workload.where.clouds;
    const bool own = !clouds.empty() && std::all_of(clouds.begin(), clouds.end(), [](const std::string& cloud) {
        return cloud == "on-prem" || cloud == "this-machine";
    });
    if (!own || workload.kind != WorkloadKind::inference || !limits.at.empty() || !limits.any()) return std::nullopt;
    for (const double factor : {3.0, 10.0, 30.0}) {
        Workload slower = workload;
        LatencySpec& wide = slower.objective.latency;
        std::string expected;
        for (auto [limit, what] : {std::pair(&wide.ttft_p99, "first token"),
                                   std::pair(&wide.tpot_p99, "each further one"), std::pair(&wide.p95, "an answer")}) {
            if (!*limit) continue;
            expected += fmt::format("{}{} within {}", expected.empty() ? "" : " and ", what, format_seconds(**limit));
            *limit = Seconds((*limit)->v * factor);
        }
        PlanOptions quiet = context.options;
        quiet.progress = {};
        const Context changed = make_context(slower, context.catalog, quiet);
        const auto search = run_search(changed, {.quick = true});
        if (!search || rank(changed, search->points).groups.empty()) continue;
        std::erase_if(slower.assumptions, [](const std::string& line) {
            return line.starts_with("first token within ") || line.starts_with("an answer within ");
        });
        slower.assumptions.push_back(fmt::format(
            "answers may take {:.0f} x as long as people expect ({}), since no latency is given and nothing "
            "here is faster",
            factor, expected));
        return slower;
    }
    return std::nullopt;
}

}  // namespace

PlanOptions with_ordered_offers(PlanOptions options) {
    CHECK(!options.today.empty());  // a plan for some day of the past would be believed
    order_offers(options.offers);
    return options;
}

Result<Plan> make_plan(const Workload& workload, const Catalog& catalog, const PlanOptions& given) {
    const PlanOptions options = with_ordered_offers(given);
    Plan plan;
    plan.workload = workload;
    plan.catalog_version = catalog.version;
    plan.catalog_as_of = catalog.as_of;
    const Context context = make_context(workload, catalog, options);
    const auto cache = make_layout_cache();
    auto found = run_search(context, {.cache = cache});
    if (!found) return std::move(found).error();
    const Search& search = *found;
    Ranking ranking = rank(context, search.points);

    RejectionLog rejected = context.rejected;
    rejected.merge(search.rejected);
    rejected.merge(ranking.expansion.rejected);
    plan.rejected = rejected.sorted();
    plan.refused = context.rejected.total() + search.refused + ranking.expansion.refused;
    plan.considered = context.considered + search.considered + ranking.expansion.considered;

    if (ranking.groups.empty()) {
        if (const auto likely = confidence_to_be_had(context, ranking.expansion.over_limit, search.points)) {
            PlanOptions settled = given;
            settled.settle_for = likely;
            auto made = make_plan(workload, catalog, settled);
            if (!made || made->feasible()) return made;
        }
        if (ranking.expansion.over_limit.empty())
            if (const auto slower = with_slower_answers(context)) {
                auto made = make_plan(*slower, catalog, given);
                if (!made || made->feasible()) return made;
            }
        explain_infeasible(context, search, ranking, plan);
        plan.verdict = verdict_of(context, plan);
        plan.advice = make_advice(context, plan);
        return plan;
    }
    fill_candidates(context, search, ranking, plan);
    take_precision(plan, catalog);
    say_batch(plan);
    say_router(plan);
    say_survival(plan, catalog);
    say_release(plan);
    say_own_machines(plan, catalog);
    say_commitment(plan, catalog);
    plan.platform = choose_platform(workload, context, plan.candidates.front());
    plan.reasons = reasons_of(context, plan);
    plan.fallbacks = fallbacks_of(context, search, ranking);
    for (Fallback& one : plan.fallbacks)
        one.candidate.orchestrator = choose_platform(workload, context, one.candidate).orchestrator;
    plan.spot_rate = spot_rate_of(context, search, ranking.groups.front());
    plan.advice = make_advice(context, plan);
    if (options.what_if) plan.what_if = what_ifs(context, search, ranking.groups.front(), cache);
    plan.verdict = verdict_of(context, plan);
    if (options.progress) options.progress(1, "done");
    return plan;
}

}  // namespace stoker

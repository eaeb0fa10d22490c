#include "plan/serving_load.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/chance.h"
#include "plan/constraints/constraint.h"
#include "plan/intervals.h"

namespace stoker {
namespace {

bool survival_was_asked_for(const ObjectiveSpec& objective) {
    return objective.survive_one_replica_lost && objective.at.contains("survive_one_replica_lost");
}

// A router gives each request to the replica with the least to do, or to one after the other: what reaches one of n
// comes more evenly than a random share of the whole would. In turn it is every n-th request, whose gaps vary by
// 1/sqrt(n) of the whole's (an Erlang process of order n). Clients in a closed loop are spread evenly anyway.
ServingSetup behind_router(ServingSetup setup, int replicas) {
    setup.arrival_cv /= std::sqrt(std::max(1, replicas));
    return setup;
}

// Of the time of `servers` that answer in batches behind one queue. What makes a lone one wait at 70 % is somebody
// else's idle moment where there are many: what is left free shrinks with the square root of their number (Halfin and
// Whitt 1981, the square-root rule of staffing).
double busy_limit_of(const Context& context, int servers) {
    return 1 - (1 - context.settings.busy_limit) / std::sqrt(std::max(1, servers));
}

ServingOutcome simulated(const ServingSetup& setup, ReplicaShape shape, const ServingLoad& load, SimulatedWork& work) {
    ServingOutcome outcome = simulate_serving(setup, shape, load);
    ++work.runs;
    work.decisions += outcome.decisions;
    return outcome;
}

// What a latency errs by: as the device's steps do, and no less than what sources showed that no constant has seen.
Range calibrated_range(std::string_view metric, double growth, double fast, double mid, double slow) {
    if (!(mid > 0)) return {std::min(fast, mid), mid, std::max(slow, mid)};
    const Range own{std::min(fast / mid, 1.0), 1, std::max(slow / mid, 1.0)};
    return metric.empty() ? own * mid : calibrated_intervals().factors(metric, own, 0, growth) * mid;
}
constexpr std::string_view kFirstToken = "ttft_ms", kEachToken = "tpot_ms", kWholeAnswer = "latency_ms_p50";

// Limits that nobody gave stand for what is usual: what latencies err by beyond steps is shown, and buys no machines.
bool were_given(const LatencySpec& l) {
    return !l.at.empty();
}

// How far measured runs are widens what is told, and buys no machines (as with limits that nobody gave).
// Limits for the middle of what is predicted such that latencies, which err by more than steps do, keep those that are
// given with the same confidence.
LatencySpec tightened(LatencySpec l, double deviations) {
    constexpr double kNinetieth = 1.2815515655446004;
    const auto by = [&](std::string_view metric, std::initializer_list<std::optional<Seconds>*> limits) {
        const double high = calibrated_intervals().factors(metric, {1, 1, 1}, 0, 1).high;
        const double share = std::pow(high, -std::max(0.0, deviations) / kNinetieth);
        for (std::optional<Seconds>* limit : limits)
            if (*limit) *limit = Seconds((*limit)->v * share);
    };
    by(kFirstToken, {&l.ttft_p50, &l.ttft_p95, &l.ttft_p99});
    by(kEachToken, {&l.tpot_p50, &l.tpot_p95, &l.tpot_p99});
    by(kWholeAnswer, {&l.p95});
    return l;
}

// How likely every limit is kept, by the worst of them, which `tightest` names.
double chance_of(const LatencySpec& l, const ServingOutcome& fast, const ServingOutcome& mid,
                 const ServingOutcome& slow, std::string& tightest) {
    double chance = -1;
    const auto keep = [&](const std::optional<Seconds>& limit, double ServingOutcome::*value, std::string_view metric,
                          std::string_view words, std::string_view percentile) {
        if (!limit || !(mid.*value > 0)) return;
        const double one = chance_below(
            calibrated_range(were_given(l) ? metric : std::string_view(), 1, fast.*value, mid.*value, slow.*value),
            limit->v);
        if (chance >= 0 && one >= chance) return;
        chance = one;
        tightest = fmt::format("{} within {} ({})", words, format_seconds(*limit), percentile);
    };
    constexpr std::string_view kFirst = "the first token", kNext = "each further token", kWhole = "the answer";
    keep(l.ttft_p50, &ServingOutcome::ttft_p50, kFirstToken, kFirst, "p50");
    keep(l.ttft_p95, &ServingOutcome::ttft_p95, kFirstToken, kFirst, "p95");
    keep(l.ttft_p99, &ServingOutcome::ttft_p99, kFirstToken, kFirst, "p99");
    keep(l.tpot_p50, &ServingOutcome::tpot_p50, kEachToken, kNext, "p50");
    keep(l.tpot_p95, &ServingOutcome::tpot_p95, kEachToken, kNext, "p95");
    keep(l.tpot_p99, &ServingOutcome::tpot_p99, kEachToken, kNext, "p99");
    keep(l.e2e_p95, &ServingOutcome::e2e_p95, {}, kWhole, "p95");
    keep(l.p95, &ServingOutcome::e2e_p95, kWholeAnswer, kWhole, "p95");
    // At the slow end the queue grows: what was measured of it is the length of the run, not a latency that is kept.
    constexpr double kJustLess = 0.89;
    return slow.saturated ? std::min(chance, kJustLess) : chance;
}

// Latencies under a load, and how they err: step times err by a device's sigma, so the same requests on a device that
// is so much faster, and slower.
void observe(const ServingSetup& setup, ReplicaShape shape, const LatencySpec& latency, ServingLoad load,
             SizedReplica& out) {
    const auto run = [&] { return simulated(setup, shape, load, out.work); };
    const double spread = std::exp(1.2816 * setup.device.sigma);
    load.requests = 1500;
    out.outcome = run();
    load.requests = 800;
    load.speed = 1 / spread;
    const ServingOutcome fast = run();
    load.speed = spread;
    const ServingOutcome slow = run();
    const auto range = [&](std::string_view metric, double ServingOutcome::*value) {
        return calibrated_range(metric, setup.interval_growth, fast.*value, out.outcome.*value, slow.*value);
    };
    out.ttft_p95 = range(setup.decoder ? kFirstToken : kWholeAnswer, &ServingOutcome::ttft_p95);
    out.tpot_p95 = range(kEachToken, &ServingOutcome::tpot_p95);
    out.chance = chance_of(latency, fast, out.outcome, slow, out.tightest);
}

int replicas_for(double asked, double of_one) {
    return std::max(1, static_cast<int>(std::min(std::ceil(asked / of_one - 1e-9), 1e6)));
}

// What one replica carries within the limits where its steps take `speed` times what is predicted: requests/s, or
// clients.
double carried(const Context& context, const ServingDemand& demand, const Replica& r, const LatencySpec& latency,
               double speed, double guess, SimulatedWork& work) {
    const ServingSetup& setup = *r.setup;
    if (demand.closed()) {
        // Also beyond those that are asked for: what a replica holds is a figure of its own.
        constexpr double kWorthKnowing = 4096;
        return carried_clients(setup, r.shape, latency, demand.think_s,
                               std::max(std::ceil(demand.clients / demand.models), kWorthKnowing), speed, guess, &work);
    }
    const double rate = sustained_rate(setup, r.shape, latency, speed, guess, &work);
    if (setup.decoder) return rate;
    // What comes while a batch runs waits for the next one. Busier than the limit, waiting dominates in an engine that
    // batches what is there, and limits that allow for it are rarely meant so.
    return std::min(rate, context.settings.busy_limit * offline_throughput(setup, r.shape).requests_per_s / speed);
}

// What answers in batches stands behind a router that knows who is idle: fewer of them keep the limits than where each
// has a share of the requests to itself.
void pool(const Context& context, const ServingDemand& demand, const Replica& r, const LatencySpec& latency,
          double asked, double speed, double& most, SizedReplica& out) {
    const double fastest = offline_throughput(*r.setup, r.shape).requests_per_s / speed;
    if (!latency.any() || !(fastest > 0)) return;
    const auto keeps = [&](int servers, double load_of_all) {
        ServingLoad load{.servers = servers, .think_s = demand.think_s, .speed = speed, .requests = 2000};
        (demand.closed() ? load.concurrency : load.requests_per_second) = load_of_all;
        return (demand.closed() || load_of_all <= servers * fastest * busy_limit_of(context, servers)) &&
               keeps_limits(simulated(*r.setup, r.shape, load, out.work), latency);
    };
    int few = 0, enough = out.needed;
    while (few + 1 < enough) {
        const int middle = few + (enough - few) / 2;
        (keeps(middle, asked) ? enough : few) = middle;
    }
    out.needed = enough;
    if (enough < 2) return;
    constexpr double kStep = 1.1;
    constexpr int kSteps = 8;
    double held = asked;
    for (int i = 0; i < kSteps && keeps(enough, held * kStep); ++i) held *= kStep;
    most = std::max(most, held / enough);
}

// The least replicas behind a router that keep the limits, where each with a random share of the requests needs
// out.needed. Where prompts take seconds, waiting for one another is most of what a limit is missed by.
void route(const Replica& r, const LatencySpec& latency, double asked, double speed, double& most, SizedReplica& out) {
    const auto keeps = [&](int replicas) {
        const ServingLoad load{.requests_per_second = asked / replicas, .speed = speed, .requests = 2000};
        return keeps_limits(simulated(behind_router(*r.setup, replicas), r.shape, load, out.work), latency);
    };
    // None does much more than the closed form says it could with no limit at all.
    int few = std::max(0, replicas_for(asked, 1.25 * r.most_rate / speed) - 1), enough = out.needed;
    while (few + 1 < enough) {
        const int middle = few + (enough - few) / 2;
        (keeps(middle) ? enough : few) = middle;
    }
    out.needed = enough;
    most = std::max(most, asked / enough);
}

// A fleet of replicas that carry `most` each within `sized_for`.
void load_with(const Context& context, const ServingDemand& demand, const Replica& r, const LatencySpec& sized_for,
               int given, double most, double speed, SizedReplica& out) {
    const LatencySpec& latency = context.workload.objective.latency;
    const double asked = demand.closed() ? std::ceil(demand.clients / demand.models) : demand.rate / demand.models;
    if (asked > 0) out.needed = replicas_for(asked, most);
    const bool batches = !r.setup->decoder;
    if (batches && out.needed > 1) pool(context, demand, r, sized_for, asked, speed, most, out);
    const bool routed = !batches && !demand.closed();
    if (out.needed > 1 && given <= 0 && routed && sized_for.any()) route(r, sized_for, asked, speed, most, out);
    // The bisection ends a few percent below what is carried: where that costs a whole replica, one fewer is tried.
    if (out.needed > 1 && given <= 0 && demand.closed() && !batches && asked / (out.needed - 1) < 1.12 * most) {
        const double each = asked / (out.needed - 1);
        const ServingLoad load{
            .concurrency = std::ceil(each), .think_s = demand.think_s, .speed = speed, .requests = 2000};
        if (keeps_limits(simulated(*r.setup, r.shape, load, out.work), sized_for)) --out.needed, most = each;
    }
    // A fleet whose chance comes out below what it was sized for, by the noise of a few simulated requests, gets one
    // more.
    constexpr int kTries = 3;
    for (int attempt = 0; attempt < kTries; ++attempt) {
        out.needed = std::max(out.needed, 1);
        const int there = std::max(given, out.needed), servers = batches && asked > 0 ? there : 1;
        if (demand.closed()) {
            const double each = std::ceil(asked / there);
            ServingLoad load{.concurrency = servers > 1 ? asked : each, .servers = servers, .think_s = demand.think_s};
            observe(*r.setup, r.shape, latency, load, out);
            out.load = out.sustained = out.outcome.requests_per_s / servers;
            out.clients = std::max(most, servers > 1 ? each : 0);
            load.servers = 1;
            if (each < most) {
                load.concurrency = most;
                load.requests = 1500;
                out.sustained = std::max(out.load, simulated(*r.setup, r.shape, load, out.work).requests_per_s);
            }
        } else {
            out.sustained = most;
            out.load = asked > 0 ? asked / there : most;
            observe(routed && asked > 0 ? behind_router(*r.setup, there) : *r.setup, r.shape, latency,
                    {.requests_per_second = servers > 1 ? asked : out.load, .servers = servers}, out);
        }
        const bool short_of = out.sized_sure && out.chance >= 0 && out.chance < context.settings.confidence;
        if (!short_of || given > 0) return;
        if (demand.capacity())
            most *= 0.95;
        else if (attempt + 1 < kTries)
            ++out.needed;
    }
}

}  // namespace

ServingDemand demand_of(const Workload& workload) {
    const TrafficSpec& traffic = workload.traffic;
    ServingDemand demand;
    demand.models = std::max(1.0, std::round(workload.models_served));
    demand.rate = traffic.requests_per_second.value_or(0);
    if (demand.rate > 0) return demand;
    demand.clients = workload.clients();
    demand.think_s = traffic.think_time ? traffic.think_time->v : 0;
    if (demand.capacity() && !workload.asks_for_capacity()) demand.rate = 1;
    return demand;
}

std::vector<SizedReplica> load_replica(const Context& context, const ServingDemand& demand, const Replica& r,
                                       int given) {
    std::vector<SizedReplica> loads;
    const auto add = [&](double speed, double guess, bool sure) {
        SizedReplica load{.sized_sure = sure};
        LatencySpec limits = context.workload.objective.latency;
        double most = carried(context, demand, r, limits, speed, guess, load.work);
        // As sure as the device is slow, and as sure as its latencies are what is predicted: the worse of the two.
        if (sure && most > 0 && were_given(limits)) {
            const LatencySpec narrow = tightened(limits, context.settings.confidence_deviations);
            const double also = carried(context, demand, r, narrow, 1, most, load.work);
            if (also < most) most = also, limits = narrow, speed = 1;
        }
        if (most > 0 && (!demand.closed() || most >= 1))
            load_with(context, demand, r, limits, given, most, speed, load);
        loads.push_back(std::move(load));
        return most;
    };
    const ObjectiveSpec& objective = context.workload.objective;
    if (!objective.latency.any()) return add(1, 0, true), loads;
    // Limits are to be kept on a device that is as slow as it may be with the confidence that is asked for.
    const double slow = std::exp(std::max(0.0, context.settings.confidence_deviations) * r.setup->device.sigma);
    // Nodes that are given are given: how surely they keep the limits is all there is to say.
    if (given > 0 && !demand.capacity()) return add(1, 0, false), loads;
    const double sure = add(slow, 0, true);
    // What a replica holds is told by the middle estimate, as everything else is.
    if (sure > 0 && !demand.closed() && !demand.capacity()) {
        SizedReplica& load = loads.front();
        load.sustained = std::max(load.sustained,
                                  carried(context, demand, r, objective.latency, 1, sure * std::sqrt(slow), load.work));
        load.least = std::clamp(replicas_for(demand.rate / demand.models, load.sustained), 1, std::max(1, load.needed));
    }
    // Where money or machines are limited, or nothing is sure, what keeps the limits with the middle estimate is better
    // than nothing; whoever ranks it knows its chance.
    const WhereSpec& where = context.workload.where;
    const bool limited = (objective.budget && !beyond_budget(context, demand, r)) || where.max_nodes;
    if (sure > 0 && !limited) return loads;
    add(1, sure * slow, false);
    if (loads.back().needed > 0 && loads.back().needed < loads.front().needed) return loads;
    if (loads.front().needed > 0) loads.pop_back();
    return loads;
}

bool beyond_budget(const Context& context, const ServingDemand& demand, const Replica& r) {
    const auto& budget = context.workload.objective.budget;
    if (!budget || demand.capacity() || !(r.bound_usd < kInfinity)) return false;
    const double hours = context.workload.period ? context.workload.period->v / 3600 : 1;
    const double usd = r.bound_usd * hours;
    return budgeted_usd(context, {usd, usd, usd}, hours).mid > budget->dollars();
}

ReplicaFleet fleet_for(const Context& context, const ServingDemand& demand, const NodeChoice& choice,
                       ReplicaShape shape, int needed, int least) {
    const ObjectiveSpec& objective = context.workload.objective;
    const WhereSpec& where = context.workload.where;
    const int models = static_cast<int>(demand.models);
    // Who fixes the number of machines has counted on all of them, unless the file says that one may be lost.
    if (const auto pinned = where.pinned_nodes(*choice.node))
        return place_pinned(choice, shape, *pinned, models, survival_was_asked_for(objective));
    const ReplicaFleet bare = place_fleet(choice, shape, needed, models, false);
    if (!objective.survive_one_replica_lost) return bare;
    // A default holds no machine back that nobody said they have.
    const bool uncounted = choice.node->cloud == "on-prem" && choice.node->available <= 0;
    if (uncounted && !survival_was_asked_for(objective)) return bare;
    // Parts of GPUs that lie in one machine are lost together: one more part is no spare.
    if (choice.node->mig) {
        if (!survival_was_asked_for(objective)) return bare;
        ReplicaFleet parts = bare;
        parts.spare_nodes = std::max(1, choice.node->mig->parts());
        parts.nodes += parts.spare_nodes;
        parts.replicas += parts.spare_nodes * std::max(1, bare.per_node);
        return parts;
    }
    // With any number of them left for the loss, the others are as many as the traffic needs when all are there.
    int left = survival_was_asked_for(objective) || least <= 0 ? needed : std::min(least, needed);
    ReplicaFleet fleet = place_fleet(choice, shape, left, models, true);
    while (left < needed && fleet.replicas < needed * std::max(1, models))
        fleet = place_fleet(choice, shape, ++left, models, true);
    fleet.carrying = bare.carrying;
    const double most = std::min(where.max_nodes.value_or(kInfinity),
                                 choice.node->available > 0 ? double(choice.node->available) : kInfinity);
    if (fleet.nodes > most && bare.nodes <= most && !survival_was_asked_for(objective)) return bare;
    fleet.spare_nodes = fleet.nodes - bare.nodes;
    return fleet;
}

std::optional<Shortfall> shortfall_of(const Context& context, const ServingDemand& demand, const NodeChoice& choice,
                                      ReplicaShape shape, const SizedReplica& load) {
    const WhereSpec& where = context.workload.where;
    const auto pinned = where.pinned_nodes(*choice.node);
    const ReplicaFleet wanted = fleet_for(context, demand, choice, shape, load.needed, load.least);
    if (pinned ? wanted.carrying >= (demand.capacity() ? 1 : load.needed)
               : !where.max_nodes || wanted.nodes <= *where.max_nodes)
        return std::nullopt;
    const int nodes = pinned ? *pinned : static_cast<int>(*where.max_nodes);
    const bool survive = survival_was_asked_for(context.workload.objective);
    const ReplicaFleet there = place_pinned(choice, shape, nodes, static_cast<int>(demand.models), survive);
    const double each = demand.closed() ? load.clients : load.sustained;
    Shortfall out{.reason = Reason::throughput,
                  .have = there.carrying * each * demand.models,
                  .need = demand.closed() ? demand.clients : demand.rate,
                  .text = {}};
    const std::string who = nodes == 1 ? "one node" : fmt::format("{} nodes", nodes);
    const std::string lost =
        survive && nodes > 1 ? ", one of which may be lost (objective.survive_one_replica_lost)," : "";
    if (there.carrying == 0) {
        const int span = (shape.gpus() + choice.devices() - 1) / choice.devices();
        out.reason = Reason::node_count;
        out.have = nodes, out.need = std::max(span, 1) + (survive ? 1 : 0);
        out.text = span > nodes ? fmt::format("one replica takes {} nodes, {} may be used", span, nodes)
                   : survive ? fmt::format("{} leave{} nothing when one is lost (objective.survive_one_replica_lost)",
                                           who, nodes == 1 ? "s" : "")
                             : fmt::format("{} do{} not hold a replica of each model", who, nodes == 1 ? "es" : "");
        return out;
    }
    out.text = demand.closed() ? fmt::format("{}{} carr{} {} of {} clients at once within the limits", who, lost,
                                             nodes == 1 ? "ies" : "y", format_thousands(std::floor(out.have)),
                                             format_thousands(demand.clients))
                               : fmt::format("{}{} hold{} {:.3g} requests/s of {:g} asked within the limits", who, lost,
                                             nodes == 1 ? "s" : "", out.have, demand.rate);
    return out;
}

}  // namespace stoker

#include "plan/serving_load.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"

namespace stoker {
namespace {

bool survival_was_asked_for(const ObjectiveSpec& objective) {
    return objective.survive_one_replica_lost && objective.at.contains("survive_one_replica_lost");
}

// Step times err by a device's sigma: the same requests on a device that is so much faster, and slower.
void add_intervals(const ServingSetup& setup, ReplicaShape shape, ServingLoad load, ReplicaLoad& out) {
    const double spread = std::exp(1.2816 * setup.device.sigma);
    load.requests = 800;
    load.speed = 1 / spread;
    const ServingOutcome fast = simulate_serving(setup, shape, load);
    load.speed = spread;
    const ServingOutcome slow = simulate_serving(setup, shape, load);
    out.ttft_p95 = {std::min(fast.ttft_p95, out.outcome.ttft_p95), out.outcome.ttft_p95,
                    std::max(slow.ttft_p95, out.outcome.ttft_p95)};
    out.tpot_p95 = {std::min(fast.tpot_p95, out.outcome.tpot_p95), out.outcome.tpot_p95,
                    std::max(slow.tpot_p95, out.outcome.tpot_p95)};
}

int replicas_for(double asked, double of_one) {
    return std::max(1, static_cast<int>(std::min(std::ceil(asked / of_one - 1e-9), 1e6)));
}

void load_closed(const ServingDemand& demand, const Replica& r, const LatencySpec& latency, int given,
                 ReplicaLoad& out) {
    const ServingSetup& setup = *r.setup;
    const double clients = std::ceil(demand.clients / demand.models);
    // Also beyond those that are asked for: what a replica holds is a figure of its own.
    constexpr double kWorthKnowing = 4096;
    out.clients = carried_clients(setup, r.shape, latency, demand.think_s, std::max(clients, kWorthKnowing));
    if (out.clients < 1) return;
    out.needed = replicas_for(clients, out.clients);
    const double each = std::ceil(clients / std::max(given, out.needed));
    ServingLoad load{.concurrency = each, .think_s = demand.think_s, .requests = 1500};
    out.outcome = simulate_serving(setup, r.shape, load);
    out.load = out.sustained = out.outcome.requests_per_s;
    add_intervals(setup, r.shape, load, out);
    if (each >= out.clients) return;
    load.concurrency = out.clients;
    out.sustained = std::max(out.load, simulate_serving(setup, r.shape, load).requests_per_s);
}

// What comes while a batch runs waits for the next one. Busier than the limit, waiting dominates in an engine that
// batches what is there, and limits that allow for it are rarely meant so.
void load_samples(const Context& context, const Replica& r, double per_model, int given, ReplicaLoad& out) {
    const ServingSetup& setup = *r.setup;
    out.sustained = std::min(sustained_rate(setup, r.shape, context.workload.objective.latency),
                             context.settings.busy_limit * offline_throughput(setup, r.shape).requests_per_s);
    if (!(out.sustained > 0)) return;
    out.needed = per_model > 0 ? replicas_for(per_model, out.sustained) : 1;
    out.load = per_model > 0 ? per_model / std::max(given, out.needed) : out.sustained;
    const ServingLoad load{.requests_per_second = out.load, .requests = 1500};
    out.outcome = simulate_serving(setup, r.shape, load);
    add_intervals(setup, r.shape, load, out);
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

ReplicaLoad load_replica(const Context& context, const ServingDemand& demand, const Replica& r, int given) {
    ReplicaLoad out;
    const ServingSetup& setup = *r.setup;
    const LatencySpec& latency = context.workload.objective.latency;
    const double per_model = demand.rate / demand.models;
    if (demand.closed()) {
        load_closed(demand, r, latency, given, out);
    } else if (setup.decoder) {
        out.sustained = sustained_rate(setup, r.shape, latency);
        if (!(out.sustained > 0)) return out;
        out.needed = per_model > 0 ? replicas_for(per_model, out.sustained) : 1;
        out.load = per_model > 0 ? per_model / std::max(given, out.needed) : out.sustained;
        const ServingLoad load{.requests_per_second = out.load, .requests = 1500};
        out.outcome = simulate_serving(setup, r.shape, load);
        add_intervals(setup, r.shape, load, out);
    } else {
        load_samples(context, r, per_model, given, out);
    }
    return out;
}

ReplicaFleet fleet_for(const Context& context, const ServingDemand& demand, const NodeChoice& choice,
                       ReplicaShape shape, int needed) {
    const ObjectiveSpec& objective = context.workload.objective;
    const WhereSpec& where = context.workload.where;
    const int models = static_cast<int>(demand.models);
    // Who fixes the number of machines has counted on all of them, unless the file says that one may be lost.
    if (const auto pinned = where.pinned_nodes(*choice.node))
        return place_pinned(choice, shape, *pinned, models, survival_was_asked_for(objective));
    const ReplicaFleet bare = place_fleet(choice, shape, needed, models, false);
    if (!objective.survive_one_replica_lost) return bare;
    ReplicaFleet fleet = place_fleet(choice, shape, needed, models, true);
    if (where.max_nodes && fleet.nodes > *where.max_nodes && bare.nodes <= *where.max_nodes &&
        !survival_was_asked_for(objective))
        return bare;
    fleet.spare_nodes = fleet.nodes - bare.nodes;
    return fleet;
}

std::optional<Shortfall> shortfall_of(const Context& context, const ServingDemand& demand, const NodeChoice& choice,
                                      ReplicaShape shape, const ReplicaLoad& load) {
    const WhereSpec& where = context.workload.where;
    const auto pinned = where.pinned_nodes(*choice.node);
    const ReplicaFleet wanted = fleet_for(context, demand, choice, shape, load.needed);
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

// What a service is asked to carry, and how much of it one replica carries. Both depend on the workload and on the
// replica alone, never on which other machines are searched.
#pragma once

#include "plan/replicas.h"

namespace stoker {

struct ServingDemand {
    double rate = 0;     // requests/s of all models together, where requests come whatever the answers take
    double clients = 0;  // else clients of all models together who each wait for their answer
    double think_s = 0;  // from an answer to the same client's next request
    double models = 1;
    bool closed() const { return clients > 0; }
    // Neither is said: the question is what the machines hold.
    bool capacity() const { return !(rate > 0) && !closed(); }
};
ServingDemand demand_of(const Workload& workload);

// What the simulation says of one kind of replica.
struct SizedReplica {
    double sustained = 0;  // requests/s within the latency objective
    double clients = 0;    // closed loop: the most clients within the latency objective
    int needed = 0;        // replicas of one model that the traffic needs; 0: the limits hold at no load
    int least = 0;         // that carry it within the limits by the middle estimate: so many stay when a node is lost
    double load = 0;       // requests/s on each replica that carries the traffic
    ServingOutcome outcome;
    Range ttft_p95, tpot_p95;
    std::string tightest;     // of the limits the one that is likeliest to be missed, in words
    double chance = -1;       // to keep every latency limit under that load; -1: there are none
    bool sized_sure = false;  // for the confidence that is asked for, not for the middle estimate
    SimulatedWork work;
};
// One fleet that keeps the latency limits with the confidence that is asked for. Where money or machines are limited,
// or no load is light enough for that, also the smaller one that keeps them by the middle estimate. needed is 0 in all
// of them where the limits hold at no load. `given`: replicas of one model that are there in any case (pinned nodes);
// 0: as many as are needed.
std::vector<SizedReplica> load_replica(const Context& context, const ServingDemand& demand, const Replica& replica,
                                       int given);

// No fleet of it is within the budget, whatever the simulation says.
bool beyond_budget(const Context& context, const ServingDemand& demand, const Replica& replica);

// Where replicas stand: exactly on the nodes that are pinned, else on as few as carry the traffic, with one to lose
// where that was asked for, or is the default and the limit of nodes leaves room for it. What is there for the sake of
// being sure is there when a node is lost, too: `least` must then be left, and all of `needed` only where the file asks
// for a node to lose.
ReplicaFleet fleet_for(const Context& context, const ServingDemand& demand, const NodeChoice& choice,
                       ReplicaShape shape, int needed, int least);
// "one node holds 7.3 requests/s of 20 asked, within the limits": where the nodes that may be used are too few.
struct Shortfall {
    Reason reason = Reason::throughput;  // node_count: they hold no replica at all
    double have = 0, need = 0;           // requests/s, or clients
    std::string text;
};
std::optional<Shortfall> shortfall_of(const Context& context, const ServingDemand& demand, const NodeChoice& choice,
                                      ReplicaShape shape, const SizedReplica& load);

}  // namespace stoker

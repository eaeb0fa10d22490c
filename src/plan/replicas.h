// One replica of a model on one type of node, what it needs and how fast it is alone, and how many nodes its copies
// fill.
#pragma once

#include <optional>
#include <vector>

#include "plan/context.h"

namespace stoker {

struct Replica {
    int choice = -1;
    const ServingSetup* setup = nullptr;
    ReplicaShape shape;
    ServingMemory memory;
    double idle_ttft = 0, idle_tpot = 0;  // seconds of a lone request
    double most_rate = 0;                 // requests/s it could serve with no latency limit
    double bound_usd = 0;                 // per hour, no fleet of it can be cheaper
    int key = -1;                         // same device and shape: same simulation
    bool cpu = false;
};

// Replicas placed on nodes.
struct ReplicaFleet {
    int nodes = 0, replicas = 0;  // replicas of all models together
    int per_node = 0;             // 0: one replica spans several nodes
    int carrying = 0;             // replicas of one model that are left for the traffic when a node is lost
    int spare_nodes = 0;          // of `nodes`: so many are there because one may be lost
};

// The shapes worth trying on a machine, smallest first.
std::vector<ReplicaShape> replica_shapes(const Context& context, const NodeChoice& choice, const ServingSetup& setup);
// Replicas one node holds; 0 when one replica needs several nodes.
int replicas_per_node(const NodeChoice& choice, ReplicaShape shape);
// `carrying`: replicas of each of `models` that the traffic needs. With `survive_loss` so many stay when any one node
// is lost: replicas that share a VM go together.
ReplicaFleet place_fleet(const NodeChoice& choice, ReplicaShape shape, int carrying, int models, bool survive_loss);

// All that exactly `nodes` hold, the same number of every model.
ReplicaFleet place_pinned(const NodeChoice& choice, ReplicaShape shape, int nodes, int models, bool survive_loss);

void predict_idle(Replica& replica);
std::string predicted_text(const Replica& replica);
// Models that do not generate: requests/s of the largest batch whose filling and running stays within the limit.
double batched_rate(const ServingSetup& setup, double limit, double max_batch, double busy_limit, double& batch_used,
                    double& latency);

double ttft_limit(const LatencySpec& latency);
double tpot_limit(const LatencySpec& latency);
double whole_limit(const LatencySpec& latency);

}  // namespace stoker

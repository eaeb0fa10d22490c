#include "plan/replicas.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace stoker {
namespace {

constexpr double kSomeRequests = 4;  // that a replica has room for at once, or it is none to serve with
constexpr double kFullStep = 16;     // that make a step worth its reading of the weights

double limit_of(const std::optional<Seconds>& limit) {
    return limit ? limit->v : kInfinity;
}

// Mixtures: attention by groups of ranks that each have sequences of their own, experts over all of them; and whole
// experts on the ranks of a tensor group instead of slices of each.
void add_expert_shapes(const ServingSetup& setup, int devices, int most, std::vector<ReplicaShape>& shapes) {
    for (int ranks = 2; ranks <= std::min({most, devices, 8}); ranks *= 2) {
        if (setup.experts > 0 && std::fmod(setup.experts, ranks) != 0) continue;
        for (int tensor = 1; tensor < ranks; tensor *= 2)
            if (setup.heads <= 0 || std::fmod(setup.heads, tensor) == 0)
                shapes.push_back({.tensor = tensor, .data = ranks / tensor});
        if (setup.heads <= 0 || std::fmod(setup.heads, ranks) == 0)
            shapes.push_back({.tensor = ranks, .expert = ranks});
    }
}

// Stages beyond the widest tensor group: the rest of the node, then further nodes where RDMA joins them. They shorten
// no answer, and what they add to the throughput more replicas add as well and survive each other: as few as hold the
// model and a step full of requests, and none where the group does.
void add_stages(const NodeChoice& choice, const ServingSetup& setup, int widest, std::vector<ReplicaShape>& shapes) {
    const auto holds = [&](int stages) {
        const ServingMemory memory = serving_memory(setup, {.tensor = widest, .pipeline = stages});
        return memory.refused == Reason::none && memory.max_batch >= kFullStep;
    };
    if (holds(1)) return;
    for (int p : {2, 3, 4, 8}) {
        const bool inside = widest * p <= choice.devices();
        // Machines of one GPU are joined by nobody who can have several in one.
        const bool across = widest > 1 && widest == choice.devices() && is_rdma(*choice.node);
        if (p > setup.layers || !(inside || across)) continue;
        shapes.push_back({.tensor = widest, .pipeline = p});
        if (holds(p)) return;
    }
}

}  // namespace

double ttft_limit(const LatencySpec& l) {
    return std::min(
        {limit_of(l.ttft_p50), limit_of(l.ttft_p95), limit_of(l.ttft_p99), limit_of(l.e2e_p95), limit_of(l.p95)});
}
double tpot_limit(const LatencySpec& l) {
    return std::min({limit_of(l.tpot_p50), limit_of(l.tpot_p95), limit_of(l.tpot_p99)});
}
double whole_limit(const LatencySpec& l) {
    return std::min(limit_of(l.e2e_p95), limit_of(l.p95));
}

std::vector<ReplicaShape> replica_shapes(const Context& context, const NodeChoice& choice, const ServingSetup& setup) {
    std::vector<ReplicaShape> shapes;
    const LayoutSpec& pinned = context.workload.layout;
    if (pinned.tensor || pinned.pipeline || pinned.data || pinned.expert)
        return {{.tensor = static_cast<int>(pinned.tensor.value_or(1)),
                 .pipeline = static_cast<int>(pinned.pipeline.value_or(1)),
                 .data = context.workload.model.moe() ? static_cast<int>(pinned.data.value_or(1)) : 1,
                 .expert = static_cast<int>(pinned.expert.value_or(0))}};
    shapes.push_back({1, 1});
    if (choice.accelerator == nullptr || !setup.decoder) return shapes;
    const int devices = choice.devices();
    const bool links = setup.device.scale_up_domain > 1 && !setup.device.pairs_only;
    const int most = links ? std::min(devices, std::max(setup.device.scale_up_domain, 1)) : std::min(devices, 4);
    for (int t = 2; t <= std::min(most, 8); t *= 2)
        if (setup.heads <= 0 || std::fmod(setup.heads, t) == 0) shapes.push_back({t, 1});
    add_stages(choice, setup, shapes.back().tensor, shapes);
    // Tokens go to their experts and back in every layer: nobody does that over PCIe.
    if (context.workload.model.moe() && context.workload.framework != "llama.cpp" && links)
        add_expert_shapes(setup, devices, most, shapes);
    // A group that the weights fill up has no room for requests to share a step: not where a wider one has.
    const auto room = [&](ReplicaShape shape) {
        const ServingMemory memory = serving_memory(setup, shape);
        return memory.refused == Reason::none ? memory.max_batch : -1;
    };
    if (std::any_of(shapes.begin(), shapes.end(), [&](ReplicaShape s) { return room(s) >= kSomeRequests; }))
        std::erase_if(shapes, [&](ReplicaShape s) { return room(s) >= 0 && room(s) < kSomeRequests; });
    return shapes;
}

int replicas_per_node(const NodeChoice& choice, ReplicaShape shape) {
    return choice.devices() / std::max(1, shape.gpus());
}

ReplicaFleet place_fleet(const NodeChoice& choice, ReplicaShape shape, int carrying, int models, bool survive_loss) {
    ReplicaFleet fleet;
    fleet.per_node = replicas_per_node(choice, shape);
    const int spare = survive_loss ? 1 : 0;
    const int each = std::max(1, carrying), kinds = std::max(1, models);
    fleet.carrying = each;
    // A replica of one model is no spare for another: models are placed as bundles of one replica each where a node
    // holds a bundle, else every model gets its spare, on nodes of other models.
    const int bundles = fleet.per_node / kinds;
    if (bundles <= 0) {
        const int span = fleet.per_node > 0 ? 1 : (shape.gpus() + choice.devices() - 1) / choice.devices();
        const int held = std::max(1, fleet.per_node);
        fleet.replicas = kinds * (each + spare);
        fleet.nodes = (fleet.replicas * span + held - 1) / held;
        return fleet;
    }
    const int full = (each + bundles - 1) / bundles;  // nodes that carry the traffic
    const int on_each = (each + full - 1) / full;     // spread evenly: whichever node is lost, the others suffice
    fleet.nodes = full + spare;
    fleet.replicas = kinds * (survive_loss ? on_each * fleet.nodes : each);
    return fleet;
}

ReplicaFleet place_pinned(const NodeChoice& choice, ReplicaShape shape, int nodes, int models, bool survive_loss) {
    ReplicaFleet fleet;
    fleet.nodes = nodes;
    fleet.per_node = replicas_per_node(choice, shape);
    const int span = (shape.gpus() + choice.devices() - 1) / choice.devices();
    const int held = fleet.per_node > 0 ? fleet.per_node * nodes : nodes / std::max(1, span);
    const int lost = survive_loss ? std::max(1, fleet.per_node) : 0;
    const int kinds = std::max(1, models);
    fleet.replicas = held / kinds * kinds;
    fleet.carrying = std::max(0, held - lost) / kinds;
    fleet.spare_nodes = survive_loss ? std::min(nodes, fleet.per_node > 0 ? 1 : span) : 0;
    return fleet;
}

std::string predicted_text(const Replica& replica) {
    return replica.idle_tpot > 0
               ? fmt::format("predicted {} per output token", format_seconds(Seconds(replica.idle_tpot)))
               : fmt::format("predicted {} per request", format_seconds(Seconds(replica.idle_ttft)));
}

void predict_idle(Replica& replica) {
    const ServingSetup& s = *replica.setup;
    if (s.decoder) {
        replica.idle_ttft = step_seconds(s, replica.shape, 0, 0, s.prompt_tokens - s.cached_tokens, s.cached_tokens);
        replica.idle_tpot = step_seconds(s, replica.shape, 1, s.prompt_tokens + s.output_tokens / 2, 0, 0);
    } else {
        replica.idle_ttft = batch_seconds(s, 1);
    }
}

double batched_rate(const ServingSetup& setup, double limit, double max_batch, double busy_limit, double& batch_used,
                    double& latency) {
    double best = 0;
    for (double batch = 1; batch <= std::min(256.0, std::max(1.0, max_batch)); batch *= 2) {
        const double seconds = batch_seconds(setup, batch);
        // A request waits for the batch before its own, and then runs with its own.
        const double needed = batch > 1 ? 2 * seconds : seconds;
        if (needed > limit) break;
        const double rate = busy_limit * batch / seconds;
        if (rate > best) best = rate, batch_used = batch, latency = needed;
    }
    return best;
}

}  // namespace stoker

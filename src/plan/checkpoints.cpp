// What a point loses to checkpoints and failures, and to starting.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/option.h"

namespace stoker {
namespace {

// Whether the software writes checkpoints behind the steps that follow, where the workload does not say.
bool writes_behind(const Context& context, const Point& point) {
    const CheckpointSettings& spec = context.workload.checkpoint;
    if (spec.at.contains("asynchronous") || spec.asynchronous) return spec.asynchronous;
    const Constant* known =
        context.catalog.constant("checkpoint_asynchronous_" + replace_all(lower(point.framework), "-", "_"));
    return known != nullptr && known->value > 0;
}

// Every node writes its part, until the store is the limit.
double write_rate(const Context& context, const Point& point, double nodes) {
    const CheckpointSettings& spec = context.workload.checkpoint;
    if (spec.write_bandwidth_per_second) return spec.write_bandwidth_per_second->v;
    const NodeType& node = *context.choices[static_cast<std::size_t>(point.choice)].node;
    double each = context.settings.checkpoint_bytes_per_s;
    if (node.ethernet_gbps > 0) each = std::min(each, node.ethernet_gbps * 1e9 / 8);
    return std::min(each * nodes, context.settings.checkpoint_store_bytes_per_s);
}

}  // namespace

CheckpointPlan checkpoints_of(const Context& context, const Point& point, Pricing pricing, double evictions_per_hour) {
    const NodeChoice& choice = context.choices[static_cast<std::size_t>(point.choice)];
    const CheckpointSettings& spec = context.workload.checkpoint;
    // Jobs whose nodes work alone lose one node's work at a time: each behaves like a job of one node.
    const double nodes = point.gang ? point.nodes : 1;
    FailureModel failures{.failures_per_gpu_hour = context.settings.failures_per_gpu_hour,
                          .evictions_per_node_hour = pricing == Pricing::spot ? evictions_per_hour : 0,
                          .eviction_gang_exponent = context.settings.eviction_gang_exponent,
                          .wait_after_eviction_s = context.settings.spot_wait_s,
                          .restart_s = context.settings.restart_s,
                          .least_interval_s = context.settings.least_checkpoint_interval_s,
                          .snapshot_bytes_per_s = context.settings.snapshot_bytes_per_s};
    return plan_checkpoints(failures, std::max(1.0, nodes * choice.devices()), nodes, point.checkpoint_bytes,
                            write_rate(context, point, nodes), writes_behind(context, point), point.work_s,
                            spec.every ? spec.every->v : 0);
}

double start_s(const Context& context, const NodeType& node) {
    // A machine that is there already needs no VM made: its processes start, and that is all.
    const bool owned = node.cloud == "this-machine" || node.cloud == "on-prem";
    return owned ? context.settings.local_start_s : context.settings.provision_s;
}

}  // namespace stoker

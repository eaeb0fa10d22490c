#include "deploy/render/pools.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace stoker {
namespace {

Deployment part_of(const Deployment& d, int nodes, int replicas, Pricing pricing) {
    Deployment out = d;
    out.nodes.count = nodes, out.nodes.pricing = pricing;
    out.nodes.kept = 0, out.nodes.one_of_two = true;
    out.serving->replicas = replicas;
    out.ranks.count = out.serving->nodes_per_replica > 1 ? nodes : replicas;
    return out;
}

// Replicas on the nodes that stay.
int kept_replicas(const Deployment& d) {
    const int all = d.serving->replicas;
    return std::clamp(d.serving->nodes_per_replica > 1 ? d.nodes.kept / d.serving->nodes_per_replica
                                                       : d.nodes.kept * std::max(1, d.ranks.per_node),
                      0, all);
}

bool has_two(const Deployment& d) {
    return d.serving && d.nodes.spot() && d.nodes.kept > 0 && d.nodes.kept < d.nodes.count && kept_replicas(d) > 0 &&
           kept_replicas(d) < d.serving->replicas;
}

}  // namespace

std::vector<Deployment> pools_of(const Deployment& d) {
    if (!has_two(d)) return {d};
    const int kept = kept_replicas(d);
    return {part_of(d, d.nodes.kept, kept, Pricing::on_demand),
            part_of(d, d.nodes.count - d.nodes.kept, d.serving->replicas - kept, Pricing::spot)};
}

Deployment elastic_pool(const Deployment& d) {
    return std::move(pools_of(d).back());
}

std::string_view pool_suffix(const Deployment& pool) {
    return pool.nodes.one_of_two && !pool.nodes.spot() ? "-stays" : "";
}

std::string beside_words(const Deployment& d) {
    return has_two(d) ? fmt::format(" beside the {} that stay{}", kept_replicas(d), kept_replicas(d) == 1 ? "s" : "")
                      : std::string();
}

}  // namespace stoker

// A service on spot above replicas that stay (where.on_demand_replicas) has two pools of one kind of machine: on
// demand, and spot. Each is written as the nodes and the replicas of a Deployment of its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "deploy/deployment.h"

namespace stoker {

// Why the check does not ask for a pool that shrinks.
inline constexpr std::string_view kPoolStays =
    "stoker: ignore[NPL003] reason=\"these nodes stay: the service is to answer when those on spot are taken\"";
// What stays, then what may be taken; the deployment itself where all of its nodes are had alike.
std::vector<Deployment> pools_of(const Deployment& deployment);
// The part whose number may follow the load.
Deployment elastic_pool(const Deployment& deployment);
// Of pools_of: behind names of the pool that stays; empty for any other.
std::string_view pool_suffix(const Deployment& pool);
// " beside the 2 that stay"; empty: there are none.
std::string beside_words(const Deployment& deployment);

}  // namespace stoker

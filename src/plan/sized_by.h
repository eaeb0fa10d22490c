// What set the number of replicas of a service, where it was not the work: a limit, or the node that may be lost.
#pragma once

#include <string>
#include <string_view>

#include "plan/plan.h"

namespace stoker {

// "each further token within 60 ms (p95) decides the size: 4 replicas, 2 for the work alone"; nothing where the work is
// what counts.
std::string_view sized_by_limit(const Candidate& candidate);
// Replicas that are left when the nodes that may be lost are gone.
int carrying_replicas(const Candidate& candidate);
// "one replica carries the load, the other is there so that one may be lost"; nothing where no node is spare.
std::string spare_text(const Candidate& candidate, double models);

}  // namespace stoker

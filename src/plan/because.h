// Which constants of the cost model a plan hangs on: each is moved to both ends of its spread, and the chosen
// configuration is estimated again.
#pragma once

#include <vector>

#include "catalog/catalog.h"
#include "plan/plan.h"

namespace stoker {

// Those that move step, latency, memory or cost of the chosen candidate by a thousandth or more, the largest first.
// Empty where the candidate cannot be estimated on its own.
std::vector<ConstantEffect> because(const Plan& plan, const Catalog& catalog, const PlanOptions& options);

}  // namespace stoker

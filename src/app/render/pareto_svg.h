// The Pareto picture of a page: time (or latency) against cost, both logarithmic, drawn once wide and once for a phone.
#pragma once

#include <string>

#include "plan/plan.h"

namespace stoker {

// Empty when there are fewer than two priced plans to set against each other.
std::string pareto_html(const Plan& plan, const Catalog& catalog);

}  // namespace stoker

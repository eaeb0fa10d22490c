// The Pareto picture of a page: time (or latency) against cost, both logarithmic, drawn once wide and once for a phone.
#pragma once

#include <string>

#include "plan/plan.h"

namespace stoker {

// What HTML and SVG take as text: markup is escaped, control characters are dropped.
std::string html_escape(std::string_view text);
// Empty when there are fewer than two priced plans to set against each other.
std::string pareto_html(const Plan& plan, const Catalog& catalog);

}  // namespace stoker

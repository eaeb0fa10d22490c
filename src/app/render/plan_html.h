// A plan as one self-contained HTML page: no script from elsewhere, no font, no image to fetch.
#pragma once

#include <string>

#include "plan/plan.h"

namespace stoker {

std::string plan_html(const Plan& plan, const Catalog& catalog);

}  // namespace stoker

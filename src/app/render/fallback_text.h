// Where to go when the first choice cannot be had, in words.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace stoker {

// "Region: 16 x Standard_ND96asr_v4 in westeurope, spot: $8,995, 4.7 days; needs 1,536 vCPUs of ... quota"
std::vector<std::string> fallback_lines(const Plan& plan, const Catalog& catalog);

}  // namespace stoker

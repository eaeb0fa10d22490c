#pragma once

#include "plan/plan.h"

namespace stoker {

bool by_savings_plan(const Provenance& price);  // reserved as dollars an hour, not as a size

}  // namespace stoker

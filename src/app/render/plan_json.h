// A plan as data, and the schema of that data. Units stand in the names of the members.
#pragma once

#include "base/json.h"
#include "plan/plan.h"

namespace stoker {

Json plan_json(const Plan& plan, const Catalog& catalog);
Json candidate_json(const Candidate& candidate, const Workload& workload, const Catalog& catalog);
Json plan_schema();  // JSON Schema draft 2020-12 of plan_json

}  // namespace stoker

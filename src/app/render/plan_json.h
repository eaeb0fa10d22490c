// A plan as data, and the schema of that data. Units stand in the names of the members.
#pragma once

#include <string_view>

#include "base/json.h"
#include "plan/plan.h"

namespace stoker {

// `file`: the workload file as it was typed, for the commands of the answer.
Json plan_json(const Plan& plan, const Catalog& catalog, std::string_view file);
Json candidate_json(const Candidate& candidate, const Workload& workload, const Catalog& catalog);
Json plan_schema();  // JSON Schema draft 2020-12 of plan_json

}  // namespace stoker

// Several stages on one screen: each with its machines, time and money, and what they are together.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/style.h"
#include "plan/stages.h"

namespace stoker {

// `file`: as it was typed, for the commands.
std::string render_stages(const std::vector<PlannedStage>& stages, const Catalog& catalog, std::string_view title,
                          std::string_view file, const Style& style);
// {"schema": "stoker.stages/1", "stages": [{"name", "after", "starts_hours", "plan"}], "total": {...}}
Json stages_json(const std::vector<PlannedStage>& stages, const Catalog& catalog, std::string_view file);

}  // namespace stoker

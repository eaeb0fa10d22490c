// Files that tools wrote, as stoker doctor --read shows them.
#pragma once

#include <string>

#include "base/json.h"
#include "base/style.h"
#include "readings/tool_output.h"

namespace stoker {

// Each file with its notes in the order of its lines, then the conclusion and what stays open.
std::string tool_text(const ToolReport& report, const Style& style);
Json tool_json_answer(const ToolReport& report);

}  // namespace stoker

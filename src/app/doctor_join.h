// What a log says, beside the line of the script that made it so, what the network should carry, and what it costs
// while it does not.
#pragma once

#include <string>
#include <vector>

#include "readings/tool_output.h"

namespace stoker {

// A text that is no tool's output but a script or a manifest, as `stoker check` knows them.
bool looks_like_script(const std::string& name, const std::string& text);

struct ScriptReading {
    ToolReading reading;     // what it does to the network between nodes
    std::int64_t nodes = 0;  // that it asks for; 0: it does not say
};
ScriptReading read_script(const ToolFile& file, const std::string& today);

// Adds the scripts to the report, and the sentences of `together`.
void join_scripts(ToolReport& report, std::vector<ScriptReading> scripts, const ToolContext& context);

}  // namespace stoker

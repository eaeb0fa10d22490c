// Figures of a GPU held against where it is near its limit (data/readings/limits.tsv), and what an Xid means
// (data/readings/xid.tsv).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "readings/tool_reader.h"

namespace stoker {

struct XidMeaning {
    std::string_view what, action, source;
    bool fails = false;
};
// nullopt: nothing is published about this code.
std::optional<XidMeaning> xid_meaning(int code);

// "gpu-temperature" in degrees Celsius, "gpu-memory-used" as a share. Nothing is told below the first limit.
void judge_limit(ReadingBuilder& out, std::string_view name, const std::string& gpu, double value, ToolPlace place);
// One Xid of `gpu`; a line that comes again is counted.
void judge_xid(ReadingBuilder& out, int code, const std::string& gpu, ToolPlace place);

}  // namespace stoker

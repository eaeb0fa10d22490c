// Nodes as people read them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/style.h"
#include "server/views_nodes.h"

namespace stoker {

// One row a node, and below them why some take less than everything.
std::string nodes_text(const api::NodeList& list, const Style& style, std::int64_t now_us);
// Everything about one: what it has, what its last check found, whom it held up, what can be done.
std::string node_text(const api::NodeView& node, const Style& style, std::int64_t now_us);
// "passed 9 of 9 parts", or what was not passed, a line each.
std::string check_result_text(const api::NodeCheckView& check, const Style& style);

// "38 %"; a dash where nobody told it.
std::string share_text(const std::optional<double>& share);
// "6 busy, 2 allocated idle".
std::string used_as_text(const std::map<std::string, std::int64_t>& boards);
// Empty where the two clocks agree as well as can be seen.
std::string clock_skew_text(double ahead_s);

}  // namespace stoker

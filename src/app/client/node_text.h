// Nodes as people read them.
#pragma once

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

}  // namespace stoker

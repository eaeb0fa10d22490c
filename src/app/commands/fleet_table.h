// The GPUs of all nodes whose agents tell a server of them, as `stoker top --fleet` shows them.
#pragma once

#include <string>

#include "base/style.h"
#include "server/views_gpus.h"

namespace stoker {

// A row a node: those that are not well or silent first, and of the others as many as a screen takes.
std::string fleet_table(const api::FleetGpus& fleet, const Style& style);
// One of them, board by board.
std::string fleet_node_text(const api::NodeGpusView& node, const Style& style);

}  // namespace stoker

// Nodes of the state as the API shows them.
#pragma once

#include "run/state/state.h"
#include "server/views_nodes.h"

namespace stoker::api {

NodeList view_of_nodes(const State& state, const HealthGate& gate = {}, std::int64_t now_us = 0);

}  // namespace stoker::api

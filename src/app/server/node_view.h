// Nodes of the state as the API shows them.
#pragma once

#include "app/server/views_nodes.h"
#include "run/state.h"

namespace stoker::api {

NodeList view_of_nodes(const State& state, const HealthGate& gate = {}, std::int64_t now_us = 0);

}  // namespace stoker::api

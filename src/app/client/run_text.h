// Runs as people read them.
#pragma once

#include <string>

#include "app/server/views.h"
#include "app/session.h"

namespace stoker {

std::string ago_text(const std::string& rfc3339_time, std::int64_t now_us);  // "3 min"; "-" for an empty time
// Everything about a run: state, why, attempts, ranks, checkpoints, prediction against what was measured, cost.
std::string describe_text(const api::RunView& view, const Style& style, std::int64_t now_us);
// One line at the end of a run: "succeeded in 3 min 30 s; step 231 ms (212 predicted); memory 1.0 GiB (1.1)".
std::string outcome_text(const api::RunView& view, std::int64_t now_us);
std::string money_text(std::int64_t microusd);

}  // namespace stoker

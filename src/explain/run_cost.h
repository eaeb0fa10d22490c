// What a run was given and when, and what that costs by the price book.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "explain/explained.h"
#include "govern/price_book.h"
#include "govern/usage.h"
#include "run/state/run_intervals.h"
#include "run/state/state.h"

namespace stoker {

// So far, with its steps where it is a graph; none: the book is empty.
std::optional<std::int64_t> cost_of_run(const State& state, const Run& run, const PriceBook& prices,
                                        std::int64_t now_us);

// Copied under the lock of Engine::read(), and judged without it. not_found: there is no such run.
Result<RunAsItStands> run_as_it_stands(const State& state, RunId run, const PriceBook& prices, std::int64_t now_us);

}  // namespace stoker

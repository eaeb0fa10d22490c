// What a run holds and held, as intervals that have a price; and the next piece of it that is to be charged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "govern/price_book.h"
#include "govern/usage.h"
#include "run/state/state.h"

namespace stoker {

// One interval for each rank of each attempt and kind of resource.
std::vector<UsageInterval> intervals_of(const State& state, const Run& run, const PriceBook& prices,
                                        std::int64_t now_us);
// Of ranks in these places; equal ones are one.
std::vector<UsageInterval> intervals_at(const State& state, const RunSpec& spec, const std::vector<RankPlace>& places,
                                        const PriceBook& prices, std::int64_t from_us, std::int64_t to_us,
                                        std::int64_t markup_bp = 0);
// What the organisation of the project pays on top, in hundredths of a percent.
std::int64_t markup_of(const State& state, ProjectId project, const PriceBook& prices);
// What an hour of all of them costs now, in micro-dollars.
std::int64_t rate_of(const std::vector<UsageInterval>& intervals, const PriceBook& prices, std::int64_t now_us);

// The next piece of usage that is not written down yet, up to `until_us`, and to the end of a month at most; nothing:
// there is none. Pieces add up to the whole to the micro-dollar, however they are cut. `book`: names the prices.
std::optional<UsageCharged> next_charge(const State& state, const Run& run, const Attempt& attempt,
                                        const PriceBook& prices, const std::string& book, std::int64_t until_us);

}  // namespace stoker

// How often a run is submitted again: an interval ("6h"), or five fields of cron in UTC ("0 2 * * 1-5"). Pure: the same
// words and the same moment give the same next time on every machine.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stoker {

inline constexpr std::int64_t kLeastRepeatS = 10, kMostRepeatS = std::int64_t{366} * 86'400;
// A row of runs that was away for longer says so, and no number.
inline constexpr std::int64_t kMostMissed = 1000;

// An interval, or the values that each field of cron admits, a bit each.
struct RepeatTimes {
    std::int64_t interval_us = 0;  // 0: cron
    std::uint64_t minutes = 0;     // bits 0 to 59
    std::uint32_t hours = 0, days = 0, months = 0, weekdays = 0;
    bool any_day = false, any_weekday = false;  // `*` was written: the other of the two decides alone
};

// invalid: it is neither, or no day is ever one of these ("0 0 30 2 *").
Result<RepeatTimes> parse_repeat(std::string_view words);
// The first time after `after_us`; intervals count from `from_us`.
std::int64_t next_time(const RepeatTimes& times, std::int64_t from_us, std::int64_t after_us);
// How many such times lie after `from_us` and before `next_us`, at most kMostMissed.
std::int64_t times_between(const RepeatTimes& times, std::int64_t from_us, std::int64_t next_us);
// "every 6h", "at 0 2 * * 1-5 (cron, UTC)"
std::string repeat_in_words(std::string_view words);

}  // namespace stoker

#include "run/spec/repeat.h"

#include <gtest/gtest.h>

#include "base/api_time.h"

namespace stoker {
namespace {

std::string next_of(std::string_view words, std::string_view after, std::string_view from = "2026-01-01T00:00:00Z") {
    const auto times = parse_repeat(words);
    if (!times) return times.error().message();
    return rfc3339(next_time(*times, *parse_rfc3339(from), *parse_rfc3339(after))).substr(0, 19) + "Z";
}

// A nightly run that starts on the wrong day, or twice in an hour, trains on the wrong data.
TEST(Repeat, TheNextTimeIsThatOfCron) {
    EXPECT_EQ(next_of("0 2 * * 1-5", "2026-11-20T02:00:00Z"), "2026-11-23T02:00:00Z");  // a Friday, then Monday
    EXPECT_EQ(next_of("*/15 9-17 * * *", "2026-11-20T17:45:00Z"), "2026-11-21T09:00:00Z");
    EXPECT_EQ(next_of("0 0 29 2 *", "2026-11-20T00:00:00Z"), "2028-02-29T00:00:00Z");
    EXPECT_EQ(next_of("0 0 13 * fri", "2026-11-20T00:00:00Z"), "2026-11-27T00:00:00Z");  // either, as cron has it
    EXPECT_EQ(next_of("30 6 1,15 jan-mar *", "2026-03-15T06:30:00Z"), "2027-01-01T06:30:00Z");
    EXPECT_EQ(next_of("0 12 * * 7", "2026-11-20T00:00:00Z"), "2026-11-22T12:00:00Z");  // 7 is Sunday, as 0
    EXPECT_EQ(next_of("@daily", "2026-12-31T23:59:59Z"), "2027-01-01T00:00:00Z");
}

// Intervals keep their beat: a run that took longer does not shift those after it.
TEST(Repeat, AnIntervalCountsFromTheFirst) {
    EXPECT_EQ(next_of("6h", "2026-01-01T13:10:00Z"), "2026-01-01T18:00:00Z");
    EXPECT_EQ(next_of("90s", "2026-01-01T00:01:30Z"), "2026-01-01T00:03:00Z");
    const auto hourly = *parse_repeat("1h");
    EXPECT_EQ(times_between(hourly, 0, std::int64_t{5} * 3600 * 1'000'000), 4);
    EXPECT_EQ(times_between(*parse_repeat("* * * * *"), 0, std::int64_t{86'400} * 30 * 1'000'000), kMostMissed);
}

// What cannot be meant is refused where it is written, not after a year of waiting.
TEST(Repeat, WhatIsNoTimeIsRefused) {
    for (const char* words : {"", "0", "5s", "400d", "* * * *", "60 * * * *", "0 24 * * *", "0 0 0 * *", "0 0 31 2 *",
                              "*/0 * * * *", "5-1 * * * *", "0 0 * * mon-", "a b c d e", "* * * * * *", "@noon"})
        EXPECT_FALSE(parse_repeat(words)) << words;
}

}  // namespace
}  // namespace stoker

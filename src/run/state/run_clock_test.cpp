#include "run/state/run_clock.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

constexpr std::int64_t kHourUs = 3600 * std::int64_t{1'000'000};

// A machine that corrects its clock by an hour must not end every lease at once, nor keep them an hour longer.
TEST(RunClockTest, FollowsTheMonotonicClockWhateverTheWallClockDoes) {
    const RunClock clock(100 * kHourUs, 5 * kHourUs, 0);
    EXPECT_EQ(clock.now_us(5 * kHourUs), 100 * kHourUs);
    EXPECT_EQ(clock.now_us(6 * kHourUs), 101 * kHourUs);
    EXPECT_EQ(clock.jump_us(102 * kHourUs, 6 * kHourUs), kHourUs);
    EXPECT_EQ(clock.jump_us(100 * kHourUs, 6 * kHourUs), -kHourUs);
    EXPECT_EQ(clock.jump_us(101 * kHourUs, 6 * kHourUs), 0);
}

// Set back while the server was down: records may not go back.
TEST(RunClockTest, BeginsNoEarlierThanTheLastRecord) {
    EXPECT_EQ(RunClock(100 * kHourUs, 0, 101 * kHourUs).now_us(0), 101 * kHourUs);
}

// Set back between two servers on one boot: what runs goes on being counted by the clock that nobody sets.
TEST(RunClockTest, ClockSetBackBetweenTwoServersTakesNoTimeFromAnybody) {
    const ClockMark before{.boot_id = "b", .monotonic_us = 5 * kHourUs, .at_us = 101 * kHourUs};
    const RunClock clock(100 * kHourUs + 10, 7 * kHourUs, 101 * kHourUs + 1, before);
    EXPECT_EQ(clock.now_us(7 * kHourUs), 103 * kHourUs);
    EXPECT_EQ(clock.at_us(6 * kHourUs), 102 * kHourUs);  // while no server lived
    EXPECT_EQ(clock.at_us(8 * kHourUs), 104 * kHourUs);
    // Set forward: the wall clock is taken, and what was before stays where it was.
    const RunClock later(200 * kHourUs, 7 * kHourUs, 101 * kHourUs + 1, before);
    EXPECT_EQ(later.now_us(7 * kHourUs), 200 * kHourUs);
    EXPECT_EQ(later.at_us(6 * kHourUs), 102 * kHourUs);
    // A journal from before there were marks.
    EXPECT_EQ(RunClock(100 * kHourUs, 7 * kHourUs, 0).at_us(6 * kHourUs), 99 * kHourUs);
}

}  // namespace
}  // namespace stoker

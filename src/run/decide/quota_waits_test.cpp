#include "run/decide/quota_waits.h"

#include <gmock/gmock.h>

#include "run/state/state_testing.h"

namespace stoker {
namespace {

using run_testing::StateWorld;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t kHour = 3600 * kSecondUs;

class QuotaWaits : public ::testing::Test {
protected:
    QuotaWaits() {
        world.node("a", 8);
        world.put(QuotaSet{{.scope = "p-1", .resource = "gpu", .limit_milli = 4000}});
    }
    std::vector<QuotaWait> waits() const { return quota_waits(world.state, {begin, world.now_us}, world.now_us); }
    StateWorld world;
    std::int64_t begin = world.now_us;
};

// GPUs stand idle beside work that a quota keeps away, and nobody is told what that costs.
TEST_F(QuotaWaits, AreFromTheSubmissionUntilThereIsRoomUnderTheLimit) {
    const RunId first = world.submit(StateWorld::spec(1, 3));
    world.start(first, "a", 0b111);
    world.now_us += kHour;
    const RunId second = world.submit(StateWorld::spec(1, 2));
    world.now_us += 2 * kHour;
    EXPECT_THAT(waits(), ElementsAre(QuotaWait{begin + kHour, begin + 3 * kHour, 2000, 1000}));
    world.end(first);
    world.now_us += kHour;
    EXPECT_THAT(waits(), ElementsAre(QuotaWait{begin + kHour, begin + 3 * kHour, 2000, 1000}))
        << "after that it waits for something else";
    world.start(second, "a", 0b11);
    world.end(second);
    world.now_us += kHour;
    EXPECT_THAT(waits(), ElementsAre(QuotaWait{begin + kHour, begin + 3 * kHour, 2000, 1000}))
        << "the past does not change when it runs";
}

// What waits for room, for its time, for another run or for a person would be blamed on the quota.
TEST_F(QuotaWaits, OtherWaitsAreNone) {
    EXPECT_THAT(waits(), IsEmpty());
    const RunId large = world.submit(StateWorld::spec(1, 4));
    RunSpec later = StateWorld::spec(1, 8);
    later.begin_at_us = begin + 10 * kHour;
    world.submit(later);
    const RunId held = world.submit(StateWorld::spec(1, 8));
    world.put(RunHeld{held, true});
    const RunId after{world.state.runs_made + 1};
    world.put(RunSubmitted{
        .run = after, .spec = StateWorld::spec(1, 8), .key = "", .parent = {}, .step = "", .needs = {large}});
    world.now_us += kHour;
    EXPECT_THAT(waits(), IsEmpty()) << "four fit under the limit of four: it waits for a place";
}

// More than a limit ever allows waits for it from its first moment, whatever runs.
TEST_F(QuotaWaits, WhatNeverFitsWaitsForItsQuota) {
    world.submit(StateWorld::spec(1, 5));
    world.now_us += kHour;
    EXPECT_THAT(waits(), ElementsAre(QuotaWait{begin, begin + kHour, 5000, 1000}));
}

}  // namespace
}  // namespace stoker

#include "run/decide/stop_order.h"

#include <gmock/gmock.h>

namespace stoker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t kAnHour = std::int64_t{3600} * 1'000'000, kDollar = 1'000'000;

// Guaranteed and spot work at a dollar an hour each, a minute of notice, a limit of ten dollars, an hour of head start.
BudgetLoad load(double used) {
    return {.used_micro = static_cast<std::int64_t>(used * kDollar),
            .rate_micro_per_h = 2 * kDollar,
            .notice_us = kAnHour / 60};
}
StopStanding standing(RunClass run_class, int priority = 0) {
    RunSpec spec;
    spec.run_class = run_class;
    spec.priority = priority;
    return stop_standing_of(spec);
}
const StandingRates kBoth = {{standing(RunClass::guaranteed), kDollar}, {standing(RunClass::spot), kDollar}};

TEST(StopOrder, SpotGoesBeforeWhatIsGuaranteedAndTheLowerPriorityFirst) {
    EXPECT_LT(standing(RunClass::spot, 100), standing(RunClass::interactive, -100));
    EXPECT_LT(standing(RunClass::interactive), standing(RunClass::guaranteed));
    EXPECT_LT(standing(RunClass::spot, 1), standing(RunClass::spot, 2));
}

// A training of a week is stopped together with somebody's test runs, a moment before the month ends.
TEST(StopOrder, WhatStandsHigherHasItsHeadStart) {
    // The lines: 10 - 2/60 for what is guaranteed, a dollar less for spot.
    EXPECT_THAT(stop_order(kBoth, load(8.9), 10 * kDollar, kAnHour, 0).now, IsEmpty());
    EXPECT_THAT(stop_order(kBoth, load(8.97), 10 * kDollar, kAnHour, 0).now, ElementsAre(standing(RunClass::spot)));
    EXPECT_THAT(stop_order(kBoth, load(9.9), 10 * kDollar, kAnHour, 0).now, ElementsAre(standing(RunClass::spot)));
    EXPECT_EQ(stop_order(kBoth, load(9.97), 10 * kDollar, kAnHour, 0).now.size(), 2U);
    // 0.0666 dollars at two dollars an hour: two minutes.
    EXPECT_NEAR(static_cast<double>(stop_order(kBoth, load(8.9), 10 * kDollar, kAnHour, 0).next_us), kAnHour / 30.0,
                1e6);
}

// Nobody who says nothing of an order finds another one than before.
TEST(StopOrder, WithoutAHeadStartAllGoAtOnce) {
    EXPECT_THAT(stop_order(kBoth, load(9.9), 10 * kDollar, 0, 0).now, IsEmpty());
    EXPECT_EQ(stop_order(kBoth, load(9.97), 10 * kDollar, 0, 0).now.size(), 2U);
    EXPECT_THAT(stop_order({}, {}, 10 * kDollar, kAnHour, 0).now, IsEmpty());
}

}  // namespace
}  // namespace stoker

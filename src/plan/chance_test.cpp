// A plan that "meets" a deadline with a coin's chance misses it half the time: the limits are probabilities.
#include "plan/chance.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

// The ends of an 80 % interval are its 10th and 90th percentile, on both sides of an uneven middle.
TEST(Chance, EndsOfTheIntervalAreTenAndNinetyPercent) {
    const Range range{8, 10, 15};
    EXPECT_NEAR(chance_below(range, 8), 0.1, 1e-9);
    EXPECT_NEAR(chance_below(range, 10), 0.5, 1e-9);
    EXPECT_NEAR(chance_below(range, 15), 0.9, 1e-9);
    EXPECT_NEAR(at_quantile(range, normal_quantile(0.9)), 15, 1e-6);
    EXPECT_NEAR(at_quantile(range, normal_quantile(0.1)), 8, 1e-6);
}

// What is known exactly either keeps a limit or does not.
TEST(Chance, ACertainValueIsCertain) {
    EXPECT_EQ(chance_below({5, 5, 5}, 5), 1);
    EXPECT_EQ(chance_below({5, 5, 5}, 4.9), 0);
    EXPECT_EQ(chance_below({0, 0, 0}, 1), 1);
    EXPECT_EQ(at_quantile({5, 5, 5}, 3), 5);
}

// Two independent spreads add in squares: less than both ends at once, more than either.
TEST(Chance, IndependentSpreadsCombine) {
    const Range both = combined({0.8, 1, 1.5}, {0.9, 1, 1.2});
    EXPECT_GT(both.high, 1.5);
    EXPECT_LT(both.high, 1.5 * 1.2);
    EXPECT_LT(both.low, 0.8);
    EXPECT_NEAR(combined({0.8, 1, 1.5}, {1, 1, 1}).high, 1.5, 1e-12);
}

}  // namespace
}  // namespace stoker

// An interval that is narrower than its table says promises too much.
#include "plan/intervals.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stoker {
namespace {

TEST(IntervalsTest, EveryAssumptionWidens) {
    const auto table = Intervals::read("metric\tlow\thigh\tper_assumption\nstep_s\t0.5\t2\t0.5\n", "intervals.tsv");
    ASSERT_TRUE(table.ok());
    const Range none = table->factors("step_s", {1, 1, 1}, 0, 1), two = table->factors("step_s", {1, 1, 1}, 2, 1);
    EXPECT_DOUBLE_EQ(none.low, 0.5);
    EXPECT_DOUBLE_EQ(none.high, 2);
    EXPECT_DOUBLE_EQ(two.low, 0.25);
    EXPECT_DOUBLE_EQ(two.high, 4);
    EXPECT_DOUBLE_EQ(table->factors("step_s", {0.4, 1, 3}, 0, 1).high, 3) << "the model's own, where it is wider";
    EXPECT_DOUBLE_EQ(table->factors("another metric", {0.9, 1, 1.2}, 0, 1).high, 1.2)
        << "the model's own, where it has one";
}

// What nobody measured anything like is told with a wider interval, in plans and for published rows alike.
TEST(IntervalsTest, GrowsWhereNothingWasMeasuredNear) {
    const auto table = Intervals::read("metric\tlow\thigh\tper_assumption\nstep_s\t0.5\t2\t0.5\n", "intervals.tsv");
    ASSERT_TRUE(table.ok());
    const Range far = table->factors("step_s", {1, 1, 1}, 0, 1.5);
    EXPECT_DOUBLE_EQ(far.low, std::pow(0.5, 1.5));
    EXPECT_DOUBLE_EQ(far.high, std::pow(2, 1.5));
    EXPECT_DOUBLE_EQ(table->factors("step_s", {0.3, 1, 4}, 0, 1.5).high, 4) << "the model's own has grown already";
}

TEST(IntervalsTest, FactorsOnTheWrongSideAreRefused) {
    EXPECT_FALSE(Intervals::read("metric\tlow\thigh\tper_assumption\nstep_s\t1.5\t2\t0\n", "intervals.tsv").ok());
    EXPECT_FALSE(Intervals::read("metric\tlow\thigh\tper_assumption\nstep_s\t0.5\t0.9\t0\n", "intervals.tsv").ok());
    EXPECT_TRUE(Intervals::embedded().ok());
}

}  // namespace
}  // namespace stoker

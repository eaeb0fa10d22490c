// An interval that is narrower than what sources left out of the fit showed promises what nobody has.
#include <gtest/gtest.h>

#include <cmath>

#include "sizing/training.h"

namespace stoker {
namespace {

TEST(StepInterval, IsNoNarrowerThanWhatSourcesLeftOutShowed) {
    TrainingSetup sure;
    sure.device.sigma = sure.sigma_framework = 0.01;
    sure.step_low = 0.84;
    sure.step_high = 1.4;
    TrainingEstimate estimate;
    estimate.step_s = 1;
    const Range range = step_interval(sure, ParallelLayout{}, estimate);
    EXPECT_DOUBLE_EQ(range.low, 0.84);
    EXPECT_DOUBLE_EQ(range.high, 1.4);
    TrainingSetup unsure = sure;
    unsure.device.sigma = 0.5;
    EXPECT_LT(step_interval(unsure, ParallelLayout{}, estimate).low, 0.84);
    EXPECT_GT(step_interval(unsure, ParallelLayout{}, estimate).high, 1.4);
}

// What lies far from every measured run is told with a wider interval on both sides.
TEST(StepInterval, GrowsWithTheDistanceFromMeasuredRuns) {
    TrainingSetup setup;
    setup.step_low = 0.84;
    setup.step_high = 1.4;
    TrainingEstimate estimate;
    estimate.step_s = 1;
    const Range near = step_interval(setup, ParallelLayout{}, estimate, 1);
    const Range far = step_interval(setup, ParallelLayout{}, estimate, 1.5);
    EXPECT_NEAR(far.low, std::pow(near.low, 1.5), 1e-12);
    EXPECT_NEAR(far.high, std::pow(near.high, 1.5), 1e-12);
    setup.step_growth = 1.5;
    EXPECT_DOUBLE_EQ(step_interval(setup, ParallelLayout{}, estimate).high, far.high);
}

// The low end of a plan's hours is what somebody hopes for: no more than anybody has published.
TEST(StepInterval, PromisesNoRecord) {
    TrainingSetup setup;
    setup.step_low = 0.84;
    setup.step_high = 1.4;
    setup.mfu_most = 0.464;
    TrainingEstimate estimate;
    estimate.step_s = 1;
    estimate.mfu = 0.43;
    EXPECT_NEAR(step_interval(setup, ParallelLayout{}, estimate).low, 0.43 / 0.464, 1e-12);
    estimate.mfu = 0.5;  // the middle is a record already
    EXPECT_DOUBLE_EQ(step_interval(setup, ParallelLayout{}, estimate).low, 1);
    estimate.mfu = 0.2;
    EXPECT_LT(step_interval(setup, ParallelLayout{}, estimate).low, 0.85);
}

}  // namespace
}  // namespace stoker

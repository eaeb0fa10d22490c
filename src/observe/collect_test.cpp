// Who asks after ten seconds is not told the time of the first steps, and who asks of a run that hangs is told since
// when.
#include "observe/collect.h"

#include <gtest/gtest.h>

#include "observe/diagnosis.h"

namespace stoker {
namespace {

RankSeries series(int rank, const char* metric, std::vector<double> values, std::uint32_t count = 5,
                  std::int64_t from = 1000) {
    RankSeries out{.rank = rank, .metric = metric, .seconds = 1, .points = {}};
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto value = static_cast<float>(values[i]);
        if (value < 0) continue;  // nothing in this second
        out.points.push_back({.at_s = from + static_cast<std::int64_t>(i),
                              .min = value / 2,
                              .mean = value,
                              .max = value * 2,
                              .count = count});
    }
    return out;
}

constexpr RunTimes kTimes{.from_s = 1000, .to_s = 1020, .expects_steps = true};

TEST(CollectEvidence, FirstStepsAreWarmUp) {
    const RunEvidence evidence =
        collect_evidence({series(0, "step_s", {2, 0.9, 0.2, 0.21, 0.19, 0.2, 0.2, 0.2}),
                          series(0, "cpu", {0.1, 0.1, 1, 1, 1, 1, 1, 1, 0.5, 0.5}, 1),
                          series(0, "allreduce_s", {0.1, 0.1, 0.04, 0.04, 0.04, 0.04, 0.04, 0.04})},
                         {}, kTimes);
    ASSERT_TRUE(evidence.steady);
    EXPECT_EQ(evidence.steady->warm_up_steps, 10);
    EXPECT_NEAR(evidence.steady->warm_up_s, 14.5, 1e-5);
    EXPECT_EQ(evidence.steady->steps, 30);
    EXPECT_NEAR(*evidence.step_s(), 0.2, 1e-6);
    EXPECT_NEAR(*evidence.mean("cpu"), 1, 1e-6);  // neither the start nor what came after the last step
    EXPECT_NEAR(*evidence.mean("allreduce_min_s"), 0.02, 1e-6);
    EXPECT_NEAR(*evidence.silent_s, 12, 1e-6);
    EXPECT_NEAR(*evidence.ranks[0].after("cpu"), 0.5, 1e-6);
}

// A run that hangs soon: what threads wait is looked at every few seconds, and a look at the hang tells nothing of
// steps.
TEST(CollectEvidence, WaitingSinceTheLastStepIsNoneOfSteps) {
    const RunEvidence hangs = collect_evidence({series(0, "step_s", {0.2, 0.2}), series(0, "run_wait", {0.4}, 1, 1008),
                                                series(0, "torch_threads", {4}, 1, 1008)},
                                               {}, kTimes);
    EXPECT_FALSE(hangs.mean("run_wait"));
    EXPECT_NEAR(*hangs.ranks[0].after("run_wait"), 0.4, 1e-6);
    EXPECT_EQ(hangs.mean("torch_threads"), 4);  // what the program is stays true
}

TEST(CollectEvidence, AFewStepsAreNoMeasure) {
    const RunEvidence few = collect_evidence({series(0, "step_s", {1, 0.9}, 2)}, {}, kTimes);
    EXPECT_FALSE(few.steady);
    EXPECT_FALSE(few.step_s());
    EXPECT_EQ(few.ranks.at(0).steps, 4);
    EXPECT_TRUE(diagnose(few).found.empty());
    EXPECT_TRUE(collect_evidence({}, {}, kTimes).ranks.empty());
    // All alike: the first second is left out all the same, and no more than that.
    const RunEvidence even = collect_evidence({series(0, "step_s", {0.2, 0.2, 0.2, 0.2, 0.2})}, {}, kTimes);
    EXPECT_EQ(even.steady->warm_up_steps, 5);
    EXPECT_EQ(even.steady->steps, 20);
}

TEST(CollectEvidence, WhatIsToldOnceCountsForTheWholeRun) {
    const RunEvidence evidence = collect_evidence(
        {series(1, "step_s", {0.2, 0.2, 0.2, 0.2, 0.2}), series(1, "param_bits", {32}, 1), series(0, "cpu", {1, 1, 1})},
        {}, {.from_s = 1000, .to_s = 1005, .expects_steps = false});
    EXPECT_EQ(evidence.mean("param_bits"), 32);
    EXPECT_FALSE(evidence.silent_s);
    ASSERT_EQ(evidence.ranks.size(), 2u);
    EXPECT_EQ(evidence.ranks[0].rank, 0);
}

// A bar is drawn ten times a second: that many lines, and as many steps as their numbers say.
TEST(CollectEvidence, NumbersSayHowManyStepsThereWere) {
    RankSeries steps{.rank = 0, .metric = "step_s", .points = {}}, numbers{.rank = 0, .metric = "step", .points = {}};
    for (int second = 0; second < 10; ++second) {
        steps.points.push_back({.at_s = 100 + second, .min = 0.01F, .mean = 0.01F, .max = 0.01F, .count = 10});
        const auto last = static_cast<float>(100 * (second + 1));
        numbers.points.push_back({.at_s = 100 + second, .min = last, .mean = last, .max = last, .count = 1});
    }
    const RunEvidence evidence = collect_evidence({steps, numbers}, {}, {.from_s = 100, .to_s = 110});
    ASSERT_TRUE(evidence.steady);
    EXPECT_EQ(evidence.steady->steps, 900);
}

}  // namespace
}  // namespace stoker

// Breaks for whoever calibrated a place: its plans have to follow the factors, and those of other places may not.
#include "plan/calibrated.h"

#include <gtest/gtest.h>

#include "plan/testing.h"

namespace stoker {
namespace {

Point point() {
    Point p;
    p.work_s = 100;
    p.prediction.seconds[static_cast<std::size_t>(TimeTerm::matmul)] = 1;
    p.prediction.seconds[static_cast<std::size_t>(TimeTerm::gradient_comm)] = 0.5;
    p.prediction.step_s = {1.2, 1.5, 2};
    p.prediction.memory_bytes = {1e9, 2e9, 3e9};
    p.prediction.bytes[static_cast<std::size_t>(MemoryTerm::framework)] = 5e8;
    p.prediction.bytes[static_cast<std::size_t>(MemoryTerm::activations)] = 2e8;
    p.prediction.mfu = 0.6, p.prediction.tokens_per_s = 300;
    return p;
}

TEST(Calibrated, FollowsTheFactorsOfItsOwnPlaceOnly) {
    const Workload workload;
    const Catalog catalog;
    Calibration learnt{.points = 5};
    learnt.step = {.factor = {2, 1, 3}, .covariance = {}, .spread = 0.05, .freedom = 5};
    learnt.memory = {.factor = {1.1, 2}, .covariance = {}, .spread = 0.05, .freedom = 5};
    const PlanOptions options{.calibrations = {{"this-machine", learnt}}};
    const Context context{.workload = workload, .catalog = catalog, .options = options};

    Point elsewhere = point();
    NodeType azure;
    azure.cloud = "azure";
    calibrate(context, azure, elsewhere);
    EXPECT_EQ(elsewhere.work_s, 100);
    EXPECT_TRUE(elsewhere.notes.empty());

    Point here = point();
    NodeType mine;
    mine.cloud = "this-machine";
    calibrate(context, mine, here);
    EXPECT_DOUBLE_EQ(here.prediction.step_s.mid, 2 * 1 + 3 * 0.5);
    double terms = 0;
    for (const double term : here.prediction.seconds) terms += term;
    EXPECT_DOUBLE_EQ(terms, here.prediction.step_s.mid);
    EXPECT_DOUBLE_EQ(here.work_s, 100 * 3.5 / 1.5);
    EXPECT_NEAR(here.prediction.tokens_per_s, 300 * 1.5 / 3.5, 1e-9);
    EXPECT_LT(here.prediction.step_s.low, here.prediction.step_s.mid);
    EXPECT_NEAR(here.prediction.memory_bytes.mid, 1.1 * 1.8e9 + 2 * 2e8, 1);
    EXPECT_NEAR(here.prediction.bytes[static_cast<std::size_t>(MemoryTerm::activations)], 4e8, 1);
    EXPECT_NEAR(here.prediction.bytes[static_cast<std::size_t>(MemoryTerm::framework)], 5e8 + 1.8e8, 1);
    ASSERT_EQ(here.notes.size(), 1u);
}

}  // namespace
}  // namespace stoker

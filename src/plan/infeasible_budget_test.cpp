// An answer of no comes as soon as a plan would: what no fleet can bring within the budget is not simulated again for
// each way out.
#include <gtest/gtest.h>

#include "plan/pipeline.h"
#include "plan/testing.h"

namespace stoker {
namespace {

Workload asked_for(std::string_view budget) {
    return testing::workload(
        "kind: inference\nmodel: llama-3-8b\ntraffic: {requests_per_second: 20, prompt_tokens: 1000, output_tokens: "
        "300}\nobjective: {budget: " +
        std::string(budget) + "}\nwhere: {regions: [eastus]}\n");
}

TEST(InfeasibleBudget, TheWaysOutOfAHopelessBudgetCostNoSimulation) {
    const Workload asked = asked_for("$50");
    const PlanOptions options = testing::quick();
    const Context context = make_context(asked, testing::catalog(), options);
    const auto relaxed = run_search(context, {.quick = true});
    ASSERT_TRUE(relaxed.ok());
    EXPECT_EQ(relaxed->simulated, 0);
    const auto whole = run_search(context, {});
    ASSERT_TRUE(whole.ok());
    EXPECT_GT(whole->simulated, 0);  // what comes nearest has to be known
}

TEST(InfeasibleBudget, WhatMayBeWithinIsSimulatedAllTheSame) {
    const Workload asked = asked_for("$1M");
    const PlanOptions options = testing::quick();
    const Context context = make_context(asked, testing::catalog(), options);
    const auto relaxed = run_search(context, {.quick = true});
    ASSERT_TRUE(relaxed.ok());
    EXPECT_GT(relaxed->simulated, 0);
    EXPECT_FALSE(relaxed->points.empty());
}

}  // namespace
}  // namespace stoker

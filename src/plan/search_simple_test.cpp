#include "plan/search_simple.h"

#include "plan/testing.h"

namespace stoker {
namespace {

// A notebook gets a share of an A10 or a CPU, and never an ND size.
TEST(SearchSimple, NotebooksGetAShareOfAGpu) {
    const Plan made = testing::plan("kind: notebook\nwhere: {regions: [eastus]}\n");
    EXPECT_EQ(testing::first_size(made), "Standard_NV6ads_A10_v5");
    EXPECT_NE(testing::rejection(made, "Standard_ND96isr_H100_v5", Reason::policy_notebook), nullptr);
    EXPECT_NE(testing::advice(made, "fractional-gpu"), nullptr);
    EXPECT_LT(made.candidates.front().devices_used, 0.2);
    const Plan forced = testing::plan("kind: notebook\nwhere: {sizes: [Standard_ND96isr_H100_v5]}\n");
    EXPECT_FALSE(forced.feasible());
}

// Preprocessing runs on CPU cores.
TEST(SearchSimple, PreprocessingRunsOnCpus) {
    const Plan made = testing::plan("kind: preprocessing\ndata: {bytes: 10TB}\nwhere: {regions: [eastus]}\n");
    ASSERT_TRUE(made.feasible());
    for (const Candidate& c : made.candidates) EXPECT_FALSE(testing::node(c.node_type).has_gpu());
}

// GPU work that is asked for is planned: not as a machine of two cores for a cent.
TEST(SearchSimple, PreprocessingOnGpusTakesGpus) {
    const Plan made =
        testing::plan("kind: preprocessing\ngpu_hours: 40\ndata: {bytes: 5TB}\nobjective: {deadline: 1d}\n");
    ASSERT_TRUE(made.feasible());
    for (const Candidate& c : made.candidates) EXPECT_TRUE(testing::node(c.node_type).has_gpu());
    EXPECT_GT(made.candidates.front().prediction.usd.mid, 1);
    // Hours of a T4, and not of the processors beside it.
    const Plan alone = testing::plan(
        "kind: preprocessing\ngpu_hours: 40\nwhere: {sizes: [Standard_NC16as_T4_v3], regions: [eastus], nodes: 1}\n");
    ASSERT_TRUE(alone.feasible());
    EXPECT_NEAR(alone.candidates.front().prediction.hours.mid, 40, 1);
}

// Where only machines with GPUs are known, that is said: nobody rents them for their processors.
TEST(SearchSimple, NoGpuIsRentedForItsProcessors) {
    const Plan of_gcp = testing::plan("kind: preprocessing\ndata: {bytes: 10TB}\nwhere: {cloud: gcp}\n");
    ASSERT_TRUE(of_gcp.feasible());
    for (const Candidate& c : of_gcp.candidates) EXPECT_LT(testing::node(c.node_type).accelerator, 0);
    const Plan made = testing::plan("kind: preprocessing\ndata: {bytes: 10TB}\nwhere: {cloud: nebius}\n");
    EXPECT_FALSE(made.feasible());
    EXPECT_NE(made.infeasible_because.find("no machines without GPUs"), std::string::npos) << made.infeasible_because;
}

// Rendering takes a size with the graphics driver.
TEST(SearchSimple, RenderingTakesGraphicsSizes) {
    const Plan made = testing::plan("kind: simulation\ngpu_hours: 100\nwhere: {regions: [eastus]}\n");
    ASSERT_TRUE(made.feasible());
    for (const Candidate& c : made.candidates) EXPECT_EQ(testing::node(c.node_type).purpose, "visualisation");
    EXPECT_NE(made.platform.image.find("graphics") + made.platform.image.find("GRID"), 2 * std::string::npos);
}

// Batch inference meets its deadline with the fewest dollars per token.
TEST(SearchSimple, BatchInferenceIsPricedPerToken) {
    const Plan made = testing::plan(
        "kind: batch-inference\nmodel: llama-3-8b\ntraffic: {requests: 1M, prompt_tokens: 1000, output_tokens: "
        "200}\nobjective: {minimize: cost, deadline: 12h}\nwhere: {regions: [eastus]}\n");
    ASSERT_TRUE(made.feasible());
    EXPECT_LE(made.candidates.front().prediction.hours.mid, 12);
    EXPECT_EQ(made.candidates.front().prediction.unit_name, "M output tokens");
    EXPECT_NE(testing::advice(made, "real-time-variant"), nullptr);
}

// Machines work side by side: nobody waits ten days for one where five cost the same, unless a number was asked for.
TEST(SearchSimple, APileWithoutADeadlineIsSpread) {
    const std::string pile =
        "kind: batch-inference\nmodel: stable-diffusion-xl\ntraffic: {requests: 300k, steps: 30}\nwhere: {regions: "
        "[eastus]";
    const Plan spread = testing::plan(pile + "}\n"), one = testing::plan(pile + ", nodes: 1}\n");
    ASSERT_TRUE(spread.feasible() && one.feasible());
    EXPECT_GT(one.candidates.front().prediction.hours.mid, 60);
    EXPECT_LT(spread.candidates.front().prediction.hours.mid, 50);
    EXPECT_LT(spread.candidates.front().prediction.usd.mid, 1.02 * one.candidates.front().prediction.usd.mid);
}

// CPU work goes to CPU machines, HPC sizes among them: nine A10 with a graphics driver solve no CFD.
TEST(SearchSimple, CpuSimulationTakesNoGpu) {
    const Plan made = testing::plan("kind: simulation\nvcpu_hours: 5000\nobjective: {deadline: 1d}\n");
    ASSERT_TRUE(made.feasible());
    for (const Candidate& c : made.candidates) EXPECT_FALSE(testing::node(c.node_type).has_gpu()) << testing::size(c);
    EXPECT_EQ(made.candidates.front().framework, "");
    // 5,000 vCPU hours within a day are 210 cores that are switched on.
    EXPECT_GT(testing::node(made.candidates.front().node_type).usable_vcpus() * made.candidates.front().nodes, 208);
}

// HBv2 costs what HBv3 costs, and goes.
TEST(SearchSimple, OfEqualPricesTheSizeThatStays) {
    const Plan made = testing::plan("kind: simulation\nvcpu_hours: 20000\nmemory: 400GiB\nobjective: {deadline: 2d}\n");
    ASSERT_TRUE(made.feasible());
    EXPECT_NE(testing::node(made.candidates.front().node_type).status, "announced") << testing::first_size(made);
}

// GPU hours are said in those of a T4: a faster GPU needs fewer of its own.
TEST(SearchSimple, GpuHoursCountTheSpeedOfTheGpu) {
    const auto hours = [](std::string_view size) {
        const Plan made = testing::plan(
            fmt::format("kind: simulation\ngpu_hours: 100\nmemory: 16GiB\nwhere: {{sizes: [{}], nodes: 1}}\n", size));
        EXPECT_TRUE(made.feasible()) << size;
        return made.feasible() ? made.candidates.front().prediction.hours.mid : 0;
    };
    EXPECT_NEAR(hours("Standard_NC4as_T4_v3") / hours("Standard_NV36ads_A10_v5"), 31.2 / 8.1, 0.15);
}

}  // namespace
}  // namespace stoker

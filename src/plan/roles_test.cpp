// The table of sizes by role was only quoted in advice, while the plan chose by cents.
#include "plan/roles.h"

#include <fmt/format.h>

#include "plan/testing.h"

namespace stoker {
namespace {

using testing::advice;
using testing::first_size;
using testing::plan;

// A small model is trained on the memory-optimised series where that costs little more (R18, R34).
TEST(Roles, SmallTrainingTakesTheMSeries) {
    const Plan made = plan("kind: training\nmodel: resnet-50\ndata: {examples: 50000, epochs: 3}\n");
    EXPECT_EQ(first_size(made).substr(0, 10), "Standard_M");
    ASSERT_GE(made.candidates.size(), 2u);
    EXPECT_NE(made.candidates[1].why_not_first.find("M series"), std::string::npos);
    EXPECT_NE(made.platform.image.find("dsvm"), std::string::npos);
}

// Where the M series costs many times more it is told and not taken.
TEST(Roles, LargeTrainingOfASmallModelGoesWhereItIsCheap) {
    const Plan made = plan("kind: training\nmodel: resnet-50\ndata: {examples: 1281167, epochs: 90}\n");
    EXPECT_TRUE(testing::node(made.candidates.front().node_type).has_gpu());
    EXPECT_NE(advice(made, "azure-table")->text.find("M series"), std::string::npos);
}

// A small classifier is served from the F series, with the date on which the older F sizes go, by the clock.
TEST(Roles, SmallInferenceTakesTheFSeriesAndTellsItsRetirement) {
    PlanOptions options = testing::quick();
    constexpr std::string_view kClassifier =
        "kind: inference\nmodel: bert-base\ntraffic: {requests_per_second: 20, prompt_tokens: 128}\n"
        "objective: {latency: {p95: 200ms}}\nwhere: {regions: [eastus]}\n";
    const Plan made = plan(kClassifier, options);
    EXPECT_EQ(first_size(made).substr(0, 10), "Standard_F");
    ASSERT_NE(advice(made, "f-series"), nullptr);
    EXPECT_NE(advice(made, "f-series")->text.find("retire on 2028-11-15"), std::string::npos);
    options.today = "2028-11-16";
    const Plan later = plan(kClassifier, options);
    ASSERT_NE(advice(later, "f-series"), nullptr);
    EXPECT_NE(advice(later, "f-series")->text.find("retired on 2028-11-15"), std::string::npos);
    EXPECT_NE(testing::rejection(later, "Standard_F4s_v2", Reason::retired), nullptr);
}

// Data pipelines run on D, E or F.
TEST(Roles, PreprocessingRunsOnGeneralSizes) {
    const Plan made = plan("kind: preprocessing\ndata: {examples: 20M, bytes: 2TB}\n");
    for (const Candidate& c : made.candidates) {
        const char series = testing::size(c)[9];
        EXPECT_NE(std::string("DEFM").find(series), std::string::npos) << testing::size(c);
    }
    EXPECT_NE(std::string("DEF").find(first_size(made)[9]), std::string::npos);
}

// Training of generative and of other large models: ND, the Ethernet alternative named.
TEST(Roles, LargeModelsTakeNdAndNameTheEthernetAlternative) {
    for (std::string_view what :
         {"model: llama-2-7b\ndata: {tokens: 100B}", "model: bert-large\ndata: {tokens: 500B}"}) {
        const Plan made = plan(std::string("kind: training\n") + std::string(what) + "\nobjective: {deadline: 14d}\n");
        EXPECT_EQ(first_size(made).substr(0, 11), "Standard_ND") << what;
        ASSERT_NE(advice(made, "azure-table"), nullptr);
        EXPECT_NE(advice(made, "azure-table")->text.find("with Ethernet: "), std::string::npos);
        EXPECT_NE(advice(made, "azure-table")->text.find("Data Science VM"), std::string::npos);
    }
}

// A gang larger than one placement group is refused with both limits; between them the support request is told.
TEST(Roles, GangsBeyondOnePlacementGroupAreRefused) {
    const std::string spec =
        "kind: training\nmodel: llama-3-8b\ndata: {tokens: 150B}\nwhere: {regions: [eastus], sizes: "
        "[Standard_ND96asr_v4], nodes: ";
    const Plan large = plan(spec + "320}\n");
    EXPECT_FALSE(large.feasible());
    const Rejection* line = testing::rejection(large, "Standard_ND96asr_v4", Reason::gang_too_large);
    ASSERT_NE(line, nullptr);
    EXPECT_EQ(line->have, 300);
    EXPECT_EQ(line->need, 320);
    EXPECT_NE(advice(plan(spec + "128}\n"), "ib-scale-set-limit"), nullptr);
    EXPECT_EQ(advice(plan(spec + "64}\n"), "ib-scale-set-limit"), nullptr);
}

// Silicon that the clouds asked for do not have: the lock-in is told, NVIDIA planned (R29).
TEST(Roles, ForeignSiliconGetsAWarningAndNvidia) {
    for (std::string_view word : {"tpu", "trainium", "fpga"}) {
        const Plan made =
            plan(fmt::format("kind: training\nmodel: llama-3-8b\ndata: {{tokens: 10B}}\nwhere: {{cloud: azure, "
                             "accelerators: [{}]}}\n",
                             word));
        ASSERT_TRUE(made.feasible()) << made.infeasible_because;
        ASSERT_NE(advice(made, "lock-in"), nullptr) << word;
        EXPECT_NE(advice(made, "lock-in")->text.find("NVIDIA"), std::string::npos);
        const NodeType& node = testing::node(made.candidates.front().node_type);
        EXPECT_EQ(testing::catalog().accelerators()[static_cast<std::size_t>(node.accelerator)].vendor, "NVIDIA");
    }
}

}  // namespace
}  // namespace stoker

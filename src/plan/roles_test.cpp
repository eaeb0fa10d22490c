// The table of sizes by role was only quoted in advice, while the plan chose by cents.
#include "plan/roles.h"

#include <fmt/format.h>

#include "plan/testing.h"

namespace stoker {
namespace {

using testing::advice;
using testing::first_size;
using testing::plan;

// The table names the memory-optimised series for a small model (R18, R34): told with its price, and taken only where
// it costs no more.
TEST(Roles, SmallTrainingFollowsTheMoneyAndTellsTheMSeries) {
    const Plan made = plan("kind: training\nmodel: resnet-50\ndata: {examples: 50000, epochs: 3}\n");
    ASSERT_TRUE(made.feasible());
    for (const Candidate& c : made.candidates) {
        if (c.doubt.empty()) {
            EXPECT_GE(c.prediction.usd.mid * 1.03, made.candidates.front().prediction.usd.mid);
        }
    }
    ASSERT_NE(advice(made, "azure-table"), nullptr);
    EXPECT_NE(advice(made, "azure-table")->text.find("M series"), std::string::npos);
    EXPECT_EQ(made.platform.image.find("dsvm"), std::string::npos);  // Azure ML brings its own
}

// Where the M series costs many times more it is told and not taken.
TEST(Roles, LargeTrainingOfASmallModelGoesWhereItIsCheap) {
    const Plan made = plan("kind: training\nmodel: resnet-50\ndata: {examples: 1281167, epochs: 90}\n");
    EXPECT_TRUE(testing::node(made.candidates.front().node_type).has_gpu());
    EXPECT_NE(advice(made, "azure-table")->text.find("M series"), std::string::npos);
}

// A small classifier is served where it is cheapest; the F series is told beside it, with the date on which its older
// sizes go, by the clock.
TEST(Roles, SmallInferenceFollowsTheMoney) {
    PlanOptions options = testing::quick();
    constexpr std::string_view kClassifier =
        "kind: inference\nmodel: bert-base\ntraffic: {requests_per_second: 4, prompt_tokens: 64}\n"
        "objective: {latency: {p95: 200ms}}\nwhere: {regions: [eastus]}\n";
    const Plan made = plan(kClassifier, options);
    ASSERT_TRUE(made.feasible());
    for (const Candidate& c : made.candidates) {
        if (c.doubt.empty()) {
            EXPECT_GE(c.prediction.usd.mid * 1.03, made.candidates.front().prediction.usd.mid);
        }
    }
    EXPECT_NE(advice(made, "azure-table")->text.find("F series"), std::string::npos);
    options.today = "2028-11-16";
    const Plan later = plan(kClassifier, options);
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

// A gang larger than one placement group is planned over several scale sets, with what that takes; a size that one
// placement group holds comes before it, and within the limit by request the support request is told.
TEST(Roles, GangsBeyondOnePlacementGroupSayWhatTheyTake) {
    const std::string spec =
        "kind: training\nmodel: llama-3-8b\ndata: {tokens: 150B}\nwhere: {regions: [eastus], sizes: "
        "[Standard_ND96asr_v4], nodes: ";
    const Plan large = plan(spec + "320}\n");
    ASSERT_TRUE(large.feasible());
    EXPECT_NE(large.candidates.front().doubt.find("several scale sets"), std::string::npos);
    ASSERT_NE(advice(large, "ib-scale-set-limit"), nullptr);
    EXPECT_NE(advice(large, "ib-scale-set-limit")->text.find("at least 2 scale sets"), std::string::npos);
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

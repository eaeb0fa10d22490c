#include "plan/stages.h"

#include "plan/testing.h"

namespace stoker {
namespace {

using testing::plan;

constexpr std::string_view kTune =
    "kind: fine-tuning\nmethod: lora\nmodel: mistral-7b\ndata: {examples: 20000, sequence: 1024}\nwhere: {regions: "
    "[eastus], max_nodes: 1}\n";
constexpr std::string_view kServe =
    "kind: inference\nmodel: mistral-7b\ntraffic: {requests_per_second: 1, prompt_tokens: 500, output_tokens: "
    "200}\nwhere: {regions: [eastus]}\n";

// What ends is paid once, what stays by the month, and the time is that of the chain of jobs.
TEST(Stages, JobsAddUpAndServicesCostByTheMonth) {
    const Plan tune = plan(kTune), serve = plan(kServe);
    ASSERT_TRUE(tune.feasible() && serve.feasible());
    const Prediction &job = tune.candidates.front().prediction, &service = serve.candidates.front().prediction;
    const StagesTotal total =
        total_of({{"tune", {}, tune}, {"again", {0}, tune}, {"serve", {1}, serve}}, testing::catalog());
    EXPECT_TRUE(total.feasible);
    EXPECT_EQ(total.jobs, 2);
    EXPECT_EQ(total.services, 1);
    EXPECT_DOUBLE_EQ(total.jobs_usd.mid, 2 * job.usd.mid);
    EXPECT_DOUBLE_EQ(total.hours.mid, 2 * job.hours.mid);
    EXPECT_DOUBLE_EQ(total.month_usd, service.usd.mid / service.hours.mid * 730);
    EXPECT_DOUBLE_EQ(total.starts_hours[2], total.hours.mid);
}

// One after the other share their quota; side by side they need it twice.
TEST(Stages, QuotaIsWhatIsUsedAtTheSameTime) {
    const Plan tune = plan(kTune);
    ASSERT_TRUE(tune.feasible());
    const StagesTotal chain = total_of({{"a", {}, tune}, {"b", {0}, tune}}, testing::catalog());
    const StagesTotal beside = total_of({{"a", {}, tune}, {"b", {}, tune}}, testing::catalog());
    ASSERT_EQ(chain.quota.size(), 1u);
    ASSERT_EQ(beside.quota.size(), 1u);
    EXPECT_DOUBLE_EQ(beside.quota[0].vcpus, 2 * chain.quota[0].vcpus);
    EXPECT_EQ(beside.quota[0].users.size(), 2u);
    EXPECT_DOUBLE_EQ(beside.hours.mid, tune.candidates.front().prediction.hours.mid);
}

// A stage without a plan leaves no total that anybody could believe.
TEST(Stages, OneThatIsNotPossibleIsSaid) {
    const Plan never = plan(
        "kind: training\nmodel: llama-3-70b\ndata: {tokens: 15T, sequence: 8192}\nobjective: "
        "{deadline: 1d, budget: $10}\n");
    ASSERT_FALSE(never.feasible());
    EXPECT_FALSE(total_of({{"never", {}, never}}, testing::catalog()).feasible);
}

}  // namespace
}  // namespace stoker

// Inference plans: the cheapest that keeps the limits, whatever rules of thumb say; replicas for the rate.
#include "plan/search_serving.h"

#include <fmt/format.h>

#include "plan/context.h"
#include "plan/testing.h"

namespace stoker {
namespace {

using testing::advice;
using testing::first_size;
using testing::node;
using testing::plan;
using testing::rejection;

Plan small_classifier(std::string_view limit) {
    return plan(
        fmt::format("kind: inference\nmodel: minilm-l6-v2\ntraffic: {{requests_per_second: 20, prompt_tokens: "
                    "64}}\nobjective: {{latency: {{p95: {}}}}}\nwhere: {{regions: [eastus]}}\n",
                    limit));
}

// The rule "CPU first above 50 ms" never made a dearer machine the first, nor refused a cheaper one below it.
TEST(SearchServing, TheFiftyMillisecondRuleDoesNotOverruleTheMoney) {
    for (std::string_view limit : {"51ms", "50ms", "49ms"}) {
        const Plan made = small_classifier(limit);
        ASSERT_TRUE(made.feasible());
        for (const Candidate& c : made.candidates) {
            if (c.doubt.empty()) {
                EXPECT_GE(c.prediction.usd.mid * 1.03, made.candidates.front().prediction.usd.mid) << limit;
            }
        }
    }
}

// 70B is not for CPUs: the refusal carries the bytes and the predicted latency.
TEST(SearchServing, SeventyBillionOnCpuIsRefusedWithNumbers) {
    const Plan made = plan(
        "kind: inference\nmodel: llama-3-70b\nprecision: bf16\ntraffic: {requests_per_second: 0.2, prompt_tokens: 300, "
        "output_tokens: 100}\nwhere: {regions: [eastus]}\n");
    ASSERT_TRUE(made.feasible()) << made.infeasible_because;
    EXPECT_TRUE(node(made.candidates.front().node_type).has_gpu());
    const Rejection* line = rejection(made, "Standard_D16s_v5", Reason::memory);
    ASSERT_NE(line, nullptr);
    EXPECT_NE(line->text.find("GiB"), std::string::npos);
    EXPECT_NE(line->text.find("predicted"), std::string::npos);
}

// 7B in INT8 starts on a T4; 13B in FP16 does not fit one, with the arithmetic against what is usable.
TEST(SearchServing, StartsOnT4WhereTheModelFits) {
    const Plan seven = plan(
        "kind: inference\nmodel: llama-2-7b\nprecision: int8\ntraffic: {requests_per_second: 0.2, prompt_tokens: 300, "
        "output_tokens: 100}\nwhere: {regions: [eastus]}\n");
    EXPECT_EQ(first_size(seven), "Standard_NC4as_T4_v3");
    ASSERT_NE(advice(seven, "t4-first"), nullptr);
    EXPECT_NE(advice(seven, "t4-first")->text.find("A100"), std::string::npos);
    const Plan thirteen = plan(
        "kind: inference\nmodel: llama-2-13b\nprecision: fp16\ntraffic: {requests_per_second: 0.2, prompt_tokens: 300, "
        "output_tokens: 100}\nwhere: {regions: [eastus]}\n");
    EXPECT_NE(first_size(thirteen), "Standard_NC4as_T4_v3");
    const Rejection* line = rejection(thirteen, "Standard_NC4as_T4_v3", Reason::memory);
    ASSERT_NE(line, nullptr);
    EXPECT_LT(line->have, 15.5 * kGiB);
    EXPECT_GT(line->need, 24e9);
}

// InfiniBand is left out for inference where the twin without it is priced in the same region and costs no more; where
// there is no such twin, the size is a candidate like any other.
TEST(SearchServing, LeavesInfiniBandOutOnlyForACheaperTwin) {
    const Plan made = plan(
        "kind: inference\nmodel: llama-3-70b\nprecision: fp8\ntraffic: {requests_per_second: 12, prompt_tokens: 1500, "
        "output_tokens: 300}\nobjective: {latency: {ttft_p95: 800ms, tpot_p95: 50ms}}\nwhere: {regions: [eastus], "
        "accelerators: [h100-sxm]}\n");
    ASSERT_TRUE(made.feasible()) << made.infeasible_because;
    for (const Candidate& c : made.candidates)  // unless a replica spans nodes, and uses it
        EXPECT_TRUE(!is_rdma(node(c.node_type)) || c.replica.gpus() > node(c.node_type).whole_gpus());
    const Plan h200 = plan(
        "kind: inference\nmodel: llama-3.1-405b\nprecision: fp8\ntraffic: {requests_per_second: 4, prompt_tokens: "
        "2000, output_tokens: 400}\nwhere: {cloud: azure, accelerators: [h100, h200]}\n");
    EXPECT_EQ(first_size(h200), "Standard_ND96isr_H200_v5");
    const Rejection* line = rejection(made, "Standard_ND96isr_H100_v5", Reason::policy_inference_rdma);
    ASSERT_NE(line, nullptr);
    EXPECT_NE(line->text.find("88.488"), std::string::npos) << line->text;
    EXPECT_NE(line->text.find("98.320"), std::string::npos) << line->text;
    EXPECT_EQ(made.candidates.front().prediction.bottleneck, Bottleneck::memory_bandwidth);
}

// More requests take more replicas, and one may always be lost.
TEST(SearchServing, ReplicasGrowWithTheRate) {
    int last = 0;
    for (double rate : {1.0, 20.0, 80.0}) {
        const Plan made = plan(fmt::format(
            "kind: inference\nmodel: llama-3-8b\nprecision: bf16\ntraffic: {{requests_per_second: {}, prompt_tokens: "
            "1000, output_tokens: 200}}\nwhere: {{regions: [eastus], sizes: [Standard_NC24ads_A100_v4]}}\n",
            rate));
        ASSERT_TRUE(made.feasible());
        const Candidate& c = made.candidates.front();
        EXPECT_GE((c.replicas - 1) * c.prediction.knee_requests_per_s, rate * 0.999);
        EXPECT_GT(c.replicas, last);
        last = c.replicas;
    }
}

// Price per request is price per second over sustained requests per second.
TEST(SearchServing, CostPerUnitIsPriceOverSustainedThroughput) {
    const Plan made = plan(
        "kind: inference\nmodel: llama-3-8b\nprecision: bf16\ntraffic: {requests_per_second: 5, prompt_tokens: 1000, "
        "output_tokens: 200}\nwhere: {regions: [eastus]}\n");
    ASSERT_TRUE(made.feasible());
    const Candidate& c = made.candidates.front();
    const double per_second = c.node_per_hour.dollars() / 3600 * c.nodes;
    EXPECT_NEAR(c.prediction.usd_per_unit.mid, 1e6 * per_second / (c.prediction.knee_requests_per_s * c.replicas * 200),
                1e-6 * c.prediction.usd_per_unit.mid);
}

// Four models are held by one VM with four T4.
TEST(SearchServing, SeveralModelsShareOneVm) {
    const Plan made = plan(
        "kind: inference\nmodel: resnet-50\nmodels_served: 4\ntraffic: {requests_per_second: 100}\nobjective: "
        "{latency: {p95: 40ms}}\nwhere: {regions: [eastus], sizes: [Standard_NC64as_T4_v3]}\n");
    EXPECT_EQ(first_size(made), "Standard_NC64as_T4_v3");
    bool packing = false;
    for (const std::string& note : made.candidates.front().notes) packing |= note.find("packing") != std::string::npos;
    EXPECT_TRUE(packing);
}

// Impossible latency: the plan says so and shows what comes nearest without it.
TEST(SearchServing, NearestWithoutTheLatencyLimit) {
    const Plan made = plan(
        "kind: inference\nmodel: llama-3-70b\nprecision: bf16\ntraffic: {requests_per_second: 1, prompt_tokens: 8000, "
        "output_tokens: 300}\nobjective: {latency: {ttft_p95: 1ms, tpot_p95: 1ms}}\nwhere: {regions: [eastus]}\n");
    EXPECT_FALSE(made.feasible());
    EXPECT_NE(made.infeasible_because, "");
    ASSERT_FALSE(made.nearest.empty());
    EXPECT_NE(made.nearest.front().why_not_first.find("without the latency objective"), std::string::npos);
}

}  // namespace
}  // namespace stoker

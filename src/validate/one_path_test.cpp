// What is validated has to be what is planned: a row of serving and a workload file that say the same are predicted by
// one setup, or the accuracy that is published is not that of plans. (docs/accuracy.md, "One path", has what differs.)
#include <gtest/gtest.h>

#include "sizing/serving_step.h"
#include "validate/inference.h"
#include "validate/sample.h"

namespace stoker::validate {
namespace {

struct Same {
    const char* framework;
    const char* engine;  // as a row prints it
    const char* model;
    Precision precision;
};

class OnePathTest : public ::testing::TestWithParam<Same> {};

TEST_P(OnePathTest, ARowOfServingIsPredictedAsTheWorkloadThatItIs) {
    const Same same = GetParam();
    Hardware hardware(*Catalog::embedded());
    Shapes shapes(hardware.catalog());
    const Csv csv = *Csv::read(
        sample_csv(RowKind::inference, {inference_row({{"engine", same.engine},
                                                       {"model", same.model},
                                                       {"layers", ""},
                                                       {"hidden", ""},
                                                       {"heads", ""},
                                                       {"kv_heads", ""},
                                                       {"ffn", ""},
                                                       {"vocab", ""},
                                                       {"params_b", ""},
                                                       {"gpu_model", "H100-SXM"},
                                                       {"precision_kv", "FP16"},
                                                       {"gpus", "2"},
                                                       {"tp", "2"},
                                                       {"precision_weights", std::string(to_string(same.precision))},
                                                       {"input_len", "1000"},
                                                       {"output_len", "300"},
                                                       {"batch_or_concurrency", "8"},
                                                       {"scenario", "closed_loop"}})}),
        "rows.csv");
    const std::vector<InferenceRequest> requests = inference_requests(csv, hardware, shapes);
    ASSERT_EQ(requests.size(), 1u);
    ASSERT_TRUE(requests.front().setup) << requests.front().lines.front().refused;
    const ServingSetup& row = *requests.front().setup;

    Workload w;
    w.kind = WorkloadKind::inference;
    w.model = hardware.catalog().models()[static_cast<std::size_t>(*hardware.catalog().find_model(same.model))];
    w.framework = same.framework;
    w.precision = same.precision;
    w.kv_precision = kv_precision_beside(same.precision);
    w.traffic.prompt_tokens = 1000;
    w.traffic.output_tokens = 300;
    const ServingSetup plan = *make_serving_setup(w, hardware.catalog(), *requests.front().device, EngineEra::current);
    for (const double clients : {1.0, 8.0, 64.0}) {
        EXPECT_DOUBLE_EQ(step_seconds(row, {2, 1}, clients, 1000 * clients, 0, 0),
                         step_seconds(plan, {2, 1}, clients, 1000 * clients, 0, 0));
        EXPECT_DOUBLE_EQ(step_seconds(row, {2, 1}, clients, 1000 * clients, 512, 0),
                         step_seconds(plan, {2, 1}, clients, 1000 * clients, 512, 0));
    }
    EXPECT_EQ(row.kv_bytes_per_token, plan.kv_bytes_per_token);
    EXPECT_EQ(row.weight_bytes, plan.weight_bytes);
    EXPECT_EQ(row.max_sequences, plan.max_sequences);
    EXPECT_EQ(row.token_budget, plan.token_budget);
}

INSTANTIATE_TEST_SUITE_P(Engines, OnePathTest,
                         ::testing::Values(Same{"vllm", "vLLM 0.12.0", "llama-3.1-8b", Precision::bf16},
                                           Same{"vllm", "vLLM 0.12.0", "llama-3.1-70b", Precision::fp8},
                                           Same{"vllm", "vLLM 0.12.0", "mixtral-8x7b", Precision::bf16},
                                           Same{"sglang", "SGLang 0.5.9", "qwen3-30b-a3b", Precision::bf16},
                                           Same{"tensorrt-llm", "TensorRT-LLM 1.2", "llama-3.1-8b", Precision::bf16},
                                           Same{"tensorrt-llm", "TensorRT-LLM 1.2", "llama-3.1-70b", Precision::fp8}));

}  // namespace
}  // namespace stoker::validate

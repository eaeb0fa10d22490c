// An engine taken for another one without a word would tell somebody's throughput with an interval that is not its own.
#include "validate/engine_names.h"

#include <gtest/gtest.h>

#include "validate/predict.h"
#include "validate/sample.h"

namespace stoker::validate {
namespace {

TEST(EngineNames, WhatNoRowIsOfSaysSo) {
    EXPECT_EQ(engine_named("TensorRT-LLM v0.9.0 static batching").name, "tensorrt-llm");
    EXPECT_EQ(engine_named("vLLM 0.4.3+rocm614, PyTorch 2.3.0").name, "vllm");
    EXPECT_TRUE(engine_named("vLLM").assumed.empty());
    EXPECT_EQ(engine_named("Hugging Face Transformers 4.40").name, "transformers");
    EXPECT_EQ(engine_named("HF").name, "transformers");
    // Kernels for 4-bit weights inside of a loop of transformers make no server of it.
    EXPECT_EQ(engine_named("Hugging Face transformers (GPTQ, exllama kernel)").name, "transformers");
    EXPECT_EQ(engine_named("halfserve").name, "vllm");  // "hf" is a word, not two letters
    for (const char* engine : {"", "SomeServer 3", "LMDeploy 0.6", "exllamav2", "transformers"})
        EXPECT_TRUE(engine_named(engine).assumed.starts_with("engine: ")) << engine;
}

std::vector<Line> predicted(const std::string& engine) {
    Hardware hardware(*Catalog::embedded());
    Shapes shapes(hardware.catalog());
    const auto csv = Csv::read(sample_csv(RowKind::inference, {inference_row({{"engine", engine},
                                                                              {"scenario", "single_stream"},
                                                                              {"batch_or_concurrency", "1"},
                                                                              {"tpot_ms", "9"},
                                                                              {"measured_tokens_per_s_total", ""}})}),
                               "rows.csv");
    return predict_inference(*csv, hardware, shapes, *Intervals::embedded());
}

TEST(EngineNames, AnUnknownServerIsWiderAndNotAThousandTimesSlower) {
    const Line known = predicted("vLLM 0.4").front(), unknown = predicted("SomeServer").front();
    ASSERT_TRUE(known.predicted && unknown.predicted) << known.refused << unknown.refused;
    EXPECT_LT(unknown.value / known.value, 1.5);
    EXPECT_GT(unknown.value / known.value, 0.6);
    EXPECT_GT(unknown.high / unknown.low, 1.3 * known.high / known.low);
}

// Every operator of an eager loop waits for the host: a token of a small model takes as long as its launches.
TEST(EngineNames, AnEagerLoopHasAFloorOfLaunches) {
    const Line eager = predicted("transformers").front();
    ASSERT_TRUE(eager.predicted) << eager.refused;
    EXPECT_GT(eager.value, 15);
    EXPECT_LT(eager.value, 60);
}

}  // namespace
}  // namespace stoker::validate

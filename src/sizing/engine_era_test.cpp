// Which time an engine is of: when this breaks, an old release is promised what only today's reach.
#include "sizing/engine_era.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(EngineEra, AReleaseIsReadAsItIsPrinted) {
    EXPECT_DOUBLE_EQ(release_of("v0.5.1.post1").value_or(-1), 0.005);
    EXPECT_DOUBLE_EQ(release_of("TensorRT-LLM 0.17 in-flight batching").value_or(-1), 0.017);
    EXPECT_DOUBLE_EQ(release_of("vLLM V1, 0.10").value_or(-1), 0.010);  // newer than 0.9
    EXPECT_FALSE(release_of("vllm"));
    EXPECT_FALSE(release_of("V1"));
}

TEST(EngineEra, OldReleasesAreOfTheirTime) {
    const auto era = [](const char* engine, const char* version) {
        return era_of_release(engine, release_of(version).value_or(0));
    };
    EXPECT_EQ(era("vllm", "0.6.3"), EngineEra::y2024);
    EXPECT_EQ(era("vllm", "0.10"), EngineEra::current);
    EXPECT_EQ(era("tensorrt-llm", "0.9"), EngineEra::y2023);
    EXPECT_EQ(era("tensorrt-llm", "0.17"), EngineEra::y2024);
    EXPECT_EQ(era("tensorrt-llm", "1.0"), EngineEra::current);
    EXPECT_EQ(era("transformers", "4.31"), EngineEra::y2023);
    EXPECT_EQ(era("transformers", "4.57.1"), EngineEra::current);
    EXPECT_EQ(era("sglang", "0.2"), EngineEra::current);
    EXPECT_FALSE(has_eras("sglang"));
}

}  // namespace
}  // namespace stoker

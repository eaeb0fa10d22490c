// What trains or serves, and how far it is tuned: frameworks by name, stock and tuned, and mixtures by size alone.
#include "catalog/model_count.h"
#include "workload/testing.h"

namespace stoker {
namespace {

using testing::assumptions;
using testing::bad;
using testing::good;
using testing::has;

std::string training(std::string_view more) {
    return "version: 1\nkind: training\nmodel: llama-3-8b\ndata: {tokens: 1B}\n" + std::string(more);
}
std::string serving(std::string_view model, std::string_view more) {
    return "version: 1\nkind: inference\nmodel: " + std::string(model) +
           "\ntraffic: {requests_per_second: 1, prompt_tokens: 100, output_tokens: 20}\n" + std::string(more);
}

// Every code base and engine that has measured rows of its own can be named; each in its own trade.
TEST(Stack, FrameworksAreNamedAsTheyAreKnown) {
    for (const char* name : {"megatron", "fsdp", "deepspeed", "pytorch", "torchtitan", "megatron-deepspeed", "nanotron",
                             "composer", "transformers"})
        EXPECT_EQ(good(training("framework: " + std::string(name) + "\n")).framework, name);
    for (const char* name : {"vllm", "tensorrt-llm", "sglang", "tgi", "deepspeed-mii", "llama.cpp", "transformers"})
        EXPECT_EQ(good(serving("llama-3-8b", "framework: " + std::string(name) + "\n")).framework, name);
    EXPECT_TRUE(has(bad(training("framework: tgi\n")), "tgi does not train"));
    EXPECT_TRUE(has(bad(serving("llama-3-8b", "framework: nanotron\n")), "nanotron does not serve"));
    EXPECT_TRUE(has(bad(training("framework: hf-trainer\n")), "did you mean transformers?"));
}

// Tuned is compiled; stock is not, and Megatron as its arguments' defaults have it. Both are said.
TEST(Stack, StockAndTunedAreWhatTheySay) {
    const Workload tuned = good(training("framework: fsdp\nstack: tuned\n"));
    EXPECT_TRUE(tuned.compiled);
    EXPECT_TRUE(has(assumptions(tuned), "stack: tuned"));
    const Workload stock = good(training("framework: megatron\nstack: stock\n"));
    EXPECT_FALSE(stock.compiled);
    EXPECT_EQ(stock.framework, "megatron-core");
    EXPECT_EQ(good(training("framework: megatron\nstack: tuned\n")).framework, "megatron");
    EXPECT_FALSE(good(training("")).compiled);
    EXPECT_TRUE(has(bad(training("stack: stock\ncompiled: true\n")), "exclude each other"));
    EXPECT_TRUE(has(bad(training("stack: fast\n")), "stock"));
}

// What is measured of engines that generate tokens is what they do as they come; encoders and images are built into
// one.
TEST(Stack, EnginesOfTokensAreMeasuredAsTheyCome) {
    const Workload tokens = good(serving("llama-3-8b", "stack: tuned\n"));
    EXPECT_FALSE(tokens.compiled);
    EXPECT_TRUE(has(assumptions(tokens), "stack: tuned changes nothing"));
    EXPECT_TRUE(good("version: 1\nkind: inference\nmodel: resnet-50\ntraffic: {requests_per_second: 1}\nstack: tuned\n")
                    .compiled);
}

// A release is of an engine that serves; what is none is refused with how one is written.
TEST(Stack, AReleaseOfAnEngineIsNamed) {
    EXPECT_EQ(good(serving("llama-3-8b", "framework: vllm\nframework_version: 0.10\n")).framework_version, "0.10");
    EXPECT_TRUE(has(bad(serving("llama-3-8b", "framework_version: 0.6\n")), "of which engine?"));
    EXPECT_TRUE(has(bad(serving("llama-3-8b", "framework: vllm\nframework_version: latest\n")), "is no release"));
    EXPECT_TRUE(has(bad(training("framework: fsdp\nframework_version: 2.4\n")), "engines that serve"));
    EXPECT_TRUE(
        has(bad(serving("llama-3-8b", "framework: vllm\nengine_version: 0.6\n")), "did you mean framework_version?"));
}

// A mixture of which only sizes are known has them, whichever way they are written.
TEST(Stack, AMixtureIsKnownByItsSizes) {
    for (const char* model : {"{parameters: 1T, experts: 128, active_experts: 8}",
                              "{parameters: 1T, active_parameters: "
                              "60B}",
                              "1T-A60B"}) {
        const Workload w = good("version: 1\nkind: training\ndata: {tokens: 1T}\nmodel: " + std::string(model) + "\n");
        EXPECT_NEAR(parameters_of(w.model) / 1e12, 1, 0.05) << model;
        // Eight of 128 experts are 62B; what every token passes (attention, a shared expert) comes beside them.
        EXPECT_GT(active_parameters_of(w.model) / 60e9, 0.65) << model;
        EXPECT_LT(active_parameters_of(w.model) / 60e9, 1.5) << model;
        EXPECT_TRUE(has(assumptions(w), "experts of")) << assumptions(w);
        EXPECT_FALSE(has(assumptions(w), "WARNING")) << assumptions(w);
    }
    EXPECT_TRUE(has(bad("version: 1\nkind: training\ndata: {tokens: 1T}\nmodel: {parameters: 7B, active_parameters: "
                        "70B}\n"),
                    "a part of a mixture"));
}

}  // namespace
}  // namespace stoker

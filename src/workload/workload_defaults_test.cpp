// What is assumed where a file says nothing: when this breaks, a plan answers a question that nobody asked.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "workload/testing.h"

namespace stoker {
namespace {

using testing::bad, testing::good;

TEST(Workload, TheDefaultBatchGrowsWithTheModel) {
    double last = 0;
    for (const char* model : {"opt-125m", "opt-1.3b", "llama-3-8b", "llama-3-70b", "llama-3.1-405b"}) {
        const Workload w =
            good(fmt::format("version: 1\nkind: training\nmodel: {}\ndata: {{tokens: 1T, sequence: 2048}}\n", model));
        EXPECT_GE(*w.batch.global_tokens, last) << model;
        last = *w.batch.global_tokens;
    }
    EXPECT_DOUBLE_EQ(last, 8'388'608);
    EXPECT_DOUBLE_EQ(*good("version: 1\nkind: fine-tuning\nmodel: gpt2\ndata: {examples: 10, sequence: 512}\n")
                          .batch.global_examples,
                     8);
}

// Batches of instruction tunings would take a tuning on billions of tokens hundreds of thousands of steps, and keep it
// on as many GPUs as they have sequences.
TEST(Workload, TheDefaultBatchOfALongTuningIsLarger) {
    const auto batch = [](std::string_view tokens) {
        return *good(fmt::format("version: 1\nkind: fine-tuning\nmodel: llama-3-70b\nmethod: lora\n"
                                 "data: {{tokens: {}, sequence: 4096}}\n",
                                 tokens))
                    .batch.global_examples;
    };
    EXPECT_DOUBLE_EQ(batch("100M"), 64);
    EXPECT_DOUBLE_EQ(batch("3.9B"), 64);
    EXPECT_DOUBLE_EQ(batch("40B"), 1024);
}

// 128 sequences of 128k tokens are sixteen million in a step: a tuning on long texts would take 180 of them, on as many
// GPUs as can share such a batch.
TEST(Workload, TheDefaultBatchOfLongSequencesIsCountedInTokens) {
    const auto batch = [](std::string_view sequence) {
        return *good(fmt::format("version: 1\nkind: fine-tuning\nmodel: llama-3-8b\nmethod: full\n"
                                 "data: {{tokens: 2B, sequence: {}}}\n",
                                 sequence))
                    .batch.global_examples;
    };
    EXPECT_DOUBLE_EQ(batch("32k"), 128);
    EXPECT_DOUBLE_EQ(batch("128k"), 32);
}

// What other trainers call a method, or a network, says what to write here instead.
TEST(Workload, WordsOfOtherTrainersSayWhatToWrite) {
    const std::string tuning = "version: 1\nkind: fine-tuning\nmodel: llama-3-8b\ndata: {examples: 1000}\nmethod: ";
    const std::string dpo = bad(tuning + "dpo\n"), grpo = bad(tuning + "GRPO\n");
    EXPECT_NE(dpo.find("write loss: dpo"), std::string::npos) << dpo;
    EXPECT_NE(grpo.find("kind: batch-inference"), std::string::npos) << grpo;
    const std::string gnn =
        bad("version: 1\nkind: training\nmodel: {kind: gnn, parameters: 5M}\ndata: {examples: 1000}\n");
    EXPECT_NE(gnn.find("forward_flops"), std::string::npos) << gnn;
    EXPECT_EQ(gnn.find("did you mean cnn"), std::string::npos) << gnn;
}

// A number of GPUs that is given shares a batch that nobody named, and has enough of it.
TEST(Workload, TheDefaultBatchIsOneThatTheGpusShare) {
    const auto batch = [](std::string_view model, double gpus) {
        return *good(fmt::format("version: 1\nkind: training\nmodel: {}\ndata: {{tokens: 10T, sequence: 8192}}\n"
                                 "where: {{gpus: {}}}\n",
                                 model, gpus))
                    .batch.global_examples;
    };
    EXPECT_DOUBLE_EQ(batch("llama-3.1-405b", 16384), 2048);
    EXPECT_DOUBLE_EQ(batch("llama-3.1-405b", 98304), 12288);
    EXPECT_DOUBLE_EQ(std::fmod(batch("llama-3-70b", 1000), 125), 0);
    EXPECT_DOUBLE_EQ(batch("llama-3-70b", 64), 512);
    // Images are not tokens.
    EXPECT_DOUBLE_EQ(*good("version: 1\nkind: training\nmodel: resnet-50\ndata: {examples: 10M}\nwhere: {gpus: 4}\n")
                          .batch.global_examples,
                     4096);
}

// An image model reads no tokens: whoever writes them means another model, and would believe the plan.
TEST(Workload, AnImageModelRefusesTokens) {
    const std::string text =
        bad("version: 1\nkind: inference\nmodel: resnet-50\ntraffic: {requests_per_second: 1, prompt_tokens: 500}\n");
    EXPECT_NE(text.find("prompt_tokens"), std::string::npos) << text;
}

}  // namespace
}  // namespace stoker

// A stranger's row whose model is called differently than in our table must not be lost, nor be taken for another one.
#include "validate/named_size.h"

#include <gtest/gtest.h>

#include "catalog/model_count.h"

namespace stoker::validate {
namespace {

const Catalog& shipped() {
    static const Catalog catalog = *Catalog::embedded();
    return catalog;
}

std::string named(std::string_view name, double parameters = 0) {
    const Known known = named_size(shipped(), name, parameters);
    return known.model != nullptr ? known.model->name : known.scaled ? "scaled" : "";
}

TEST(NamedSize, ReadsSizesFromNames) {
    EXPECT_EQ(printed_size("llama-13b-something").total, 13e9);
    EXPECT_EQ(printed_size("gpt2-124M").total, 124e6);
    EXPECT_EQ(printed_size("Qwen2.5-1.5B-Instruct").total, 1.5e9);
    EXPECT_EQ(printed_size("Mixtral-8x7B-v0.1").total, 56e9);
    EXPECT_EQ(printed_size("Qwen3-30B-A3B").total, 30e9);
    EXPECT_EQ(printed_size("Qwen3-30B-A3B").active, 3e9);
    EXPECT_EQ(printed_size("moe-7b-1b-active").active, 1e9);
    EXPECT_EQ(printed_size("resnet50").total, 0);
    EXPECT_EQ(printed_size("bert-base").total, 0);
    EXPECT_EQ(printed_size("v0.1-4bit").total, 0);
    EXPECT_EQ(printed_size("").at, 0u);
}

TEST(NamedSize, AFamilyAndASizeAreANetwork) {
    EXPECT_EQ(named("llama-13b-something"), "llama-13b");
    EXPECT_EQ(named("someone/Llama-2-13b-my-tune"), "llama-2-13b");
    EXPECT_EQ(named("vicuna-33b-v1.3"), "llama-30b");
    EXPECT_EQ(named("Mixtral-8x7B-MyTune"), "mixtral-8x7b");
    EXPECT_EQ(named("pythia-12b-deduped"), "pythia-12b");
    EXPECT_EQ(named("Qwen3-30B-A3B-Thinking"), "qwen3-30b-a3b");
    EXPECT_EQ(named("facebook-opt-tuned", 13e9), "opt-13b");
    EXPECT_TRUE(named("DeepSeek-R1-Distill-Llama-70B").starts_with("llama-"));
    EXPECT_TRUE(named("DeepSeek-R1-Distill-Qwen-32B").starts_with("qwen"));
}

TEST(NamedSize, ASizeThatTheFamilyDoesNotHaveIsScaledFromTheNearest) {
    const Known known = named_size(shipped(), "llama-20b-own", 0);
    ASSERT_TRUE(known.scaled);
    EXPECT_NEAR(count_parameters(*known.scaled).total, 20e9, 0.5e9);
    EXPECT_TRUE(known.scaled->gated);
    EXPECT_NE(known.assumed.find("shape scaled from llama"), std::string::npos) << known.assumed;
}

TEST(NamedSize, WhatNamesNoFamilyOrNoSizeStaysUnknown) {
    EXPECT_EQ(named("nobody-3b"), "");
    EXPECT_EQ(named("llama"), "");
    EXPECT_EQ(named("dolphin"), "");
    EXPECT_EQ(named("llama-9000b"), "");
    EXPECT_EQ(named(""), "");
}

}  // namespace
}  // namespace stoker::validate

#include "workload/unknown_models.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

// Who trains something that is no language model is told to give its parameters as if it were one, and plans nonsense.
TEST(UnknownModels, TheWayOutIsThatOfItsKind) {
    const auto says = [](std::string_view name, std::string_view what) {
        const std::string remedy = remedy_for_unknown_model(name, false);
        EXPECT_NE(remedy.find(what), std::string::npos) << name << ": " << remedy;
    };
    says("xgboost", "kind: preprocessing");
    says("LightGBM", "kind: preprocessing");
    says("dlrm-dcnv2", "embedding tables");
    says("two-tower", "embedding tables");
    says("GraphSAGE", "subgraph");
    says("ultralytics/yolov8x", "GFLOPs");
    says("facebook/wav2vec2-large-960h", "50 frames");
    says("openfold", "crop");
    says("gpt-4o", "not published");
    says("anthropic/claude-sonnet", "not published");
    says("state-spaces/mamba2-2.7b", "as a transformer of that size");
}

// Who serves one is not told to describe a data set, which a service has not.
TEST(UnknownModels, WhatAnswersIsWrittenByItsRequests) {
    for (const char* name : {"parakeet-tdt-0.6b", "coqui/xtts-v2"}) {
        EXPECT_NE(remedy_for_unknown_model(name, true).find("traffic: {prompt_tokens"), std::string::npos) << name;
        EXPECT_NE(remedy_for_unknown_model(name, false).find("data: {sequence"), std::string::npos) << name;
    }
    EXPECT_EQ(remedy_for_unknown_model("gpt-4o", true), remedy_for_unknown_model("gpt-4o", false));
}

// A language model that is new keeps the general way out.
TEST(UnknownModels, OfAnyOtherNameNothingIsSaid) {
    for (const char* name :
         {"llama-9", "gpt-j-9b", "mistral-8x99b", "gatortron", "sambanova-coe", "evolutionary-lm", ""})
        EXPECT_EQ(remedy_for_unknown_model(name, false), "") << name;
}

}  // namespace
}  // namespace stoker

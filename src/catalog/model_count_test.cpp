#include "catalog/model_count.h"

#include <gtest/gtest.h>

#include <cmath>

#include "catalog/hf_config.h"

namespace stoker {
namespace {

const Catalog& shipped() {
    static const Catalog catalog = [] {
        auto read = Catalog::embedded();
        if (!read) ADD_FAILURE() << read.error().text();
        return read ? std::move(read).value() : Catalog();
    }();
    return catalog;
}

const ModelSpec& model(std::string_view name) {
    return shipped().models()[static_cast<std::size_t>(*shipped().find_model(name))];
}

// The formulas give the published number of every transformer of the table to half a percent.
TEST(ModelCount, AgreesWithEveryPublishedCount) {
    int checked = 0;
    for (const ModelSpec& m : shipped().models()) {
        if (!m.transformer() || m.published_parameters <= 0) continue;
        EXPECT_NEAR(count_parameters(m).total / m.published_parameters, 1, 0.005) << m.name;
        ++checked;
    }
    EXPECT_GT(checked, 50);
}

// The parts add up to the whole, so sizing can place them one by one.
TEST(ModelCount, PartsAddUpToTheTotal) {
    for (const ModelSpec& m : shipped().models()) {
        const ParameterCount c = count_parameters(m);
        const double layers =
            m.layers * (c.per_layer_attention + c.per_layer_norms) + c.decoder_layers * c.per_layer_cross_attention +
            c.dense_layers * c.per_layer_mlp +
            c.moe_layers * (m.experts * c.per_layer_expert + c.per_layer_shared_expert + c.per_layer_router);
        EXPECT_NEAR(layers, c.layers_only(), 1 + 1e-9 * c.total) << m.name;
        EXPECT_LE(c.active, c.total) << m.name;
        EXPECT_EQ(c.dense_layers + c.moe_layers, m.transformer() ? m.layers : 0) << m.name;
    }
}

// One token of a mixture of experts passes only the experts chosen for it.
TEST(ModelCount, CountsOnlyChosenExpertsAsActive) {
    EXPECT_NEAR(count_parameters(model("mixtral-8x7b")).active, 12.88e9, 0.02e9);
    EXPECT_NEAR(count_parameters(model("deepseek-v3")).active, 37.5e9, 0.3e9);
    const ParameterCount dense = count_parameters(model("llama-3-8b"));
    EXPECT_EQ(dense.active, dense.total);
}

// Models without layers keep the count that was published.
TEST(ModelCount, LeavesConvolutionalModelsToTheirPublishedCount) {
    EXPECT_EQ(count_parameters(model("resnet-50")).total, 0);
    EXPECT_NEAR(parameters_of(model("resnet-50")), 25.6e6, 0.1e6);
}

// Whatever size is asked for, the assumed shape has it to two percent and its heads still fit together.
TEST(AssumeModel, ComesWithinTwoPercentOfAnySize) {
    for (const ModelKind kind : {ModelKind::decoder, ModelKind::encoder, ModelKind::encoder_decoder}) {
        for (double parameters = 1e5; parameters < 2e12; parameters *= 1.7) {
            const auto assumed = assume_model(shipped(), parameters, kind);
            ASSERT_TRUE(assumed.ok()) << assumed.error().text();
            EXPECT_NEAR(count_parameters(*assumed).total / parameters, 1, 0.02) << to_string(kind) << " " << parameters;
            EXPECT_EQ(assumed->heads % assumed->kv_heads, 0);
            EXPECT_TRUE(assumed->assumed);
            EXPECT_FALSE(assumed->assumption.empty());
        }
    }
}

// A size that a known model has takes that model's shape as it is.
TEST(AssumeModel, TakesAKnownShapeWhenTheSizeIsKnown) {
    const auto assumed = assume_model(shipped(), 8.03e9, ModelKind::decoder);
    ASSERT_TRUE(assumed.ok());
    EXPECT_EQ(assumed->layers, 32);
    EXPECT_EQ(assumed->hidden, 4096);
    EXPECT_FALSE(assumed->moe());
}

// Sizes beyond all reason, and NaN, are refused rather than searched for.
TEST(AssumeModel, RefusesImpossibleSizes) {
    for (const double parameters : {0.0, -1.0, 10.0, 1e20, std::nan("")})
        EXPECT_FALSE(assume_model(shipped(), parameters, ModelKind::decoder).ok());
}

// The point of a number is part of a name: 13 billion parameters are not 1.3 billion.
TEST(ModelNames, PointsOfNumbersTellModelsApart) {
    EXPECT_EQ(model("opt-13b").name, "opt-13b");
    EXPECT_EQ(model("OPT 1.3B").name, "opt-1.3b");
    EXPECT_EQ(model("facebook/opt-13b").name, "opt-13b");
    EXPECT_EQ(model("gpt-3-13b").name, "gpt-3-13b");
    EXPECT_EQ(model("qwen25-7b").name, "qwen2.5-7b");  // without, where nothing else is called so
    EXPECT_EQ(model("Llama_3_1-8B").name, "llama-3.1-8b");
}

// A network of a known family in a size that nobody published keeps the family's proportions.
TEST(AssumeModelLike, ScalesOneNetworkAndRefusesWhatCannotBeScaled) {
    const auto scaled = assume_model_like(model("llama-2-13b"), 20e9);
    ASSERT_TRUE(scaled);
    EXPECT_NEAR(count_parameters(*scaled).total / 20e9, 1, 0.02);
    EXPECT_TRUE(scaled->assumed);
    EXPECT_FALSE(assume_model_like(model("mixtral-8x7b"), 20e9).ok());
    EXPECT_FALSE(assume_model_like(model("resnet-50"), 20e9).ok());
    EXPECT_FALSE(assume_model_like(model("llama-2-13b"), -1).ok());
}

}  // namespace
}  // namespace stoker

// Mixtures of which only the size is known get a shape that has it, and that somebody could train.
#include <cmath>

#include <gtest/gtest.h>

#include "catalog/hf_config.h"
#include "catalog/model_count.h"

namespace stoker {
namespace {

const Catalog& shipped() {
    static const Catalog* const loaded = new Catalog(std::move(Catalog::embedded()).value());
    return *loaded;
}

void expect_sound(const ModelSpec& model, double parameters) {
    EXPECT_NEAR(count_parameters(model).total / parameters, 1, 0.05) << model.assumption;
    EXPECT_TRUE(model.moe());
    EXPECT_EQ(model.heads % model.kv_heads, 0) << model.assumption;
    EXPECT_EQ(model.hidden % 64, 0) << model.assumption;
    EXPECT_EQ(model.expert_ffn % 64, 0) << model.assumption;
    EXPECT_LE(model.active_experts, model.experts);
    EXPECT_LE(model.dense_layers, model.layers);
    EXPECT_GT(model.expert_ffn, 0.1 * model.hidden) << model.assumption;
    EXPECT_LT(model.expert_ffn, 6 * model.hidden) << model.assumption;
}

// Sizes with the number of experts: they are what was said, as wide as makes up the size.
TEST(AssumeMixture, HasTheSizeAndTheExpertsThatAreSaid) {
    const struct {
        double parameters;
        int experts, active;
    } asked[] = {{1e12, 128, 8}, {1e12, 256, 0}, {47e9, 8, 2},   {120e9, 64, 4}, {2e12, 16, 2},
                 {7e9, 64, 8},   {3e12, 512, 8}, {30e9, 128, 8}, {314e9, 8, 2}};
    for (const auto& one : asked) {
        const auto made = assume_mixture(
            shipped(), {.parameters = one.parameters, .experts = one.experts, .active_experts = one.active});
        ASSERT_TRUE(made.ok()) << one.parameters << ": " << made.error().text();
        expect_sound(*made, one.parameters);
        EXPECT_EQ(made->experts, one.experts);
        if (one.active > 0) {
            EXPECT_EQ(made->active_experts, one.active);
        }
        // Far from dense: what one token passes through is a part.
        EXPECT_LT(count_parameters(*made).active, 0.5 * one.parameters) << made->assumption;
    }
}

// Sizes with what is active of them: both are kept.
TEST(AssumeMixture, HasTheActiveParametersThatAreSaid) {
    const std::pair<double, double> asked[] = {{1e12, 32e9},  {235e9, 22e9}, {30e9, 3e9},  {671e9, 37e9},
                                               {400e9, 17e9}, {2e12, 288e9}, {47e9, 13e9}, {500e9, 50e9}};
    for (const auto& [parameters, active] : asked) {
        const auto made = assume_mixture(shipped(), {.parameters = parameters, .active_parameters = active});
        ASSERT_TRUE(made.ok()) << parameters << ": " << made.error().text();
        expect_sound(*made, parameters);
        EXPECT_NEAR(count_parameters(*made).active / active, 1, 0.25) << made->assumption;
    }
}

// What nobody could build is said, with the way out.
TEST(AssumeMixture, RefusesWhatCannotBe) {
    const auto made = assume_mixture(shipped(), {.parameters = 1e6, .experts = 4096, .active_experts = 2});
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.error().text().find("config.json"), std::string::npos) << made.error().text();
}

// Whoever says only "1B" gets the shape of the usual ones, and not one that is a third token table.
TEST(AssumeMixture, ASmallModelIsNotMostlyATokenTable) {
    for (const double parameters : {0.9e9, 1e9, 1.3e9, 1.5e9}) {
        const auto made = assume_model(shipped(), parameters, ModelKind::decoder);
        ASSERT_TRUE(made.ok());
        EXPECT_LT(count_parameters(*made).embedding, 0.3 * parameters) << made->assumption;
        EXPECT_GE(made->hidden, 1536) << made->assumption;
    }
}

}  // namespace
}  // namespace stoker

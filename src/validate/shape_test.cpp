// A wrong shape is a wrong number of parameters, and every figure of the row is off with it.
#include "validate/shape.h"

#include <gtest/gtest.h>

#include "catalog/model_count.h"
#include "validate/sample.h"

namespace stoker::validate {
namespace {

class ShapeTest : public ::testing::Test {
protected:
    ShapeTest() : catalog_(*Catalog::embedded()), shapes_(catalog_) {}
    Shape of(const Cells& others, std::string_view settings = "", double divides = 1) {
        text_ = sample_csv(RowKind::training, {with(training_row({{"notes", std::string(settings)}}), others)});
        csv_.emplace(*Csv::read(text_, "rows.csv"));
        const Row row(*csv_, 0);
        return shapes_.of(row, row.text("model_name"), divides);
    }
    Catalog catalog_;
    Shapes shapes_;
    std::string text_;
    std::optional<Csv> csv_;
};

TEST_F(ShapeTest, TheRowsOwnCellsAreTheModel) {
    const Shape shape = of({});
    ASSERT_TRUE(shape.refused.empty());
    EXPECT_TRUE(shape.model.gated);
    EXPECT_EQ(shape.model.kv_heads, 32);
    EXPECT_NEAR(count_parameters(shape.model).total, 6.74e9, 0.01e9);
    EXPECT_TRUE(shape.assumed.empty());
}

// The width of many narrow experts is in no cell; ten times too wide is ten times the memory.
TEST_F(ShapeTest, AnUnknownNameThatRoutesLikeAPublishedModelIsThatModel) {
    const Cells cells = {{"model_name", "a_ci_test"},
                         {"arch", "moe"},
                         {"layers", "27"},
                         {"hidden", "2048"},
                         {"heads", "16"},
                         {"kv_heads", ""},
                         {"ffn", ""},
                         {"vocab", ""}};
    const char* flags = "--num-experts=64; --moe-router-topk=6; --ffn-hidden-size=10944; --swiglu=true";
    const Shape shape = of(cells, flags);
    ASSERT_TRUE(shape.refused.empty()) << shape.refused;
    EXPECT_EQ(shape.model.expert_ffn, 1408);
    EXPECT_NEAR(count_parameters(shape.model).total, 15.7e9, 0.3e9);
    EXPECT_FALSE(shape.assumed.empty());
    const Shape stated = of(cells, std::string(flags) + "; --moe-ffn-hidden-size=512");
    EXPECT_EQ(stated.model.expert_ffn, 512) << "what the row says goes first";
}

// A T5 that is given by its layers was refused; the depth that is printed is that of each stack.
TEST_F(ShapeTest, AnEncoderDecoderHasItsLayersTwice) {
    const Shape shape = of({{"model_name", "own"},
                            {"arch", "encdec"},
                            {"layers", "24"},
                            {"hidden", "1024"},
                            {"heads", "16"},
                            {"ffn", "4096"},
                            {"vocab", "32128"}});
    ASSERT_TRUE(shape.refused.empty()) << shape.refused;
    EXPECT_EQ(shape.model.kind, ModelKind::encoder_decoder);
    EXPECT_EQ(shape.model.decoder_layers, 24);
    EXPECT_NEAR(count_parameters(shape.model).total / 737.7e6, 1, 0.02);  // T5-large
}

// Half the side is a quarter of the work, wherever the row says it.
TEST_F(ShapeTest, TheSideOfAnImageIsRead) {
    const Cells unet = {{"model_name", "stable-diffusion-2"}, {"arch", ""}, {"layers", ""}, {"hidden", ""}};
    const double nominal = of(unet).model.forward_flops_per_sample;
    EXPECT_NEAR(of(unet, "resolution 256x256").model.forward_flops_per_sample / nominal, 0.25, 1e-9);
    EXPECT_NEAR(of(with(unet, {{"model_name", "stable-diffusion-2 256x256"}})).model.forward_flops_per_sample / nominal,
                0.25, 1e-9);
    EXPECT_EQ(of(unet, "image size 9000").refused, "invalid:image_size");
    // Patches of 32 are no patches of 16.
    const Shape vision = of(with(unet, {{"model_name", "vit_base_patch32_384"}}));
    ASSERT_TRUE(vision.refused.empty()) << vision.refused;
    EXPECT_EQ(vision.model.learned_positions, 145);
}

TEST_F(ShapeTest, BlankCellsGetTheDocumentedDefaults) {
    const Shape shape = of({{"arch", "gpt"}, {"ffn", ""}, {"vocab", ""}, {"heads", ""}, {"hidden", "14400"}}, "", 8);
    EXPECT_EQ(shape.model.ffn, 57600);
    EXPECT_EQ(shape.model.heads % 8, 0);
    EXPECT_EQ(shape.model.hidden % shape.model.heads, 0);
    EXPECT_EQ(shape.model.vocabulary, 51200);
    EXPECT_EQ(shape.assumed, (std::vector<std::string>{"heads: 120", "vocab: 51200"}));
}

TEST_F(ShapeTest, AKnownNameIsTheCataloguesModel) {
    const Cells blank = {{"layers", ""}, {"hidden", ""}, {"heads", ""}, {"ffn", ""}, {"vocab", ""}, {"arch", ""}};
    EXPECT_EQ(of(with(blank, {{"model_name", "mistralai/Mistral-7B-v0.1"}})).model.name, "mistral-7b");
    EXPECT_EQ(of(with(blank, {{"model_name", "Someone/Llama-2-70B-GPTQ"}})).model.name, "llama-2-70b");
    EXPECT_EQ(of(with(blank, {{"model_name", "llama2-70b-99.9"}})).model.name, "llama-2-70b");
    EXPECT_EQ(of(with(blank, {{"model_name", "nobody-3b"}})).refused, "unknown_model:nobody-3b");
    EXPECT_EQ(of({{"layers", ""}, {"model_name", "nobody"}}).refused, "missing:layers");
}

// The depth that width and parameters leave, told as an assumption.
TEST_F(ShapeTest, WidthAndParametersGiveTheDepth) {
    const Shape shape = of({{"model_name", "exp-183B"},
                            {"arch", "gpt"},
                            {"layers", ""},
                            {"hidden", "14400"},
                            {"ffn", ""},
                            {"vocab", "250880"},
                            {"params_b", "183"}});
    ASSERT_TRUE(shape.refused.empty()) << shape.refused;
    EXPECT_EQ(shape.model.layers, 72);
    EXPECT_EQ(shape.assumed.front(), "layers: 72, from params_b and hidden");
}

// Two detectors have one name, and the round tells them apart; a heading tells the variant of a family.
TEST_F(ShapeTest, TheSourceTellsNamesakesApart) {
    const Cells blank = {{"layers", ""}, {"hidden", ""}, {"heads", ""}, {"ffn", ""}, {"vocab", ""}, {"arch", ""}};
    const auto name_of = [&](const char* model, const char* source) {
        return of(with(blank, {{"model_name", model}, {"source", source}})).model.name;
    };
    EXPECT_EQ(name_of("ssd", "x/training_results_v1.1 y"), "ssd300-resnet34");
    EXPECT_EQ(name_of("ssd", "x/training_results_v2.0 y"), "retinanet-resnext50");
    EXPECT_EQ(name_of("transformer-xl", "README [8x A100 > Base model]"), "transformer-xl-base");
    EXPECT_EQ(name_of("transformer-xl", "README [8x A100 > Large model]"), "transformer-xl-large");
    const Shape tuned = of(with(blank, {{"model_name", "vicuna-13b-v1.5-own"}}));
    EXPECT_EQ(tuned.model.name, "llama-13b");
    EXPECT_EQ(tuned.assumed.size(), 1u);
    // A row that states its shape is not told one by its name: blank kv_heads are heads.
    const Shape own = of(
        {{"model_name", "llama-like-1B"}, {"layers", "16"}, {"hidden", "2048"}, {"ffn", "8192"}, {"vocab", "131072"}});
    EXPECT_EQ(own.model.kv_heads, 32);
    EXPECT_TRUE(own.assumed.empty());
}

TEST_F(ShapeTest, FlagsInTheNotesAreSettings) {
    const Shape shape = of({{"arch", "moe"}, {"ffn", ""}},
                           "--num-experts=8; --moe-router-topk=2; --ffn-hidden-size=16384; --num-query-groups=8");
    ASSERT_TRUE(shape.refused.empty()) << shape.refused;
    EXPECT_EQ(shape.model.experts, 8);
    EXPECT_EQ(shape.model.active_experts, 2);
    EXPECT_EQ(shape.model.expert_ffn, 16384);
    EXPECT_EQ(shape.model.kv_heads, 8);
    EXPECT_EQ(of({{"arch", "moe"}}).refused, "missing:experts");
}

}  // namespace
}  // namespace stoker::validate

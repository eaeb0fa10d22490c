// A network with patches of 32 that is taken for one of 16 is told four times too slow, and a picture of 512 pixels for
// one of 256 four times too fast.
#include "validate/named_vision.h"

#include <gtest/gtest.h>

#include "validate/shape.h"

namespace stoker::validate {
namespace {

TEST(NamedVision, PatchesAndSidesAreReadFromNames) {
    const auto b32 = named_vision_transformer("ViT-B/32"), b16 = named_vision_transformer("vit_base_patch16_224");
    ASSERT_TRUE(b32 && b16);
    EXPECT_EQ(b32->learned_positions, 50);
    EXPECT_EQ(b16->learned_positions, 197);
    // torchvision prints 86.6e6 parameters and 17.56 G multiply-adds, and 88.2e6 and 4.41.
    EXPECT_NEAR(b16->published_parameters / 86.6e6, 1, 0.02);
    EXPECT_NEAR(b16->forward_flops_per_sample / 35.1e9, 1, 0.02);
    EXPECT_NEAR(b32->published_parameters / 88.2e6, 1, 0.02);
    EXPECT_NEAR(b32->forward_flops_per_sample / 8.82e9, 1, 0.02);
    EXPECT_EQ(named_vision_transformer("vit-l-14@336px")->learned_positions, 577);
    EXPECT_FALSE(named_vision_transformer("vit-base"));  // tells no patches
    EXPECT_FALSE(named_vision_transformer("resnet50"));
}

TEST(NamedVision, ImagesOfAnotherSideCostByTheirPixels) {
    const Catalog catalog = *Catalog::embedded();
    Shapes shapes(catalog);
    const ModelSpec* unet = shapes.find("stable-diffusion-2");
    ASSERT_NE(unet, nullptr);
    EXPECT_EQ(nominal_side(*unet), 512);
    EXPECT_NEAR(at_side(*unet, 256).forward_flops_per_sample / unet->forward_flops_per_sample, 0.25, 1e-9);
    EXPECT_NEAR(at_side(*unet, 256).activation_bytes_per_sample / unet->activation_bytes_per_sample, 0.25, 1e-9);
    const ModelSpec* resnet = shapes.find("resnet50");
    ASSERT_NE(resnet, nullptr);
    EXPECT_EQ(at_side(*resnet, 224).name, resnet->name);
    EXPECT_NEAR(at_side(*resnet, 448).forward_flops_per_sample / resnet->forward_flops_per_sample, 4, 1e-9);
    const auto vit = named_vision_transformer("vit-b/16");
    EXPECT_GT(at_side(*vit, 448).forward_flops_per_sample,
              4.2 * vit->forward_flops_per_sample);  // attention grows faster
    EXPECT_EQ(printed_side("stable-diffusion-2 256x256"), 256);
    EXPECT_EQ(printed_side("resnet50"), 0);
    EXPECT_EQ(printed_side("resnet152"), 0);
}

}  // namespace
}  // namespace stoker::validate

#include "sizing/training_setup.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

// Powers of two of tokens have a slot, below one sequence by context parallelism; others are computed.
TEST(GemmTableSlots, CoverPowersOfTwo) {
    EXPECT_EQ(token_slot(1, 1, 5, 12), 5);
    EXPECT_EQ(token_slot(64, 1, 5, 12), 11);
    EXPECT_EQ(token_slot(1, 32, 5, 12), 0);
    EXPECT_EQ(token_slot(2, 8, 5, 12), 3);
    EXPECT_EQ(token_slot(3, 1, 5, 12), -1);
    EXPECT_EQ(token_slot(128, 1, 5, 12), -1);
    EXPECT_EQ(token_slot(1, 64, 5, 12), -1);
    EXPECT_GE(tensor_slot(6), 0);
    EXPECT_EQ(tensor_slot(7), -1);
    EXPECT_EQ(tensor_slot(100000), -1);
}

// With frozen weights a backward pass has half the multiplications.
TEST(GemmTimesOfALayer, SkipWeightGradientsOfFrozenWeights) {
    TrainingSetup setup;
    setup.device.matmul_flops.fill(271e12);
    setup.device.memory_bytes_per_s = 2e12;
    setup.device.sm_count = 108;
    setup.hidden = 4096;
    setup.heads = setup.kv_heads = 32;
    setup.head_dim = 128;
    setup.ffn = 11008;
    setup.vocabulary = 32000;
    setup.attention_params = 4.0 * 4096 * 4096;
    setup.mlp_params = 3.0 * 4096 * 11008;
    const GemmTimes full = gemm_times(setup, 1, 8192);
    setup.method = Method::lora;
    const GemmTimes frozen = gemm_times(setup, 1, 8192);
    EXPECT_DOUBLE_EQ(full.dense_forward, frozen.dense_forward);
    EXPECT_NEAR(frozen.dense_backward / full.dense_backward, 0.5, 0.05);
    EXPECT_NEAR(full.dense_backward / full.dense_forward, 2, 0.2);
    // A tensor slice of 8 does an eighth of the work, a little less well.
    const GemmTimes slice = gemm_times(setup, 8, 8192);
    EXPECT_GE(slice.dense_forward, full.dense_forward / 8);
    EXPECT_LT(slice.dense_forward, full.dense_forward / 5);
}

}  // namespace
}  // namespace stoker

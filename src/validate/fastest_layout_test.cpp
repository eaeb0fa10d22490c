#include "validate/fastest_layout.h"

#include <gtest/gtest.h>

#include "sizing/training_setup.h"

namespace stoker::validate {
namespace {

// A model of 7 billion parameters on nodes of eight devices with `memory`.
TrainingSetup setup_with(double memory) {
    TrainingSetup s;
    s.device.devices_per_node = s.device.scale_up_domain = 8;
    s.device.peak_flops.fill(312e12);
    s.device.matmul_flops.fill(271e12);
    s.device.memory_bytes = memory;
    s.device.memory_bytes_per_s = 2e12;
    s.device.sm_count = 108;
    s.device.inside = {232e9, 6e-6, 10e6};
    s.device.across = {22.5e9, 5e-6, 0.5e6};
    s.device.across_shared_by_node = false;
    s.layers = s.heads = s.kv_heads = 32;
    s.hidden = 4096;
    s.head_dim = 128;
    s.ffn = 11008;
    s.vocabulary = 32000;
    s.sequence = 4096;
    s.attention_params = 4.0 * 4096 * 4096;
    s.mlp_params = 3.0 * 4096 * 11008;
    s.norm_params = 2 * 4096;
    s.embedding_params = 32000.0 * 4096;
    s.total_params = 32 * (s.attention_params + s.mlp_params + s.norm_params) + 2 * s.embedding_params;
    s.active_params = s.trainable_params = s.total_params;
    fill_gemm_table(s);
    return s;
}

// What a submission ran is not the first division that fits, and never one that does not fit or loses sequences.
TEST(FastestLayout, FitsAndBeatsTheUndivided) {
    ModelSpec model;
    model.layers = model.heads = 32;
    const LayoutQuestion question{2, 64, {Recompute::none, Recompute::full}};
    const ParallelLayout undivided{.data = 16};
    for (const double memory : {85e9, 40e9}) {
        const TrainingSetup setup = setup_with(memory);
        ParallelLayout layout = undivided;
        TrainingEstimate e;
        ASSERT_TRUE(fastest_layout(setup, model, question, layout, e)) << memory;
        EXPECT_EQ(layout.gpus(), 16);
        EXPECT_EQ(layout.global_batch(), 64);
        EXPECT_LE(e.memory_bytes, memory);
        ParallelLayout plain = undivided;
        plain.zero = 1;
        plain.micro_batches = 4;
        plain.recompute = Recompute::full;
        TrainingEstimate other;
        evaluate(setup, plain, 2, other);
        if (other.refused == Reason::none) {
            EXPECT_LE(e.step_s, other.step_s);
        }
    }
}

// Where nothing fits, nothing is changed.
TEST(FastestLayout, ToldWhenNothingFits) {
    ModelSpec model;
    model.layers = model.heads = 32;
    ParallelLayout layout{.data = 16};
    TrainingEstimate e;
    EXPECT_FALSE(fastest_layout(setup_with(2e9), model, {2, 64, {Recompute::full}}, layout, e));
    EXPECT_EQ(layout, (ParallelLayout{.data = 16}));
}

}  // namespace
}  // namespace stoker::validate

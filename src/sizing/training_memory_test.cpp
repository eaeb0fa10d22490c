#include "sizing/training_memory.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

// 126 layers over 16 stages: without interleaving nearly half of a step on 16,384 GPUs is bubble.
TEST(PipelineChunks, EmbeddingAndLossMayCountAsLayers) {
    EXPECT_TRUE(shares_layers(126, 16 * 8));
    EXPECT_TRUE(shares_layers(96, 8 * 12));
    EXPECT_FALSE(shares_layers(125, 16));
    EXPECT_FALSE(shares_layers(126, 0));
}

TrainingSetup gpt(double layers, double hidden, double heads) {
    TrainingSetup setup;
    setup.device.matmul_flops.fill(250e12);
    setup.device.peak_flops.fill(312e12);
    setup.device.memory_bytes = 85e9;
    setup.device.memory_bytes_per_s = 2e12;
    setup.layers = layers;
    setup.hidden = hidden;
    setup.heads = setup.kv_heads = heads;
    setup.head_dim = hidden / heads;
    setup.ffn = 4 * hidden;
    setup.gate_matrices = 2;
    setup.vocabulary = 51200;
    setup.sequence = 2048;
    setup.flash = false;
    setup.dropout = true;
    setup.tied = true;
    setup.attention_params = 4 * hidden * hidden;
    setup.mlp_params = 8 * hidden * hidden;
    setup.embedding_params = 51200 * hidden;
    setup.total_params = layers * 12 * hidden * hidden + setup.embedding_params;
    setup.active_params = setup.trainable_params = setup.total_params;
    return setup;
}

double gib(const TrainingSetup& setup, ParallelLayout layout, bool selective) {
    layout.recompute = selective ? Recompute::selective : Recompute::none;
    layout.sequence_parallel = selective;
    return activation_bytes(setup, layout) / kGiB;
}

// What selective recompute drops of a mixture is not held, costs time, and less of it than recomputing all.
TEST(ActivationMemory, ModulesAreRecomputedOneByOne) {
    TrainingSetup setup = gpt(32, 4096, 32);
    setup.device.devices_per_node = 8;
    setup.device.memory_bytes = 1e13;
    setup.device.memory_per_node = 1e13;
    setup.flash = true;
    setup.module_bytes = 2 * 3 * 4096;
    setup.module_flops = 2 * 4096.0 * 4096;
    ParallelLayout layout{.data = 8};
    layout.zero = 1;
    layout.micro_batches = 4;
    const auto with = [&](Recompute recompute) {
        layout.recompute = recompute;
        TrainingEstimate out;
        evaluate(setup, layout, 1, out);
        EXPECT_EQ(out.refused, Reason::none);
        return out;
    };
    const TrainingEstimate none = with(Recompute::none), some = with(Recompute::selective), all = with(Recompute::full);
    EXPECT_NEAR(none.bytes[static_cast<std::size_t>(MemoryTerm::activations)] -
                    some.bytes[static_cast<std::size_t>(MemoryTerm::activations)],
                32 * 2048 * setup.module_bytes, 1);
    EXPECT_LT(all.memory_bytes, some.memory_bytes);
    EXPECT_GT(some.step_s, none.step_s);
    EXPECT_LT(some.step_s, all.step_s);
}

// Korthikanti et al. 2022 (arXiv 2205.05198): activations of the first stage of four GPT models, to the last printed
// digit.
TEST(ActivationMemory, ReproducesThePaper) {
    const TrainingSetup b22 = gpt(48, 6144, 64), b175 = gpt(96, 12288, 96), b530 = gpt(105, 20480, 128),
                        t1 = gpt(128, 25600, 160);
    const ParallelLayout l22{.tensor = 8, .micro_batch = 4};
    const ParallelLayout l175{.tensor = 8, .pipeline = 8, .virtual_stages = 3, .micro_batch = 1, .micro_batches = 64};
    const ParallelLayout l530{.tensor = 8, .pipeline = 35, .virtual_stages = 3, .micro_batch = 1, .micro_batches = 280};
    const ParallelLayout l1t{.tensor = 8, .pipeline = 64, .micro_batch = 1, .micro_batches = 512};
    EXPECT_NEAR(gib(b22, l22, false), 59.25, 0.005);
    EXPECT_NEAR(gib(b22, l22, true), 9.56, 0.005);
    EXPECT_NEAR(gib(b175, l175, false), 66.84, 0.005);
    EXPECT_NEAR(gib(b175, l175, true), 12.35, 0.005);
    EXPECT_NEAR(gib(b530, l530, true), 23.08, 0.005);
    EXPECT_NEAR(gib(t1, l1t, true), 26.56, 0.005);
}

// Interleaved, the last of 4 stages with 3 chunks each has 9 chunks in flight (arXiv 2104.04473); Megatron-LM's CI
// prints 2.65e9 bytes for such a run of a toy GPT, which the old count of 2 sets missed.
TEST(ActivationMemory, KeepsChunksOfTheLastStage) {
    TrainingSetup toy = gpt(12, 512, 8);
    toy.flash = true;
    toy.softmax_statistics = 0;
    toy.logit_bytes = 6.5;
    toy.vocabulary = 50304;
    toy.sequence = 1024;
    toy.gradient_bytes = 4;
    toy.embedding_params = 50304 * 512;
    const ParallelLayout layout{.pipeline = 4, .virtual_stages = 3, .data = 2, .micro_batch = 4, .micro_batches = 4};
    const double layer = layer_activation_bytes(toy, layout);
    const ParallelLayout plain{.pipeline = 4, .data = 2, .micro_batch = 4, .micro_batches = 4};
    EXPECT_NEAR(stage_allocated_bytes(toy, layout, 3) - stage_allocated_bytes(toy, plain, 3), (3 - 1) * 3 * layer, 1);
    EXPECT_NEAR(stage_allocated_bytes(toy, layout, 3), 2.65e9, 0.05 * 2.65e9);
}

// Llama 3 8B: s b h (8 + (4 + 4 k/a + 6 f/h)/t) and the softmax statistics of flash attention.
TEST(ActivationMemory, CountsGatedLayers) {
    TrainingSetup llama = gpt(32, 4096, 32);
    llama.kv_heads = 8;
    llama.ffn = 14336;
    llama.gate_matrices = 3;
    llama.flash = true;
    llama.dropout = false;
    const double area = 2048.0 * 4096;
    EXPECT_DOUBLE_EQ(layer_activation_bytes(llama, {}), area * (12 + 4 * 0.25 + 6 * 3.5) + 4 * 2048 * 32);
    EXPECT_DOUBLE_EQ(layer_activation_bytes(llama, {.tensor = 2}), area * (8 + (4 + 1 + 21) / 2.0) + 4 * 2048 * 16);
    EXPECT_DOUBLE_EQ(layer_activation_bytes(llama, {.tensor = 2, .sequence_parallel = true}),
                     layer_activation_bytes(llama, {}) / 2);
    EXPECT_DOUBLE_EQ(layer_activation_bytes(llama, {.context = 4}), layer_activation_bytes(llama, {}) / 4);
}

// Adam in mixed precision: 2 + 2 + 12 bytes per parameter; each ZeRO stage divides one more of the three (arXiv
// 1910.02054).
TEST(StateMemory, IsShardedByZeroStage) {
    TrainingSetup setup = gpt(24, 2048, 16);
    setup.device.devices_per_node = 8;
    const double n = setup.total_params;
    const double expected[4][3] = {{2 * n, 2 * n, 12 * n},
                                   {2 * n, 2 * n, 12 * n / 8},
                                   {2 * n, 2 * n / 8, 12 * n / 8},
                                   {2 * n / 8, 2 * n / 8, 12 * n / 8}};
    for (std::uint8_t zero = 0; zero < 4; ++zero) {
        TrainingEstimate out;
        evaluate_memory(setup, {.data = 8, .zero = zero}, 1, out);
        EXPECT_NEAR(out.bytes[static_cast<std::size_t>(MemoryTerm::weights)], expected[zero][0], 1);
        EXPECT_NEAR(out.bytes[static_cast<std::size_t>(MemoryTerm::gradients)], expected[zero][1], 1);
        EXPECT_NEAR(out.bytes[static_cast<std::size_t>(MemoryTerm::optimizer)], expected[zero][2], 1);
        EXPECT_EQ(out.bytes[static_cast<std::size_t>(MemoryTerm::gathered)] > 0, zero == 3);
    }
}

// Tied weights live on both ends of a pipeline; the stages together hold every layer once.
TEST(StateMemory, PutsTiedEmbeddingsOnBothEnds) {
    const TrainingSetup setup = gpt(24, 2048, 16);
    EXPECT_DOUBLE_EQ(stage_params(setup, {}, 0).all(), setup.total_params);
    const ParallelLayout four{.pipeline = 4};
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += stage_params(setup, four, i).all();
    EXPECT_DOUBLE_EQ(sum, setup.total_params + setup.embedding_params);
}

// A pipeline that does not divide the layers places every layer, fewer at the ends.
TEST(StateMemory, PlacesEveryLayer) {
    for (int layers = 1; layers < 130; ++layers) {
        for (int p = 1; p <= layers && p < 70; ++p) {
            double sum = 0;
            for (int i = 0; i < p; ++i) sum += layers_of_stage(layers, p, i);
            EXPECT_EQ(sum, layers) << layers << " layers on " << p;
            EXPECT_LE(layers_of_stage(layers, p, p - 1), layers_of_stage(layers, p, std::min(1, p - 1)));
        }
    }
}

// What is refused says why, with its numbers.
TEST(MemoryRefusal, NamesTheReason) {
    const TrainingSetup setup = gpt(48, 6144, 64);
    TrainingEstimate out;
    evaluate_memory(setup, {}, 1, out);
    EXPECT_EQ(out.refused, Reason::memory);
    EXPECT_GT(out.need, out.have);
    EXPECT_EQ(out.have, 85e9);
    evaluate_memory(setup, {.data = 2}, 1, out);
    EXPECT_EQ(out.refused, Reason::node_count);
    evaluate_memory(setup, {.tensor = 5}, 5, out);
    EXPECT_EQ(out.refused, Reason::shape_indivisible);
    evaluate_memory(setup, {.pipeline = 7, .virtual_stages = 3}, 7, out);
    EXPECT_EQ(out.refused, Reason::shape_indivisible);
    TrainingSetup no_bf16 = setup;
    no_bf16.device.matmul_flops.fill(0);
    evaluate_memory(no_bf16, {}, 1, out);
    EXPECT_EQ(out.refused, Reason::precision_unsupported);
    TrainingSetup nameless = setup;  // an accelerator whose bandwidth nobody published
    nameless.device.memory_bytes_per_s = 0;
    evaluate_memory(nameless, {}, 1, out);
    EXPECT_EQ(out.refused, Reason::unknown_accelerator);
    TrainingSetup integer = setup;
    integer.precision = Precision::int8;
    evaluate_memory(integer, {}, 1, out);
    EXPECT_EQ(out.refused, Reason::precision_unsupported);
}

// Offloading moves the optimizer to the host, whose memory may be too small as well.
TEST(MemoryRefusal, KnowsTheHost) {
    TrainingSetup setup = gpt(24, 2048, 16);
    setup.device.memory_per_node = 64e9;
    TrainingEstimate out;
    evaluate_memory(setup, {.offload = true}, 1, out);
    EXPECT_EQ(out.refused, Reason::none);
    EXPECT_EQ(out.bytes[static_cast<std::size_t>(MemoryTerm::optimizer)], 0);
    EXPECT_NEAR(out.host_bytes, 14 * setup.total_params, 1);
    setup.device.memory_per_node = 8e9;
    evaluate_memory(setup, {.offload = true}, 1, out);
    EXPECT_EQ(out.refused, Reason::host_memory);
}

// LoRA keeps the base without gradients; QLoRA keeps it in 4 bit.
TEST(AdapterMemory, IsMostlyTheBase) {
    TrainingSetup setup = gpt(32, 4096, 32);
    setup.method = Method::lora;
    setup.trainable_params = 40e6;
    setup.gradient_bytes = 4;
    TrainingEstimate out;
    evaluate_memory(setup, {}, 1, out);
    EXPECT_NEAR(out.bytes[static_cast<std::size_t>(MemoryTerm::gradients)] +
                    out.bytes[static_cast<std::size_t>(MemoryTerm::optimizer)],
                16 * 40e6, 1);
    const double lora = out.bytes[static_cast<std::size_t>(MemoryTerm::weights)];
    EXPECT_NEAR(lora, 2 * setup.total_params, 1);
    setup.method = Method::qlora;
    setup.weight_bytes = 0.5625;
    evaluate_memory(setup, {}, 1, out);
    const double layers = setup.total_params - setup.embedding_params;
    EXPECT_NEAR(out.bytes[static_cast<std::size_t>(MemoryTerm::weights)], 0.5625 * layers + 2 * setup.embedding_params,
                1);
}

// The probability is one half where the estimate equals the capacity, and moves to the ends within the interval.
TEST(FitProbability, FollowsTheInterval) {
    TrainingSetup setup = gpt(24, 2048, 16);
    const double capacity = setup.device.memory_bytes;
    EXPECT_NEAR(fit_probability(setup, {0.8 * capacity, capacity, 1.25 * capacity}), 0.5, 1e-9);
    EXPECT_NEAR(fit_probability(setup, {0.5 * capacity, 0.8 * capacity, capacity}), 0.9, 1e-3);
    EXPECT_NEAR(fit_probability(setup, {capacity, 1.3 * capacity, 1.6 * capacity}), 0.1, 1e-3);
}

}  // namespace
}  // namespace stoker

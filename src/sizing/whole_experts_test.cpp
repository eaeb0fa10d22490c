// Large mixtures are trained with experts that stay whole and lie on tensor ranks too (arXiv 2504.14960): to refuse
// that is to refuse how they are run, and to divide their experts is to tell them too slow.
#include <gtest/gtest.h>

#include "sizing/training_memory.h"
#include "sizing/training_setup.h"

namespace stoker {
namespace {

TrainingSetup mixture(bool whole) {
    TrainingSetup setup;
    Device& device = setup.device;
    device.matmul_flops.fill(600e12);
    device.peak_flops.fill(989e12);
    device.memory_bytes = 85e9;
    device.memory_bytes_per_s = 3.3e12;
    device.memory_per_node = 2e12;
    device.sm_count = 132;
    device.devices_per_node = 8;
    device.inside = {.bytes_per_second = 400e9, .latency_s = 3e-6, .half_bytes = 1e6};
    device.across = {.bytes_per_second = 45e9, .latency_s = 5e-6, .half_bytes = 1e6};
    setup.layers = 16;
    setup.hidden = 2048;
    setup.heads = 16;
    setup.kv_heads = 4;
    setup.head_dim = 128;
    setup.ffn = 6144;
    setup.vocabulary = 32000;
    setup.sequence = 4096;
    setup.experts = 64;
    setup.active_experts = 4;
    setup.expert_ffn = 768;
    setup.attention_params = 2.0 * 2048 * 2048 + 2.0 * 2048 * 512;
    setup.expert_params = 3.0 * 2048 * 768;
    setup.shared_params = 2048 * 64;
    setup.embedding_params = 32000.0 * 2048;
    setup.total_params =
        16 * (setup.attention_params + setup.shared_params + 64 * setup.expert_params) + 2 * setup.embedding_params;
    setup.active_params = setup.trainable_params = setup.total_params;
    setup.kernels_per_layer = 0;
    setup.whole_experts = whole;
    fill_gemm_table(setup);
    return setup;
}

TrainingEstimate step(const TrainingSetup& setup, const ParallelLayout& layout, int nodes) {
    TrainingEstimate out;
    evaluate(setup, layout, nodes, out);
    return out;
}

double seconds(const TrainingEstimate& e, TimeTerm term) {
    return e.seconds[static_cast<std::size_t>(term)];
}

// More ranks share the experts than there are data-parallel ones.
TEST(WholeExperts, LieOnTensorRanksToo) {
    const ParallelLayout folded{
        .tensor = 4, .expert = 8, .data = 2, .micro_batches = 8, .zero = 1, .sequence_parallel = true};
    EXPECT_EQ(step(mixture(false), folded, 1).refused, Reason::shape_indivisible);
    EXPECT_EQ(step(mixture(true), folded, 1).refused, Reason::none);
    ParallelLayout beyond = folded;
    beyond.expert = 16;
    EXPECT_EQ(step(mixture(true), beyond, 1).refused, Reason::shape_indivisible);
}

// The same parameters on each rank as with divided experts on a quarter of the ranks; in matrices four times as wide,
// and no exchange between tensor ranks around them.
TEST(WholeExperts, AreNoSlowerThanDividedOnes) {
    const ParallelLayout cut{
        .tensor = 4, .expert = 2, .data = 2, .micro_batches = 8, .zero = 1, .sequence_parallel = true};
    ParallelLayout whole = cut;
    whole.expert = 8;
    const TrainingSetup divided = mixture(false), kept = mixture(true);
    EXPECT_DOUBLE_EQ(stage_params(divided, cut, 0).expert, stage_params(kept, whole, 0).expert);
    EXPECT_DOUBLE_EQ(expert_replicas(divided, cut, 2), expert_replicas(kept, whole, 2));
    const TrainingEstimate before = step(divided, cut, 1), after = step(kept, whole, 1);
    EXPECT_LT(seconds(after, TimeTerm::matmul), seconds(before, TimeTerm::matmul));
    EXPECT_NEAR(seconds(after, TimeTerm::tensor_comm), 0.5 * seconds(before, TimeTerm::tensor_comm), 1e-9);
    // Where fewer ranks share the experts than are tensor ranks, they are divided as before.
    EXPECT_DOUBLE_EQ(step(kept, cut, 1).step_s, before.step_s);
}

// A shared expert is divided over the tensor ranks, and its exchange remains.
TEST(WholeExperts, LeaveTheSharedOneDivided) {
    TrainingSetup setup = mixture(true);
    const ParallelLayout layout{
        .tensor = 4, .expert = 8, .data = 2, .micro_batches = 8, .zero = 1, .sequence_parallel = true};
    const double alone = seconds(step(setup, layout, 1), TimeTerm::tensor_comm);
    setup.shared_ffn = 768;
    EXPECT_GT(seconds(step(setup, layout, 1), TimeTerm::tensor_comm), 1.5 * alone);
}

// Chunks of a pipeline count embedding and loss as a layer each: 94 layers are 96 chunks.
TEST(WholeExperts, ChunksCountEmbeddingAndLoss) {
    TrainingSetup setup = mixture(true);
    setup.layers = 94;
    setup.uneven_chunks = true;
    const ParallelLayout deep{.pipeline = 32, .virtual_stages = 3, .data = 1, .micro_batches = 32};
    TrainingEstimate out;
    EXPECT_EQ(shape_refusal(setup, deep, 4, out), Reason::none);
}

}  // namespace
}  // namespace stoker

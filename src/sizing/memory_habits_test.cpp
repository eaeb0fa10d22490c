// A code base that holds more than the arithmetic says ends in "out of memory" on the user's machine, after the queue.
#include "sizing/memory_habits.h"

#include <gtest/gtest.h>

#include "catalog/catalog.h"
#include "sizing/training_memory.h"

namespace stoker {
namespace {

TrainingSetup llama(double layers, double hidden, double vocabulary) {
    TrainingSetup setup;
    setup.device.matmul_flops.fill(250e12);
    setup.device.peak_flops.fill(312e12);
    setup.device.memory_bytes = 85e9;
    setup.device.memory_bytes_per_s = 2e12;
    setup.layers = layers;
    setup.hidden = hidden;
    setup.heads = setup.kv_heads = hidden / 128;
    setup.head_dim = 128;
    setup.ffn = 4 * hidden;
    setup.vocabulary = vocabulary;
    setup.sequence = 2048;
    setup.tied = true;
    setup.attention_params = 4 * hidden * hidden;
    setup.mlp_params = 12 * hidden * hidden;
    setup.embedding_params = vocabulary * hidden;
    setup.total_params = layers * 16 * hidden * hidden + setup.embedding_params;
    setup.active_params = setup.trainable_params = setup.total_params;
    return setup;
}

double term(const TrainingEstimate& e, MemoryTerm which) {
    return e.bytes[static_cast<std::size_t>(which)];
}

TEST(MemoryHabits, AreToldByWordsOfTheFramework) {
    EXPECT_EQ(code_base_kind("nanotron"), CodeBaseKind::nanotron);
    EXPECT_EQ(code_base_kind("megatron-core ci"), CodeBaseKind::megatron);
    EXPECT_EQ(code_base_kind("hf trainer; none / peft lora"), CodeBaseKind::hugging_face);
    EXPECT_EQ(code_base_kind("llm-foundry/composer fsdp"), CodeBaseKind::fsdp);
    EXPECT_EQ(code_base_kind("deepspeed"), CodeBaseKind::deepspeed);
    EXPECT_EQ(code_base_kind("a loop of our own"), CodeBaseKind::other);
    // What fine-tunes models of Hugging Face keeps what they keep, whatever it is called.
    for (const char* name : {"ms-swift", "xtuner", "nemo automodel", "llama-recipes", "trl sft", "openrlhf"})
        EXPECT_EQ(code_base_kind(name), CodeBaseKind::hugging_face) << name;
    EXPECT_EQ(code_base_kind("primus (torchtitan)"), CodeBaseKind::fsdp);
    EXPECT_EQ(code_base_kind("primus"), CodeBaseKind::megatron);
}

// Unsloth's checkpoints lie on the host and its loss is made in pieces: sequences of a hundred thousand tokens fit
// where the same model in Hugging Face's own code ends at ten thousand.
TEST(MemoryHabits, UnslothKeepsCheckpointsOnTheHost) {
    const Catalog catalog = *Catalog::embedded();
    const auto activations = [&](std::string_view framework, double sequence) {
        TrainingSetup setup = llama(32, 4096, 128256);
        setup.method = Method::qlora;
        setup.trainable_params = 40e6;
        setup.sequence = sequence;
        set_memory_habits(framework, catalog, setup);
        TrainingEstimate out;
        evaluate_memory(setup, {.recompute = Recompute::full}, 1, out);
        return term(out, MemoryTerm::activations) + term(out, MemoryTerm::logits);
    };
    EXPECT_LT(activations("unsloth", 8192), 0.4 * activations("hf trainer", 8192));
    EXPECT_GT(activations("unsloth", 16384), 1.9 * activations("unsloth", 8192));
}

TEST(MemoryHabits, FusingTheLossKeepsFewerCopiesOfTheLogits) {
    const Catalog catalog = *Catalog::embedded();
    const auto logits = [&](std::string_view framework) {
        TrainingSetup setup = llama(32, 4096, 128256);
        set_memory_habits(framework, catalog, setup);
        return setup.logit_bytes;
    };
    EXPECT_GT(logits("hf trainer"), logits("hf trainer; foak-fast-kernels"));
    EXPECT_GT(logits("hf trainer; foak-fast-kernels"), logits("hf trainer; foak-fast-kernels-liger"));
    // prime-rl's fine-tuning under FSDP2 was told 0.7 of its peaks: PyTorch's own cross entropy fuses nothing.
    EXPECT_EQ(logits("prime-rl fsdp2"), logits("torchtitan"));
    EXPECT_GT(logits("fsdp"), 2 * logits("llm-foundry"));
}

// 16-bit weights, gradients and moments are 8 bytes; the update holds two more of all parameters at once.
TEST(MemoryHabits, TheUpdateIsThePeakOfASmallBatch) {
    TrainingSetup setup = llama(32, 4096, 32000);
    store_states(StateStorage::sixteen_bit, setup);
    setup.habits.gradients_released = true;
    setup.workspace_bytes = 0;
    TrainingEstimate small, large;
    evaluate_memory(setup, {.recompute = Recompute::full}, 1, small);
    EXPECT_NEAR(small.allocated_bytes, 10 * setup.total_params, 1);
    evaluate_memory(setup, {.micro_batch = 64, .recompute = Recompute::full}, 1, large);
    EXPECT_GT(large.allocated_bytes, small.allocated_bytes);
    EXPECT_EQ(term(large, MemoryTerm::gradients), 0) << "gradients are made after the peak";
    EXPECT_GT(term(large, MemoryTerm::activations), 0);
    setup.optimizer_bytes = 12;  // as mixed precision has it
    store_states(StateStorage::full, setup);
    setup.device.devices_per_node = 4;
    evaluate_memory(setup, {.data = 4, .zero = 3, .recompute = Recompute::full}, 1, small);
    EXPECT_NEAR(small.allocated_bytes, 20 * setup.total_params / 4, 1);
}

// A second micro-batch finds the gradients of the first in place.
TEST(MemoryHabits, AccumulationKeepsTheGradients) {
    TrainingSetup setup = llama(16, 2048, 32000);
    setup.habits.gradients_released = true;
    TrainingEstimate once, twice;
    evaluate_memory(setup, {.micro_batch = 16}, 1, once);
    evaluate_memory(setup, {.micro_batch = 16, .micro_batches = 2}, 1, twice);
    EXPECT_NEAR(twice.allocated_bytes - once.allocated_bytes, setup.gradient_bytes * setup.total_params, 1);
}

// The loss is done before a layer is computed again: the larger of the two counts, not both.
TEST(MemoryHabits, LogitsAndARecomputedLayerDoNotMeet) {
    TrainingSetup setup = llama(16, 2048, 400000);
    TrainingEstimate wide, narrow;
    evaluate_memory(setup, {.recompute = Recompute::full}, 1, wide);
    EXPECT_EQ(term(wide, MemoryTerm::activations), 2.0 * 2048 * 2048 * 16);
    EXPECT_GT(term(wide, MemoryTerm::logits), 0);
    setup.vocabulary = 1000;
    evaluate_memory(setup, {.recompute = Recompute::full}, 1, narrow);
    EXPECT_GT(term(narrow, MemoryTerm::activations), 2.0 * 2048 * 2048 * 16);
    EXPECT_EQ(term(narrow, MemoryTerm::logits), 0);
}

// nanotron cuts by parameters: a head of four layers' weight moves layers to the front, and with as many stages as
// layers the last one gets nothing and the run does not start.
TEST(MemoryHabits, APipelineCutByCostGivesTheFirstStageMore) {
    TrainingSetup setup = llama(16, 2048, 131072);
    EXPECT_EQ(stage_params(setup, {.pipeline = 2}, 0).layers, 8);
    setup.habits.stages_by_cost = true;
    double layers = 0;
    int heads = 0;
    for (int stage = 0; stage < 4; ++stage) {
        const StageParams params = stage_params(setup, {.pipeline = 4}, stage);
        layers += params.layers;
        heads += params.head ? 1 : 0;
    }
    EXPECT_EQ(layers, 16);
    EXPECT_EQ(heads, 1);
    EXPECT_GT(stage_params(setup, {.pipeline = 2}, 0).layers, 8);
    EXPECT_FALSE(leaves_stage_empty(setup, {.pipeline = 8}));
    EXPECT_TRUE(leaves_stage_empty(setup, {.pipeline = 16}));
    setup.habits.stages_by_cost = false;
    EXPECT_FALSE(leaves_stage_empty(setup, {.pipeline = 16}));
    EXPECT_TRUE(leaves_stage_empty(setup, {.pipeline = 32}));
}

// Reserved beyond allocated is room that the allocator gives back when it must: the verdict rests on the least.
TEST(MemoryHabits, TheVerdictRestsOnWhatTheAllocatorMustKeep) {
    TrainingSetup setup = llama(16, 2048, 131072);
    TrainingEstimate e;
    evaluate_memory(setup, {.micro_batch = 4}, 1, e);
    EXPECT_GT(e.reserved_bytes, e.allocated_bytes);
    EXPECT_LT(e.memory_bytes, e.reserved_bytes + setup.framework_bytes);
    setup.device.memory_bytes = e.memory_bytes;
    evaluate_memory(setup, {.micro_batch = 4}, 1, e);
    EXPECT_EQ(e.refused, Reason::none);
    EXPECT_LE(e.reserved_bytes + setup.framework_bytes, setup.device.memory_bytes + 1);
}

// Frozen 4-bit layers that keep their input take as much of it as layers that are trained.
TEST(MemoryHabits, QuantisedLayersMayKeepTheirInput) {
    TrainingSetup setup = llama(32, 4096, 32000);
    setup.method = Method::qlora;
    const ParallelLayout one{};
    const double without = layer_activation_bytes(setup, one);
    setup.habits.keeps_quantised_inputs = true;
    EXPECT_NEAR(layer_activation_bytes(setup, one) - without, 2048.0 * 4096 * 2 * (3 + 4), 1);
    setup.method = Method::full;
    EXPECT_NEAR(layer_activation_bytes(setup, one), without, 1e-6 * without);
}

// What a sharder holds between gathered layers grows with what moves and not with the states.
TEST(MemoryHabits, ShardingLeavesHolesInWhatMoves) {
    TrainingSetup setup = llama(32, 4096, 32000);
    setup.device.devices_per_node = 8;
    ParallelLayout layout{.data = 8, .zero = 3};
    TrainingEstimate plain, holed;
    evaluate_memory(setup, layout, 1, plain);
    setup.habits.reserve_least_sharded = 1.2;
    evaluate_memory(setup, layout, 1, holed);
    EXPECT_GT(term(holed, MemoryTerm::fragmentation), term(plain, MemoryTerm::fragmentation));
    EXPECT_NEAR(holed.allocated_bytes, plain.allocated_bytes, 1);
    layout.zero = 1;
    TrainingEstimate kept;
    evaluate_memory(setup, layout, 1, kept);
    setup.habits.reserve_least_sharded = 0;
    evaluate_memory(setup, layout, 1, plain);
    EXPECT_NEAR(term(kept, MemoryTerm::fragmentation), term(plain, MemoryTerm::fragmentation), 1);
}

// Adapters of nobody's code base are those of peft: 32-bit copies of the logits, holes of the sharder.
TEST(MemoryHabits, AnAdapterWithoutACodeBaseIsOfHuggingFace) {
    const Catalog catalog = *Catalog::embedded();
    TrainingSetup adapter = llama(32, 4096, 128256), full = adapter;
    adapter.method = Method::lora;
    set_memory_habits("", catalog, adapter);
    set_memory_habits("", catalog, full);
    EXPECT_GT(adapter.logit_bytes, full.logit_bytes);
    EXPECT_GT(adapter.habits.reserve_least_sharded, 1);
    EXPECT_EQ(full.habits.reserve_least_sharded, 0);
}

// A loop that reduces once a step keeps gradients whole: more replicas then save nothing of them, and the network rests
// in between.
TEST(MemoryHabits, GradientsThatAreReducedOnceAStepStayWhole) {
    TrainingSetup setup = llama(16, 2048, 32000);
    setup.device.devices_per_node = 4;
    setup.device.scale_up_domain = 4;
    setup.device.inside = {300e9, 2e-6, 1e6};
    setup.habits.accumulated_bytes = 4;
    ParallelLayout layout{.data = 4, .micro_batches = 4, .zero = 3, .recompute = Recompute::full};
    EXPECT_TRUE(reduces_once(setup, layout));
    TrainingEstimate once, each;
    evaluate(setup, layout, 1, once);
    EXPECT_NEAR(term(once, MemoryTerm::gradients), 4 * setup.total_params, 1);
    setup.habits.accumulated_bytes = 0;
    evaluate(setup, layout, 1, each);
    EXPECT_NEAR(term(each, MemoryTerm::gradients), setup.gradient_bytes * setup.total_params / 4, 1);
    EXPECT_LT(once.gradient_bytes, each.gradient_bytes);
    EXPECT_LT(once.step_s, each.step_s);

    setup.habits.accumulated_bytes = 4;
    layout.micro_batches = 1;
    EXPECT_FALSE(reduces_once(setup, layout)) << "one micro-batch has nothing to wait for";
    layout.micro_batches = 4;
    layout.zero = 1;
    EXPECT_FALSE(reduces_once(setup, layout));
    layout.zero = 3;
    setup.device.memory_bytes = 7 * setup.total_params;
    EXPECT_FALSE(reduces_once(setup, layout)) << "nobody does so where it takes most of the device";
}

TEST(MemoryHabits, LogitsMayBeWholeOnEachTensorRank) {
    TrainingSetup setup = llama(16, 2048, 128256);
    setup.device.devices_per_node = 4;
    TrainingEstimate divided, whole;
    evaluate_memory(setup, {.tensor = 4}, 1, divided);
    setup.habits.whole_logits = true;
    evaluate_memory(setup, {.tensor = 4}, 1, whole);
    EXPECT_NEAR(term(whole, MemoryTerm::logits), 4 * term(divided, MemoryTerm::logits), 1);
}

// CPUOffload of FSDP takes weights and gradients with the optimizer; an optimizer on the host alone leaves them.
TEST(MemoryHabits, OffloadMayTakeTheWeightsToo) {
    TrainingSetup setup = llama(16, 2048, 32000);
    setup.device.devices_per_node = 4;
    setup.device.memory_per_node = 1e12;
    const ParallelLayout layout{.data = 4, .zero = 3, .recompute = Recompute::full, .offload = true};
    TrainingEstimate optimizer, all;
    evaluate_memory(setup, layout, 1, optimizer);
    EXPECT_GT(term(optimizer, MemoryTerm::weights), 0);
    setup.habits.offloads_weights = true;
    evaluate_memory(setup, layout, 1, all);
    EXPECT_EQ(term(all, MemoryTerm::weights), 0);
    EXPECT_GT(term(all, MemoryTerm::gathered), 0);
    EXPECT_EQ(all.refused, Reason::none);
}

// DeepSpeed holds two buckets of gradients, never more than there are gradients.
TEST(MemoryHabits, BucketsOfZeroAreHeldBesideTheGradients) {
    const Catalog catalog = *Catalog::embedded();
    TrainingSetup setup = llama(16, 2048, 32000);
    setup.device.devices_per_node = 4;
    TrainingEstimate without, with;
    const ParallelLayout layout{.data = 4, .zero = 2};
    set_memory_habits("deepspeed", catalog, setup);
    evaluate_memory(setup, layout, 1, with);
    setup.habits.bucket_parameters = 0;
    evaluate_memory(setup, layout, 1, without);
    EXPECT_NEAR(term(with, MemoryTerm::workspace) - term(without, MemoryTerm::workspace),
                2 * 2 * catalog.constant_or_die("zero_bucket_parameters"), 1);
    setup.habits.bucket_parameters = 1e12;
    evaluate_memory(setup, layout, 1, with);
    EXPECT_NEAR(term(with, MemoryTerm::workspace) - term(without, MemoryTerm::workspace), 2 * 2 * setup.total_params,
                1);
}

}  // namespace
}  // namespace stoker

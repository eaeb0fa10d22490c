#include "sizing/serving_step.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

void set(Device& d, Precision p, double flops) {
    d.peak_flops[static_cast<std::size_t>(p)] = flops;
}

// Round numbers: 1 TB/s, 100 TFLOP/s, efficiencies 1, so that the terms can be worked out by hand.
ServingSetup plain() {
    ServingSetup s;
    s.device.memory_bytes = 80e9;
    s.device.memory_bytes_per_s = 1e12;
    s.device.devices_per_node = 8;
    s.device.scale_up_domain = 8;
    s.device.inside = {300e9, 2e-6, 1e6};
    s.device.across = {25e9, 5e-6, 1e6};
    set(s.device, Precision::bf16, 100e12);
    s.layers = s.dense_layers = 10;
    s.hidden = 1000;
    s.heads = s.kv_heads = 8;
    s.head_dim = 125;
    s.attention_params = 4e6;
    s.mlp_params = 96e6;
    s.vocabulary = 32000;
    s.kv_bytes_per_token = 40000;
    s.decode_attention_flops = s.prompt_attention_flops = 4 * 10 * 1000;
    s.total_params = s.active_params = 1e9;
    s.weight_bytes = 2e9;
    s.weight_read_efficiency = s.compute_efficiency = s.kv_read_efficiency = s.prefill_efficiency = 1;
    s.layer_launch_s = 1e-6;
    s.host_step_s = 1e-4;
    return s;
}

// 1 G parameters in 16 bits at 1 TB/s: 2 ms, plus 4 sequences of 1,000 tokens of 40 kB: 0.16 ms, plus launches and the
// host.
TEST(StepSeconds, OneDecodeStepByHand) {
    EXPECT_NEAR(step_seconds(plain(), {1, 1}, 4, 4000, 0, 0), 2e-3 + 0.16e-3 + 10e-6 + 1e-4, 1e-9);
}

// A loop whose operators the host launches one by one runs ahead of the device: a token takes the longer of the two,
// not both. Added up, a 7B that waits for its host was told 1.7 times too slow.
TEST(StepSeconds, LaunchesOfAnEagerLoopHideBehindTheDevice) {
    ServingSetup s = plain();
    s.device.gpu = true;
    s.policy = SchedulerPolicy::fixed_batch;
    s.layer_launch_s = 0.1e-3;
    EXPECT_NEAR(step_seconds(s, {1, 1}, 4, 4000, 0, 0), 2.16e-3 + 0.1e-3, 1e-9);
    s.layer_launch_s = 1e-3;
    EXPECT_NEAR(step_seconds(s, {1, 1}, 4, 4000, 0, 0), 10e-3 + 0.1e-3, 1e-9);
}

// 4,000 prompt tokens: 2 N n = 8e12 FLOP, attention 4 L n (n/2) h = 3.2e11, at 100 TFLOP/s.
TEST(StepSeconds, OnePromptByHand) {
    EXPECT_NEAR(step_seconds(plain(), {1, 1}, 0, 0, 4000, 0), 80e-3 + 3.2e-3 + 0.11e-3, 1e-6);
}

// The weights are read once however the work is mixed: a chunk that rides along costs less than on its own.
TEST(StepSeconds, AMixedStepReadsWeightsOnce) {
    const ServingSetup s = plain();
    const double both = step_seconds(s, {1, 1}, 16, 16000, 50, 0);
    const double apart = step_seconds(s, {1, 1}, 16, 16000, 0, 0) + step_seconds(s, {1, 1}, 0, 0, 50, 0);
    EXPECT_LT(both, apart - 1.9e-3);
    // Later chunks attend to all before them.
    EXPECT_GT(step_seconds(s, {1, 1}, 0, 0, 2000, 8000), step_seconds(s, {1, 1}, 0, 0, 2000, 0) * 1.05);
}

// More work is never faster, and neither is a slower device.
TEST(StepSeconds, IsMonotone) {
    const ServingSetup s = plain();
    for (const int t : {1, 2, 4, 8}) {
        double last = 0;
        for (double b = 1; b <= 4096; b *= 2) {
            const double now = step_seconds(s, {t, 1}, b, b * 500, 0, 0);
            EXPECT_GT(now, last);
            last = now;
            ServingSetup fast = s;
            fast.device.memory_bytes_per_s *= 1.5;
            EXPECT_LE(step_seconds(fast, {t, 1}, b, b * 500, 128, 0), step_seconds(s, {t, 1}, b, b * 500, 128, 0));
            fast = s;
            set(fast.device, Precision::bf16, 150e12);
            EXPECT_LE(step_seconds(fast, {t, 1}, b, b * 500, 128, 0), step_seconds(s, {t, 1}, b, b * 500, 128, 0));
            fast = s;
            fast.device.inside.bytes_per_second *= 2;
            EXPECT_LE(step_seconds(fast, {t, 1}, b, b * 500, 128, 0), step_seconds(s, {t, 1}, b, b * 500, 128, 0));
        }
    }
}

// Ranks share the weights but pay an all-reduce; across nodes it costs far more.
TEST(StepSeconds, TensorParallelismPaysForItsLink) {
    ServingSetup s = plain();
    const double one = step_seconds(s, {1, 1}, 8, 8000, 0, 0), four = step_seconds(s, {4, 1}, 8, 8000, 0, 0);
    EXPECT_LT(four, one);
    EXPECT_GT(four, one / 4);
    const double inside = step_seconds(s, {8, 1}, 256, 25600, 0, 0);
    s.device.devices_per_node = 4;
    s.device.scale_up_domain = 4;
    EXPECT_GT(step_seconds(s, {8, 1}, 256, 25600, 0, 0), inside);
}

// A pipeline reads all weights for every micro-batch: one sequence gains nothing, many share the compute and the cache.
TEST(StepSeconds, APipelineHelpsThroughputAndNotOneSequence) {
    const ServingSetup s = plain();
    EXPECT_GE(step_seconds(s, {1, 4}, 1, 1000, 0, 0), step_seconds(s, {1, 1}, 1, 1000, 0, 0));
    EXPECT_LT(step_seconds(s, {1, 4}, 2048, 2048 * 500, 0, 0), 0.5 * step_seconds(s, {1, 1}, 2048, 2048 * 500, 0, 0));
}

// One token of a mixture reads its K experts; many tokens read nearly all of them, E (1 - (1 - K/E)^B).
TEST(StepSeconds, AMixtureReadsTheExpertsThatWereChosen) {
    ServingSetup s = plain();
    s.dense_layers = 0;
    s.moe_layers = 10;
    s.experts = 8;
    s.active_experts = 2;
    s.expert_params = 50e6;
    s.host_step_s = s.layer_launch_s = 0;
    const double attention = 4e6 * 10 * 2 / 1e12, expert = 50e6 * 10 * 2 / 1e12;
    EXPECT_NEAR(step_seconds(s, {1, 1}, 1, 0, 0, 0), attention + 2 * expert, 1e-7);
    EXPECT_NEAR(step_seconds(s, {1, 1}, 2, 0, 0, 0), attention + 3.5 * expert, 1e-7);
    EXPECT_NEAR(step_seconds(s, {1, 1}, 40, 0, 0, 0), attention + 8 * expert, 1e-4);
}

// A window stops the growth of what decoding reads.
TEST(StepSeconds, AWindowCapsTheContext) {
    ServingSetup s = plain();
    s.sliding_window = 1000;
    EXPECT_EQ(step_seconds(s, {1, 1}, 4, 4 * 1000, 0, 0), step_seconds(s, {1, 1}, 4, 4 * 50000, 0, 0));
}

// Near the balance both units are busy and neither hides all of the other; far from it only the longer one counts.
TEST(StepSeconds, ReadingAndMultiplyingOverlapInPart) {
    ServingSetup s = plain();
    const double balanced = StepModel(s, {1, 1}).balance_batch();
    const double apart = step_seconds(s, {1, 1}, balanced, 0, 0, 0), few = step_seconds(s, {1, 1}, 1, 0, 0, 0);
    s.overlap_power = 2;
    EXPECT_GT(step_seconds(s, {1, 1}, balanced, 0, 0, 0), 1.3 * apart);
    EXPECT_NEAR(step_seconds(s, {1, 1}, 1, 0, 0, 0), few, 0.001 * few);
}

// Simulations keep what steps of as many sequences share: another bit would be another plan.
TEST(StepSeconds, DecodeStepsAreTheSameToTheBitWithWhatTheyShare) {
    for (const double guessed : {0.0, 3.0}) {
        ServingSetup setup = plain();
        setup.guessed = guessed;
        setup.tokens_per_step = 1 + guessed / 2;
        setup.overlap_power = 3;
        const StepModel model(setup, {2, 1});
        DecodeTerms shared;
        for (const double context : {100.0, 101.0, 5000.0, 77.0}) {
            StepWork work;
            work.decode = 5;
            work.context = context;
            EXPECT_EQ(model.decode_seconds(work, shared), model.seconds(work)) << context;
        }
    }
}

// What every token and every sequence costs beside matmuls: passes over its activations, and the host's bookkeeping.
TEST(StepSeconds, TokensAndSequencesHaveTheirOwnCost) {
    ServingSetup s = plain();
    const double before = step_seconds(s, {1, 1}, 100, 0, 0, 0);
    s.sequence_host_s = 1e-5;
    EXPECT_NEAR(step_seconds(s, {1, 1}, 100, 0, 0, 0), before + 1e-3, 1e-9);
    s.device.memory_efficiency = 1;
    s.vector_hidden =
        1e6;  // elements of 2 bytes at 1 TB/s, and the sampler's four passes over 32,000 logits of 4 bytes
    const double sampled = 100 * 16 * 32000 / 1e12;
    EXPECT_NEAR(step_seconds(s, {1, 1}, 100, 0, 0, 0), before + 1e-3 + 100 * 2e6 / 1e12, sampled + 1e-9);
}

// A step with prompts is launched kernel by kernel: short prompts cost the launches, long ones only their work.
TEST(StepSeconds, ShortPromptsCostTheirLaunches) {
    ServingSetup s = plain();
    const double decode = step_seconds(s, {1, 1}, 4, 4000, 0, 0), lengthy = step_seconds(s, {1, 1}, 0, 0, 4000, 0);
    s.prompt_layer_s = 1e-3;
    EXPECT_NEAR(step_seconds(s, {1, 1}, 0, 0, 16, 0), 10e-3 + 1e-4, 1e-6);
    EXPECT_EQ(step_seconds(s, {1, 1}, 4, 4000, 0, 0), decode);
    EXPECT_EQ(step_seconds(s, {1, 1}, 0, 0, 4000, 0), lengthy);
}

// An engine's own all-reduce has a floor that grows with the rounds of the exchange; large messages cost the link.
TEST(StepSeconds, AReductionHasAFloor) {
    ServingSetup s = plain();
    s.all_reduce_s = 1e-5;
    s.host_step_s = s.layer_launch_s = 0;
    const double two = step_seconds(s, {2, 1}, 1, 0, 0, 0), eight = step_seconds(s, {8, 1}, 1, 0, 0, 0);
    EXPECT_NEAR(two, 1e-3 + 20 * 1e-5, 2e-6);
    EXPECT_NEAR(eight, 0.25e-3 + 20 * 3e-5, 2e-6);
    ServingSetup slow = s;
    slow.link_efficiency = 0.5;
    EXPECT_GT(step_seconds(slow, {8, 1}, 0, 0, 4000, 0), step_seconds(s, {8, 1}, 0, 0, 4000, 0));
}

// A small message is read from every peer at once, so that more ranks make it slower; a larger one never costs less
// than the largest of those.
TEST(StepSeconds, SmallReductionsReadFromEveryPeer) {
    ServingSetup s = plain();
    s.all_reduce_s = 1e-5;
    s.all_reduce_growth = 0;
    const double before = step_seconds(s, {8, 1}, 64, 0, 0, 0);
    s.one_shot_bytes = 64 * 2000;
    // 20 messages of 128 kB: 7 of them at 300 GB/s instead of 7/4.
    EXPECT_NEAR(step_seconds(s, {8, 1}, 64, 0, 0, 0) - before, 20 * (7 - 1.75) * 128e3 / 300e9, 1e-7);
    double last = 0;
    for (double b = 1; b <= 1024; b += 1) {
        const double now = step_seconds(s, {8, 1}, b, 0, 0, 0);
        EXPECT_GE(now, last);
        last = now;
    }
}

// A mixture whose experts alone are in 4 bits reads and multiplies its attention as it was.
TEST(StepSeconds, AttentionMayKeepItsBits) {
    ServingSetup s = plain();
    s.weight_bytes_per_param = 0.5;
    const double narrow = step_seconds(s, {1, 1}, 1, 0, 0, 0);
    s.attention_bytes_per_param = 2;
    EXPECT_NEAR(step_seconds(s, {1, 1}, 1, 0, 0, 0) - narrow, 4e6 * 10 * 1.5 / 1e12, 1e-9);
}

// Whole experts on different ranks: the rank that has most of those chosen is waited for, until all are chosen.
TEST(StepSeconds, TheBusiestRankOfTheExpertsCounts) {
    ServingSetup s = plain();
    s.dense_layers = 0;
    s.moe_layers = 10;
    s.experts = 64;
    s.active_experts = 2;
    s.expert_params = 5e6;
    ReplicaShape divided{8, 1}, whole{8, 1};
    whole.expert = 8;
    EXPECT_GT(step_seconds(s, whole, 8, 0, 0, 0), 1.05 * step_seconds(s, divided, 8, 0, 0, 0));
    EXPECT_NEAR(step_seconds(s, whole, 4000, 0, 0, 0), step_seconds(s, divided, 4000, 0, 0, 0), 1e-9);
    double last = 0;
    for (double b = 1; b <= 400; b += 1) {
        const double now = step_seconds(s, whole, b, 0, 0, 0);
        EXPECT_GT(now, last);
        last = now;
    }
}

// Favourites of the router: a batch touches fewer experts, one token its K.
TEST(StepSeconds, AFavouredExpertIsReadOnce) {
    ServingSetup s = plain();
    s.dense_layers = 0;
    s.moe_layers = 10;
    s.experts = 64;
    s.active_experts = 2;
    s.expert_params = 5e6;
    const double alike = step_seconds(s, {1, 1}, 32, 0, 0, 0), one = step_seconds(s, {1, 1}, 1, 0, 0, 0);
    s.expert_skew = 1.5;
    EXPECT_LT(step_seconds(s, {1, 1}, 32, 0, 0, 0), 0.85 * alike);
    EXPECT_NEAR(step_seconds(s, {1, 1}, 1, 0, 0, 0), one, 0.03 * one);
}

// Thin slices of experts, and few tokens for each, keep the matrix units waiting.
TEST(StepSeconds, NarrowExpertsMultiplySlower) {
    ServingSetup s = plain();
    s.dense_layers = 0;
    s.moe_layers = 10;
    s.experts = 8;
    s.active_experts = 2;
    s.expert_params = 50e6;
    s.expert_width = 1600;
    const double before = step_seconds(s, {8, 1}, 0, 0, 4000, 0);
    s.expert_half_width = 200;
    const double narrow = step_seconds(s, {8, 1}, 0, 0, 4000, 0);
    EXPECT_GT(narrow, 1.5 * before);
    ReplicaShape whole{8, 1};
    whole.expert = 8;
    EXPECT_LT(step_seconds(s, whole, 0, 0, 4000, 0), narrow);
    s.expert_half_width = 0;
    s.expert_half_tokens = 100;
    EXPECT_GT(step_seconds(s, {8, 1}, 0, 0, 4000, 0), before);
}

// One prompt among eight groups of attention data parallelism occupies one of them.
TEST(StepSeconds, APromptOccupiesOneGroup) {
    const ServingSetup s = plain();
    const ReplicaShape data{1, 1, 8};
    StepWork one, eight;
    one.add_prompt(8000, 0, true);
    for (int i = 0; i < 8; ++i) eight.add_prompt(1000, 0, true);
    eight.prompt_pairs = one.prompt_pairs;
    eight.prompt_reads = one.prompt_reads;
    EXPECT_GT(StepModel(s, data).seconds(one), 1.2 * StepModel(s, data).seconds(eight));
}

// Attention data parallelism: every group reads its own attention weights, but a cache that all ranks of a tensor
// group would hold in full (MLA) is divided.
TEST(StepSeconds, AttentionDataParallelismDividesALatentCache) {
    ServingSetup s = plain();
    s.kv_replicated_by_tensor = true;
    s.host_step_s = s.layer_launch_s = 0;
    const ReplicaShape tensor{8, 1}, data{1, 1, 8};
    EXPECT_EQ(data.gpus(), 8);
    EXPECT_LT(step_seconds(s, data, 512, 512 * 4000.0, 0, 0), 0.3 * step_seconds(s, tensor, 512, 512 * 4000.0, 0, 0));
    EXPECT_GT(serving_memory(s, data).kv_tokens, 6 * serving_memory(s, tensor).kv_tokens);
}

// Weights of 4 bits come with scales and are unpacked on the way.
TEST(StepSeconds, NarrowWeightsStreamSlower) {
    ServingSetup s = plain();
    s.weight_bytes_per_param = 0.5625;
    const double free = step_seconds(s, {1, 1}, 1, 0, 0, 0);
    s.narrow_read_efficiency = 0.5;
    EXPECT_NEAR(step_seconds(s, {1, 1}, 1, 0, 0, 0) - 11e-5, 2 * (free - 11e-5), 1e-9);
}

TEST(Bounds, AreWhatEveryoneKnows) {
    const ServingSetup s = plain();
    EXPECT_EQ(decode_bound(s, {1, 1}, 1, 500), Bottleneck::memory_bandwidth);
    EXPECT_EQ(decode_bound(s, {1, 1}, 250, 250), Bottleneck::compute);
    EXPECT_EQ(prefill_bound(s, {1, 1}, 4096), Bottleneck::compute);
    // Few long contexts fill the cache long before the matrix units are busy.
    EXPECT_EQ(decode_bound(s, {1, 1}, 14, 0.95 * serving_memory(s, {1, 1}).kv_tokens), Bottleneck::memory_capacity);
    ServingSetup slow = s;
    slow.layer_launch_s = 1e-3;
    EXPECT_EQ(decode_bound(slow, {1, 1}, 1, 500), Bottleneck::launch);
    ServingSetup far = s;
    far.device.inside = {1e9, 1e-3, 1e6};
    EXPECT_EQ(decode_bound(far, {8, 1}, 1, 500), Bottleneck::network);
}

}  // namespace
}  // namespace stoker

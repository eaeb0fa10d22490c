// Longer than 500 lines because all of it shares two setups and the count of allocations, which only one file may have.
#include "sizing/training.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>
#include <random>

#include "sizing/training_memory.h"
#include "sizing/training_setup.h"

namespace {
std::atomic<long> allocations{0};
}

// g++ 12 cannot see that the two below are a pair once one of them is inlined.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

void* operator new(std::size_t size) {
    ++allocations;
    if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
    throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    ++allocations;
    return std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

namespace stoker {
namespace {

Device a100_node() {
    Device device;
    device.devices_per_node = 8;
    device.scale_up_domain = 8;
    device.peak_flops.fill(312e12);
    device.matmul_flops.fill(271e12);
    device.memory_bytes = 85e9;
    device.memory_bytes_per_s = 2e12;
    device.memory_per_node = 1.9e12;
    device.host_bytes_per_s = 31e9;
    device.sm_count = 108;
    device.inside = {232e9, 6e-6, 10e6};
    device.across = {22.5e9, 5e-6, 0.5e6};
    device.across_shared_by_node = false;
    device.vcpus_per_node = 96;
    return device;
}

TrainingSetup llama(bool moe = false) {
    TrainingSetup setup;
    setup.device = a100_node();
    setup.layers = 32;
    setup.hidden = 4096;
    setup.heads = 32;
    setup.kv_heads = 8;
    setup.head_dim = 128;
    setup.ffn = 14336;
    setup.vocabulary = 128256;
    setup.sequence = 4096;
    setup.attention_params = 2.0 * 4096 * 4096 + 2.0 * 4096 * 1024;
    setup.norm_params = 2 * 4096;
    setup.embedding_params = 128256.0 * 4096;
    if (moe) {
        setup.experts = 8;
        setup.active_experts = 2;
        setup.expert_ffn = 14336;
        setup.expert_params = 3.0 * 4096 * 14336;
        setup.shared_params = 4096 * 8;
        setup.total_params =
            32 * (setup.attention_params + setup.norm_params + setup.shared_params + 8 * setup.expert_params) +
            2 * setup.embedding_params;
    } else {
        setup.mlp_params = 3.0 * 4096 * 14336;
        setup.total_params =
            32 * (setup.attention_params + setup.mlp_params + setup.norm_params) + 2 * setup.embedding_params;
    }
    setup.active_params = setup.trainable_params = setup.total_params;
    setup.framework_bytes = 2e9;
    fill_gemm_table(setup);
    return setup;
}

double at(const TrainingEstimate& e, TimeTerm term) {
    return e.seconds[static_cast<std::size_t>(term)];
}
double at(const TrainingEstimate& e, MemoryTerm term) {
    return e.bytes[static_cast<std::size_t>(term)];
}

TrainingEstimate run(const TrainingSetup& setup, const ParallelLayout& layout) {
    TrainingEstimate out;
    evaluate(setup, layout, static_cast<int>(std::ceil(layout.gpus() / setup.device.ranks_per_node())), out);
    return out;
}

// A layout that the shape of `setup` allows, on whole nodes.
ParallelLayout random_layout(std::mt19937_64& random, bool moe) {
    const auto pick = [&random](std::initializer_list<int> from) {
        return *(from.begin() + static_cast<std::ptrdiff_t>(random() % from.size()));
    };
    ParallelLayout l;
    l.tensor = pick({1, 1, 2, 4, 8, 16});
    l.pipeline = pick({1, 1, 2, 3, 4, 8, 5});
    l.context = pick({1, 1, 1, 2, 4});
    l.data = 8 * pick({1, 2, 3, 4, 16, 64});
    l.expert = moe ? pick({1, 2, 4, 8}) : 1;
    l.virtual_stages = 32 % l.pipeline == 0 && l.pipeline > 1 && l.pipeline <= 8 ? pick({1, 2}) : 1;
    l.micro_batch = pick({1, 2, 3, 4, 5, 8});
    l.micro_batches = pick({1, 2, 7, 16, 64});
    l.zero = static_cast<std::uint8_t>(pick({0, 1, 2, 3}));
    l.shard_group = random() % 4 == 0 ? 8 : 0;
    l.recompute = static_cast<Recompute>(pick({0, 1, 2}));
    l.sequence_parallel = random() % 2 == 0;
    l.offload = random() % 8 == 0;
    return l;
}

// Over random layouts: finite numbers, terms that sum to the step, nothing faster than the roofline or lighter than the
// states.
TEST(TrainingProperties, HoldForRandomLayouts) {
    for (const bool moe : {false, true}) {
        for (const bool flash : {false, true}) {
            TrainingSetup setup = llama(moe);
            setup.flash = flash;
            std::mt19937_64 random(7);
            for (int i = 0; i < 4000; ++i) {
                const ParallelLayout layout = random_layout(random, moe);
                const TrainingEstimate e = run(setup, layout);
                if (e.refused != Reason::none && e.refused != Reason::memory) {
                    EXPECT_EQ(e.step_s, 0);
                    continue;
                }
                SCOPED_TRACE(describe(layout));
                double sum = 0;
                for (const double s : e.seconds) {
                    ASSERT_TRUE(std::isfinite(s));
                    ASSERT_GE(s, 0);
                    sum += s;
                }
                ASSERT_EQ(sum, e.step_s);
                double bytes = 0;
                for (const double b : e.bytes) {
                    ASSERT_TRUE(std::isfinite(b));
                    ASSERT_GE(b, 0);
                    bytes += b;
                }
                ASSERT_NEAR(bytes, e.memory_bytes, 1);
                ASSERT_GE(e.step_s, step_lower_bound(setup, layout.global_batch(), layout.gpus()));
                ASSERT_GE(e.memory_bytes, memory_lower_bound(setup, layout.gpus(), layout.offload));
                ASSERT_LE(e.mfu, 271.0 / 312);
                ASSERT_LE(e.mfu, e.hfu);
                const Range r = step_interval(setup, layout, e);
                ASSERT_LT(r.low, 1);
                ASSERT_GT(r.high, 1);
            }
        }
    }
}

// The table only saves time: without it the numbers are the same.
TEST(TrainingProperties, TableEqualsComputation) {
    for (const bool moe : {false, true}) {
        const TrainingSetup filled = llama(moe);
        TrainingSetup bare = filled;
        bare.gemm = GemmTable{};
        std::mt19937_64 random(11);
        for (int i = 0; i < 500; ++i) {
            const ParallelLayout layout = random_layout(random, moe);
            ASSERT_DOUBLE_EQ(run(filled, layout).step_s, run(bare, layout).step_s) << describe(layout);
        }
    }
}

// The same work on more data-parallel GPUs never takes more time in kernels on any of them.
TEST(TrainingProperties, MoreGpusNeverRaiseCompute) {
    const TrainingSetup setup = llama();
    double last = 1e300;
    for (int data = 8; data <= 512; data *= 2) {
        const TrainingEstimate e = run(setup, {.data = data, .micro_batch = 1, .micro_batches = 512 / data, .zero = 3});
        const double compute = at(e, TimeTerm::matmul) + at(e, TimeTerm::attention) + at(e, TimeTerm::memory_bound) +
                               at(e, TimeTerm::logits);
        EXPECT_LE(compute, last);
        last = compute;
    }
}

// A faster network inside or between nodes never makes a step slower.
TEST(TrainingProperties, FasterLinksNeverSlow) {
    for (const bool moe : {false, true}) {
        const TrainingSetup setup = llama(moe);
        TrainingSetup across = setup, inside = setup;
        across.device.across.bytes_per_second *= 1.7;
        inside.device.inside.bytes_per_second *= 1.7;
        std::mt19937_64 random(3);
        for (int i = 0; i < 2000; ++i) {
            const ParallelLayout layout = random_layout(random, moe);
            const double step = run(setup, layout).step_s * (1 + 1e-12);
            ASSERT_LE(run(across, layout).step_s, step) << describe(layout);
            ASSERT_LE(run(inside, layout).step_s, step) << describe(layout);
        }
    }
}

// A higher ZeRO stage never holds more weights, gradients and optimizer states.
TEST(TrainingProperties, ShardingNeverAddsStates) {
    for (const bool moe : {false, true}) {
        const TrainingSetup setup = llama(moe);
        std::mt19937_64 random(5);
        for (int i = 0; i < 1000; ++i) {
            ParallelLayout layout = random_layout(random, moe);
            layout.shard_group = 0;
            layout.offload = false;
            double last = 1e300;
            for (std::uint8_t zero = 0; zero < 4; ++zero) {
                layout.zero = zero;
                const TrainingEstimate e = run(setup, layout);
                const double states =
                    at(e, MemoryTerm::weights) + at(e, MemoryTerm::gradients) + at(e, MemoryTerm::optimizer);
                ASSERT_LE(states, last * (1 + 1e-12)) << describe(layout);
                last = states;
            }
        }
    }
}

// Twice the micro-batches are twice the kernels.
TEST(TrainingProperties, ComputeFollowsMicroBatches) {
    const TrainingSetup setup = llama();
    const TrainingEstimate one = run(setup, {.tensor = 2, .pipeline = 4, .data = 4, .micro_batches = 8}),
                           two = run(setup, {.tensor = 2, .pipeline = 4, .data = 4, .micro_batches = 16});
    EXPECT_DOUBLE_EQ(2 * at(one, TimeTerm::matmul), at(two, TimeTerm::matmul));
    EXPECT_DOUBLE_EQ(2 * at(one, TimeTerm::attention), at(two, TimeTerm::attention));
    EXPECT_DOUBLE_EQ(2 * one.model_flops, two.model_flops);
    EXPECT_DOUBLE_EQ(at(one, TimeTerm::bubble), at(two, TimeTerm::bubble));
}

// 1F1B idles (p-1)/(m+p-1) of the pipeline, interleaving v chunks a v-th of that (Narayanan et al. 2021, arXiv
// 2104.04473).
TEST(Pipeline, BubbleIsTheKnownFraction) {
    TrainingSetup setup = llama();
    setup.vocabulary = 0;
    setup.pipeline_host_s = 0;
    setup.device.inside = setup.device.across = {1e18, 0, 0};
    setup.device.launch_s = 0;
    fill_gemm_table(setup);
    const double p = 8, m = 24;
    const TrainingEstimate e = run(setup, {.pipeline = 8, .micro_batches = 24});
    const double busy =
        at(e, TimeTerm::matmul) + at(e, TimeTerm::attention) + at(e, TimeTerm::memory_bound) + at(e, TimeTerm::bubble);
    EXPECT_NEAR(at(e, TimeTerm::bubble) / busy, (p - 1) / (m + p - 1), 1e-9);
    const TrainingEstimate interleaved = run(setup, {.pipeline = 8, .virtual_stages = 4, .micro_batches = 24});
    EXPECT_NEAR(at(interleaved, TimeTerm::bubble), at(e, TimeTerm::bubble) / 4, 1e-9);
}

// Each rank sends 2 (d-1)/d of its gradients without sharding, the same with ZeRO-1, and gathers on every micro-batch
// with ZeRO-3.
TEST(Traffic, FollowsTheZeroPaper) {
    const TrainingSetup setup = llama();
    const double n = setup.total_params;
    EXPECT_NEAR(run(setup, {.data = 8, .micro_batches = 4}).gradient_bytes, 2 * 7.0 / 8 * 2 * n, 1);
    EXPECT_NEAR(run(setup, {.data = 8, .micro_batches = 4, .zero = 1}).gradient_bytes, 2 * 7.0 / 8 * 2 * n, 1);
    EXPECT_NEAR(run(setup, {.data = 8, .micro_batches = 4, .zero = 3}).gradient_bytes, 4 * 3 * 7.0 / 8 * 2 * n, 1);
    // Beside a pipeline the gathered weights are kept: what 405B on 512 GPUs was told eight times too slow for.
    const ParallelLayout few{.pipeline = 2, .data = 4, .micro_batches = 4, .zero = 3};
    ParallelLayout many = few;
    many.micro_batches = 64;
    EXPECT_NEAR(run(setup, few).gradient_bytes, run(setup, many).gradient_bytes, 1);
    const double area = 2.0 * 4096 * 4096;
    EXPECT_NEAR(run(setup, {.tensor = 8}).tensor_bytes, 32 * 4 * 2 * 7.0 / 8 * area, 1);
}

// F = 6 N + 6 L h s + 6 V h per token for a causal model, as MFU is usually counted (Llama-3-8B at 4k: 2 % from 6 N of
// the whole).
TEST(ModelFlops, CountCausalAttentionOnce) {
    const TrainingSetup setup = llama();
    const double layers = 32 * (setup.attention_params + setup.mlp_params);
    const double per_token = 6 * layers + 6.0 * 32 * 4096 * 4096 + 6 * setup.embedding_params;
    EXPECT_NEAR(model_flops(setup, 3), 3 * 4096 * per_token, 1e-9 * 3 * 4096 * per_token);
    TrainingSetup lora = setup;
    lora.method = Method::lora;
    EXPECT_LT(model_flops(lora, 1), 0.75 * model_flops(setup, 1));
}

// Full recompute adds a forward pass, and frees activations; what MFU counts stays.
TEST(RecomputeTime, IsOneForward) {
    const TrainingSetup setup = llama();
    const TrainingEstimate none = run(setup, {.data = 8, .zero = 3}),
                           full = run(setup, {.data = 8, .zero = 3, .recompute = Recompute::full});
    EXPECT_GT(full.step_s, none.step_s);
    EXPECT_LT(at(full, MemoryTerm::activations), 0.3 * at(none, MemoryTerm::activations));
    EXPECT_EQ(full.model_flops, none.model_flops);
    EXPECT_GT(full.hfu, full.mfu);
    EXPECT_EQ(at(run(setup, {.data = 8, .recompute = Recompute::selective}), TimeTerm::recompute), 0);
}

// Who recomputes a part of the layers pays for that part, in time and in memory; as many as there are is all of them.
TEST(RecomputeTime, OfSomeLayersIsTheirShare) {
    const TrainingSetup setup = llama();
    const ParallelLayout none{.tensor = 2, .pipeline = 2, .virtual_stages = 2, .data = 2, .micro_batches = 8};
    ParallelLayout full = none, some = none;
    full.recompute = some.recompute = Recompute::full;
    some.recompute_layers = 2;  // of the 8 of each of the 4 chunks
    const TrainingEstimate a = run(setup, none), b = run(setup, some), c = run(setup, full);
    EXPECT_NEAR(at(b, TimeTerm::recompute), at(c, TimeTerm::recompute) / 4, 1e-9 * c.step_s);
    EXPECT_LT(a.step_s, b.step_s);
    EXPECT_LT(b.step_s, c.step_s);
    EXPECT_LT(b.memory_bytes, a.memory_bytes);
    EXPECT_LT(c.memory_bytes, b.memory_bytes);
    some.recompute_layers = 8;
    EXPECT_DOUBLE_EQ(run(setup, some).step_s, c.step_s);
    EXPECT_DOUBLE_EQ(run(setup, some).memory_bytes, c.memory_bytes);
    EXPECT_EQ(describe(some).substr(describe(some).rfind("full")), "full recompute of 8 layers a chunk");
}

// A small model is bound by launches, and a faster GPU does not help.
TEST(LaunchFloor, DecidesSmallModels) {
    TrainingSetup setup = llama();
    setup.hidden = 256;
    setup.heads = setup.kv_heads = 4;
    setup.head_dim = 64;
    setup.ffn = 1024;
    setup.sequence = 128;
    setup.vocabulary = 1000;
    setup.attention_params = 4 * 256 * 256;
    setup.mlp_params = 3 * 256 * 1024;
    setup.embedding_params = 1000 * 256;
    setup.total_params = setup.trainable_params =
        32 * (setup.attention_params + setup.mlp_params) + 2 * setup.embedding_params;
    fill_gemm_table(setup);
    const TrainingEstimate e = run(setup, {.data = 8});
    EXPECT_EQ(e.bottleneck, Bottleneck::launch);
    EXPECT_GE(e.step_s, 32 * setup.kernels_per_layer * setup.device.launch_s);
}

// Host and device work side by side: the longer one decides, and together they take no more than a tenth longer. A
// layer with experts has more launches.
TEST(LaunchFloor, IsASmoothMaximum) {
    TrainingSetup setup = llama();
    const double alone = [&] {
        TrainingSetup none = setup;
        none.kernels_per_layer = 0;
        return run(none, {.data = 8}).step_s - none.host_step_s;
    }();
    double last = 0;
    for (double kernels = 1; kernels < 1e5; kernels *= 1.5) {
        setup.kernels_per_layer = kernels;
        const TrainingEstimate e = run(setup, {.data = 8});
        const double floor = 32 * kernels * setup.device.launch_s;
        EXPECT_GE(e.step_s, last);
        EXPECT_GE(e.step_s, floor);
        EXPECT_LE(e.step_s - setup.host_step_s, 1.1 * alone + floor * 1.1);
        last = e.step_s;
    }
    TrainingSetup moe = llama(true), many = moe;
    many.moe_kernels = 50;
    EXPECT_GT(at(run(many, {.data = 8}), TimeTerm::launch), at(run(moe, {.data = 8}), TimeTerm::launch));
}

// A code base that pipelines tensor-parallel communication with its products hides a share of it, never all, and never
// more than there are products to hide it behind.
TEST(TensorOverlap, HidesAShare) {
    TrainingSetup setup = llama();
    setup.kernels_per_layer = 0;
    const ParallelLayout layout{.tensor = 4, .data = 2, .sequence_parallel = true};
    const double open = at(run(setup, layout), TimeTerm::tensor_comm);
    setup.overlap_tensor = 0.7;
    const TrainingEstimate e = run(setup, layout);
    const double slow = setup.overlap_slowdown;
    EXPECT_NEAR(at(e, TimeTerm::tensor_comm), open * (0.3 + 0.7 * slow), 1e-9 * open);
    setup.device.inside.bytes_per_second /= 1000;
    const TrainingEstimate slowly = run(setup, layout);
    EXPECT_GT(at(slowly, TimeTerm::tensor_comm), at(slowly, TimeTerm::matmul) * 10);
    TrainingSetup moe = llama(true);
    const ParallelLayout experts{.expert = 8, .data = 8};
    const double exchanged = at(run(moe, experts), TimeTerm::expert_comm);
    moe.overlap_expert = 0.5;
    EXPECT_LT(at(run(moe, experts), TimeTerm::expert_comm), 0.7 * exchanged);
}

// Storage or decoding slower than the GPUs becomes a stall that fills the step to their pace.
TEST(DataStall, FillsTheStep) {
    TrainingSetup setup = llama();
    setup.decode_s_per_example = 100;
    const TrainingEstimate e = run(setup, {.data = 8, .zero = 3});
    EXPECT_NEAR(e.step_s, 8 * 100.0 / 96, 1e-9);
    EXPECT_EQ(e.bottleneck, Bottleneck::input);
    setup.decode_s_per_example = 0;
    setup.bytes_per_example = 1e9;
    setup.storage_bytes_per_s = 1e8;
    EXPECT_NEAR(run(setup, {.data = 8, .zero = 3}).step_s, 80, 1e-9);
}

// Convolution networks are counted by samples, and cannot be cut.
TEST(SampleModels, UseFlopsAndActivations) {
    TrainingSetup setup;
    setup.device = a100_node();
    setup.transformer = false;
    setup.total_params = setup.trainable_params = 25.6e6;
    setup.sample_forward_flops = 8.2e9;
    setup.sample_activation_bytes = 44e6;
    const TrainingEstimate e = run(setup, {.data = 8, .micro_batch = 256});
    EXPECT_EQ(e.refused, Reason::none);
    const double images_per_s = 256 / e.step_s;
    // MLPerf v2.0: 2,808 images/s per A100, tuned.
    EXPECT_GT(images_per_s, 1400);
    EXPECT_LT(images_per_s, 5600);
    EXPECT_EQ(run(setup, {.tensor = 2, .data = 4}).refused, Reason::shape_indivisible);
}

// A detector whose stem is frozen is not told to take as long as one that trains all of it: of the frozen layers only
// the forward products and passes count.
TEST(SampleModels, FrozenLayersGoForwardOnly) {
    TrainingSetup setup;
    setup.device = a100_node();
    setup.transformer = false;
    setup.total_params = setup.trainable_params = 44e6;
    setup.sample_forward_flops = 550e9;
    setup.sample_activation_bytes = 1.4e9;
    const ParallelLayout layout{.data = 8, .micro_batch = 4};
    const TrainingEstimate all = run(setup, layout);
    setup.sample_frozen_flops = 300e9;
    EXPECT_NEAR(at(run(setup, layout), TimeTerm::matmul) / at(all, TimeTerm::matmul), (3 * 550.0 - 2 * 300) / (3 * 550),
                1e-9);
    setup.sample_activation_bytes = 0.8e9;
    setup.sample_frozen_bytes = 0.6e9;
    EXPECT_NEAR(at(run(setup, layout), TimeTerm::memory_bound) / at(all, TimeTerm::memory_bound), 1.0 / 1.4, 1e-9);
}

// Two heads of one sequence on a rank are no multiple of four: Megatron's fused softmax does not take them.
TEST(Attention, FallsBackWhereTheFusedSoftmaxDoesNotFit) {
    TrainingSetup setup = llama();
    setup.flash = false;
    setup.heads = setup.kv_heads = 16;
    const ParallelLayout fits{.tensor = 8, .micro_batch = 2}, odd{.tensor = 8, .micro_batch = 1, .micro_batches = 2};
    const double before = at(run(setup, odd), TimeTerm::attention) / at(run(setup, fits), TimeTerm::attention);
    setup.fused_softmax_multiple = 4;
    setup.fallback_passes = 3 * setup.unfused_passes;
    EXPECT_GT(at(run(setup, odd), TimeTerm::attention) / at(run(setup, fits), TimeTerm::attention), 1.5 * before);
}

// Columns that no tensor core takes whole: padded where ranks share them, as they are where one has them all.
TEST(Logits, OddVocabulariesCostWhereNothingPadsThem) {
    TrainingSetup setup = llama();
    setup.vocabulary = 50257;
    const double padded = gemm_times(setup, 1, 8192).logits_forward;
    setup.pads_whole_vocabulary = false;
    EXPECT_GT(gemm_times(setup, 1, 8192).logits_forward, 1.2 * padded);
    EXPECT_NEAR(gemm_times(setup, 2, 8192).logits_forward, 0.5 * padded, 0.1 * padded);
    setup.vocabulary = 50304;
    EXPECT_NEAR(gemm_times(setup, 1, 8192).logits_forward, padded, 0.01 * padded);
}

// A CPU node is the same engine with other numbers: no libraries, no waves, one rank.
TEST(CpuTraining, IsTheSameEngine) {
    TrainingSetup setup = llama();
    setup.device = Device{};
    setup.device.gpu = false;
    setup.device.matmul_flops.fill(0.7e12);
    setup.device.peak_flops.fill(1.4e12);
    setup.device.memory_bytes = 512e9;
    setup.device.memory_bytes_per_s = 200e9;
    setup.device.across = {1.4e9, 30e-6, 5e4};
    setup.framework_bytes = 0;
    fill_gemm_table(setup);
    const TrainingEstimate e = run(setup, {.data = 8, .zero = 3});
    EXPECT_EQ(e.refused, Reason::none);
    EXPECT_EQ(at(e, MemoryTerm::fragmentation), 0);
    EXPECT_GT(e.step_s, 100);
}

// The hot path: no allocation, whatever the layout.
TEST(Evaluate, NeverAllocates) {
    const TrainingSetup setup = llama(true);
    std::mt19937_64 random(13);
    std::vector<ParallelLayout> layouts;
    for (int i = 0; i < 1000; ++i) layouts.push_back(random_layout(random, true));
    TrainingEstimate out;
    const long before = allocations.load();
    double sum = 0;
    for (const ParallelLayout& layout : layouts) {
        evaluate(setup, layout, layout.gpus() / 8, out);
        sum += out.step_s;
    }
    EXPECT_EQ(allocations.load(), before);
    EXPECT_GT(sum, 0);
}

// The interval is wider beyond the scale of published runs and on devices nobody measured, and longer to the slow side.
TEST(StepInterval, WidensWithDistance) {
    const TrainingSetup setup = llama();
    const ParallelLayout small{.data = 64, .zero = 3}, large{.data = 1024, .zero = 3};
    const TrainingEstimate e = run(setup, small);
    const Range near = step_interval(setup, small, e), far = step_interval(setup, large, e);
    EXPECT_GT(far.high, near.high);
    EXPECT_LT(far.low, near.low);
    EXPECT_GT(std::log(near.high), -std::log(near.low));
    TrainingSetup unknown = setup;
    unknown.device.sigma = 0.22;
    EXPECT_GT(step_interval(unknown, small, e).high, near.high);
}

}  // namespace
}  // namespace stoker

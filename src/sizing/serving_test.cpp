// Memory, offline throughput, sustained rate and batches, on setups built by hand so that no catalogue figure moves
// them.
#include "sizing/serving.h"

#include <gtest/gtest.h>

#include "sizing/kv_cache.h"

namespace stoker {
namespace {

void set(Device& d, Precision p, double flops) {
    d.peak_flops[static_cast<std::size_t>(p)] = flops;
    d.supports |= 1u << static_cast<int>(p);
}

Device h100() {
    Device d;
    d.memory_bytes = 79.6 * kGiB;
    d.memory_bytes_per_s = 3.35e12;
    d.devices_per_node = 8;
    d.scale_up_domain = 8;
    d.inside = {450e9 * 0.8, 2e-6, 1e6};
    set(d, Precision::bf16, 989e12);
    set(d, Precision::fp16, 989e12);
    set(d, Precision::fp8, 1979e12);
    return d;
}

Device t4() {
    Device d;
    d.memory_bytes = 15.0 * kGiB;
    d.memory_bytes_per_s = 320e9;
    set(d, Precision::fp16, 65e12);
    set(d, Precision::int8, 130e12);
    return d;
}

struct Shape {
    double layers, hidden, heads, kv_heads, ffn, vocabulary, weight_bytes;
};

ServingSetup llama(Device device, Shape m) {
    ServingSetup s;
    s.device = device;
    s.layers = s.dense_layers = m.layers;
    s.hidden = m.hidden;
    s.heads = m.heads;
    s.kv_heads = m.kv_heads;
    s.head_dim = m.hidden / m.heads;
    s.ffn = m.ffn;
    s.vocabulary = m.vocabulary;
    s.attention_params = 2 * m.hidden * m.hidden + 2 * m.hidden * m.kv_heads * s.head_dim;
    s.mlp_params = 3 * m.hidden * m.ffn;
    s.head_params = m.vocabulary * m.hidden;
    s.embedding_params = 2 * s.head_params;
    s.total_params = s.active_params = s.layers * (s.attention_params + s.mlp_params) + s.embedding_params;
    s.weight_bytes_per_param = m.weight_bytes;
    s.weight_bytes = (s.total_params - s.embedding_params) * m.weight_bytes + s.embedding_params * 2;
    s.kv_bytes_per_token = 2 * m.layers * m.kv_heads * s.head_dim * 2;
    s.decode_attention_flops = s.prompt_attention_flops = 4 * m.layers * m.hidden;
    s.framework_bytes = kGiB;
    s.communication_bytes = 0.365 * kGiB;
    s.compute_precision = m.weight_bytes == 1 ? Precision::fp8 : Precision::fp16;
    s.prompt_tokens = 1000;
    s.output_tokens = 200;
    return s;
}

const Shape k70B{80, 8192, 64, 8, 28672, 128256, 1}, k8B{32, 4096, 32, 8, 14336, 128256, 2};

// Llama-3 70B in FP8 fits one H100, but leaves the cache a sliver: a few percent of what two would have.
TEST(ServingMemory, Llama70BInFp8FitsOneH100WithLittleRoomForTheCache) {
    const ServingSetup s = llama(h100(), k70B);
    const ServingMemory one = serving_memory(s, {1, 1}), two = serving_memory(s, {2, 1});
    EXPECT_EQ(one.refused, Reason::none);
    EXPECT_GE(one.kv_tokens, 1200);
    EXPECT_LT(one.kv_tokens, 20000);
    EXPECT_GT(two.kv_tokens, 10 * one.kv_tokens);
    EXPECT_GT(offline_throughput(s, {2, 1}).output_tokens_per_s, 3 * offline_throughput(s, {1, 1}).output_tokens_per_s);
}

// A T4 with about 15 GiB usable takes 7B in INT8 and not 13B in FP16; the refusal says by how much.
TEST(ServingMemory, A7BModelInInt8FitsAT4AndA13BInFp16DoesNot) {
    ServingSetup seven = llama(t4(), {32, 4096, 32, 32, 11008, 32000, 1});
    seven.compute_precision = Precision::int8;
    EXPECT_EQ(serving_memory(seven, {1, 1}).refused, Reason::none);
    const ServingMemory thirteen = serving_memory(llama(t4(), {40, 5120, 40, 40, 13824, 32000, 2}), {1, 1});
    EXPECT_EQ(thirteen.refused, Reason::memory);
    EXPECT_GT(thirteen.need, thirteen.have + 10 * kGiB);
}

// What the parts of the memory add up to never exceeds what there is.
TEST(ServingMemory, TermsStayWithinTheDevice) {
    for (const int t : {1, 2, 4, 8}) {
        const ServingSetup s = llama(h100(), k8B);
        const ServingMemory m = serving_memory(s, {t, 1});
        double sum = 0;
        for (const double b : m.bytes) sum += b;
        EXPECT_LE(sum, m.have);
        EXPECT_GT(sum, 0.99 * m.have);
    }
}

// Heads that do not split over the ranks are refused with both numbers; so are more stages than layers.
TEST(ServingMemory, IndivisibleShapesAreRefused) {
    const ServingMemory m = serving_memory(llama(h100(), k8B), {6, 1});
    EXPECT_EQ(m.refused, Reason::shape_indivisible);
    EXPECT_EQ(m.have, 32);
    EXPECT_EQ(m.need, 6);
    EXPECT_EQ(serving_memory(llama(h100(), k8B), {1, 33}).refused, Reason::shape_indivisible);
}

// A precision the device does not have stays refused whatever the shape, and the simulator does not run it.
TEST(ServingMemory, APrecisionThatIsMissingIsRefusedEverywhere) {
    ServingSetup s = llama(t4(), k8B);
    s.refused = Reason::precision_unsupported;
    EXPECT_EQ(serving_memory(s, {2, 1}).refused, Reason::precision_unsupported);
    EXPECT_EQ(offline_throughput(s, {2, 1}).output_tokens_per_s, 0);
    EXPECT_TRUE(simulate_serving(s, {2, 1}, {.requests_per_second = 1}).saturated);
    EXPECT_EQ(sustained_rate(s, {2, 1}, {}), 0);
}

// Looser limits never lower the rate, a slower engine never raises it, and an impossible limit gives none.
TEST(SustainedRate, FollowsTheObjective) {
    const ServingSetup s = llama(h100(), k8B);
    LatencySpec tight, loose, impossible;
    tight.ttft_p95 = Seconds(0.15);
    loose.ttft_p95 = Seconds(2);
    impossible.ttft_p95 = Seconds(1e-4);
    const double a = sustained_rate(s, {1, 1}, tight), b = sustained_rate(s, {1, 1}, loose);
    EXPECT_GT(a, 0);
    EXPECT_LE(a, b);
    EXPECT_LT(sustained_rate(s, {1, 1}, tight, 1.3), a);
    EXPECT_EQ(sustained_rate(s, {1, 1}, impossible), 0);
    // No limit: what an unbounded queue would still drain.
    const double open = sustained_rate(s, {1, 1}, {});
    EXPECT_GE(open, b);
    EXPECT_LT(open, 1.6 * offline_throughput(s, {1, 1}).requests_per_s);
}

// A guess saves work and changes the answer by no more than the bisection's own step, however wrong it is.
TEST(SustainedRate, AGuessOnlySavesWork) {
    ServingSetup s = llama(h100(), k8B);
    s.prompt_cv = s.output_cv = 0.5;
    LatencySpec limit;
    limit.ttft_p95 = Seconds(0.4);
    SimulatedWork plain, guessed;
    const double rate = sustained_rate(s, {1, 1}, limit, 1, 0, &plain);
    for (const double off : {0.1, 0.7, 1.0, 1.5, 30.0})
        EXPECT_NEAR(sustained_rate(s, {1, 1}, limit, 1, off * rate), rate, 0.06 * rate) << off;
    sustained_rate(s, {1, 1}, limit, 1, rate, &guessed);
    EXPECT_LE(4 * guessed.runs, 3 * plain.runs);
    EXPECT_GT(plain.decisions, plain.runs);
}

// The rate found keeps the objective in a fresh run with other requests, within the noise of a percentile.
TEST(SustainedRate, HoldsOnRequestsItHasNotSeen) {
    ServingSetup s = llama(h100(), k8B);
    s.prompt_cv = s.output_cv = 0.5;
    LatencySpec limit;
    limit.ttft_p95 = Seconds(0.3);
    const double rate = sustained_rate(s, {1, 1}, limit);
    const ServingOutcome o =
        simulate_serving(s, {1, 1}, {.requests_per_second = rate * 0.97, .seed = 77, .requests = 5000});
    EXPECT_FALSE(o.saturated);
    EXPECT_LT(o.ttft_p95, 0.3 * 1.25);
}

// BERT-base at 128 tokens on a CPU node and on a T4: one pass per example, more examples take longer and cost less
// each.
TEST(BatchSeconds, GrowsWithTheBatchAndAmortises) {
    ServingSetup s;
    s.device = t4();
    s.decoder = false;
    s.policy = SchedulerPolicy::fixed_batch;
    s.compute_precision = Precision::fp16;
    s.layers = 12;
    s.hidden = 768;
    s.weight_bytes = s.total_params = 2 * 110e6;
    s.sample_forward_flops = 2 * 85e6 * 128;
    s.sample_bytes = 128 * 12 * 10000;
    s.sample_kernels = 300;
    s.prompt_tokens = 128;
    s.output_tokens = 1;
    double last = 0, each = 1e9;
    for (const double b : {1.0, 2.0, 8.0, 32.0, 128.0}) {
        const double t = batch_seconds(s, b);
        EXPECT_GE(t, last);
        EXPECT_LE(t / b, each);
        last = t;
        each = t / b;
    }
    const ServingOutcome o = simulate_serving(s, {1, 1}, {.requests_per_second = 200, .requests = 4000});
    EXPECT_FALSE(o.saturated);
    EXPECT_NEAR(o.requests_per_s, 200, 10);
    EXPECT_GE(o.e2e_p50, batch_seconds(s, 1));
    LatencySpec limit;
    limit.p95 = Seconds(0.05);
    const double rate = sustained_rate(s, {1, 1}, limit);
    EXPECT_GT(rate, 200);
    EXPECT_LT(rate, 128 / batch_seconds(s, 128) * 1.2);
}

// A 350M model answers on a CPU node; 70B would take the better part of a second per token.
TEST(Cpu, SmallModelsServeAndLargeOnesCrawl) {
    Device d;
    d.gpu = false;
    d.memory_bytes = 256 * kGiB;
    d.memory_bytes_per_s = 150e9;
    set(d, Precision::fp32, 3e12);
    set(d, Precision::bf16, 6e12);
    const auto on_cpu = [&](Shape m) {
        ServingSetup s = llama(d, m);
        s.compute_precision = Precision::bf16;
        s.weight_read_efficiency = s.kv_read_efficiency = 0.75;
        s.compute_efficiency = s.prefill_efficiency = 0.5;
        return s;
    };
    const double small = step_seconds(on_cpu({24, 1024, 16, 16, 2816, 50000, 2}), {1, 1}, 1, 500, 0, 0);
    const double large = step_seconds(on_cpu({80, 8192, 64, 8, 28672, 128256, 2}), {1, 1}, 1, 500, 0, 0);
    EXPECT_LT(small, 0.02);
    EXPECT_GT(large, 1.0);
    EXPECT_EQ(decode_bound(on_cpu(k8B), {1, 1}, 1, 500), Bottleneck::memory_bandwidth);
}

}  // namespace
}  // namespace stoker

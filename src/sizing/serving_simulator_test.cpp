// The event simulation against queueing theory and against its own books.
#include "sizing/serving_traffic.h"

#include <gtest/gtest.h>

#include <array>

#include "sizing/serving_step.h"

namespace stoker {
namespace {

constexpr std::array kPolicies{SchedulerPolicy::chunked, SchedulerPolicy::prefill_first, SchedulerPolicy::in_flight,
                               SchedulerPolicy::fixed_batch};

// An 8B model on something like an H100.
ServingSetup engine() {
    ServingSetup s;
    s.device.memory_bytes = 79.6 * kGiB;
    s.device.memory_bytes_per_s = 3.35e12;
    s.device.devices_per_node = 8;
    s.device.scale_up_domain = 8;
    s.device.inside = {360e9, 2e-6, 1e6};
    s.device.peak_flops[static_cast<std::size_t>(Precision::bf16)] = 989e12;
    s.layers = s.dense_layers = 32;
    s.hidden = 4096;
    s.heads = 32;
    s.kv_heads = 8;
    s.head_dim = 128;
    s.ffn = 14336;
    s.vocabulary = 128256;
    s.attention_params = 42e6;
    s.mlp_params = 176e6;
    s.head_params = 525e6;
    s.embedding_params = 1050e6;
    s.total_params = s.active_params = 8.03e9;
    s.weight_bytes = 16.06e9;
    s.kv_bytes_per_token = 131072;
    s.decode_attention_flops = s.prompt_attention_flops = 4 * 32 * 4096;
    s.framework_bytes = kGiB;
    s.prompt_tokens = 1000;
    s.output_tokens = 200;
    s.prompt_cv = s.output_cv = 0.6;
    return s;
}

// The same with so little memory that sequences throw each other out.
ServingSetup cramped() {
    ServingSetup s = engine();
    s.device.memory_bytes = (16.06e9 + 131072.0 * 12000 + 1.1 * kGiB) / 0.9 + 1.1e9;
    s.token_budget = 2048;
    return s;
}

// Requests one at a time with a constant service time and Poisson arrivals: the mean wait is rho s / (2 (1 - rho))
// (Pollaczek, Khinchine).
TEST(Simulator, OneAtATimeIsTheMD1Queue) {
    ServingSetup s = engine();
    s.policy = SchedulerPolicy::fixed_batch;
    s.max_sequences = s.output_tokens = 1;
    s.prompt_cv = s.output_cv = 0;
    const double service = step_seconds(s, {1, 1}, 0, 0, 1000, 0);
    for (const double rho : {0.3, 0.6, 0.8}) {
        const ServingOutcome o =
            simulate_serving(s, {1, 1}, {.requests_per_second = rho / service, .seed = 5, .requests = 400000});
        EXPECT_NEAR(o.ttft_mean - service, rho * service / (2 * (1 - rho)), 0.04 * service * rho / (1 - rho)) << rho;
        EXPECT_NEAR(o.busy, rho, 0.01);
        EXPECT_FALSE(o.saturated);
    }
}

// Little's law: requests in the system = rate x time in the system, both measured on their own.
TEST(Simulator, ObeysLittlesLaw) {
    for (const SchedulerPolicy policy : kPolicies) {
        ServingSetup s = engine();
        s.policy = policy;
        const double rate = policy == SchedulerPolicy::fixed_batch ? 8 : 12;
        const ServingOutcome o = simulate_serving(s, {1, 1}, {.requests_per_second = rate, .requests = 8000});
        ASSERT_FALSE(o.saturated);
        EXPECT_NEAR(o.mean_in_system, o.requests_per_s * o.e2e_mean, 0.03 * o.mean_in_system)
            << static_cast<int>(policy);
        EXPECT_NEAR(o.requests_per_s, rate, 0.04 * rate);
    }
    const ServingOutcome closed = simulate_serving(engine(), {1, 1}, {.concurrency = 64, .requests = 4000});
    EXPECT_NEAR(closed.mean_in_system, 64, 1e-6);
    EXPECT_NEAR(closed.requests_per_s * closed.e2e_mean, 64, 2);
}

// Clients who think: clients = rate x (time to answer + time to think), and those who think long are a Poisson stream.
TEST(Simulator, ClientsWhoThinkObeyLittlesLaw) {
    for (const double think : {1.0, 20.0}) {
        const ServingOutcome o =
            simulate_serving(engine(), {1, 1}, {.concurrency = 60, .think_s = think, .requests = 6000});
        EXPECT_NEAR(o.requests_per_s * (o.e2e_mean + think), 60, 4) << think;
    }
    const ServingOutcome many =
        simulate_serving(engine(), {1, 1}, {.concurrency = 2000, .think_s = 400, .requests = 8000});
    const ServingOutcome open =
        simulate_serving(engine(), {1, 1}, {.requests_per_second = many.requests_per_s, .requests = 8000});
    EXPECT_NEAR(many.ttft_p95, open.ttft_p95, 0.15 * open.ttft_p95);
}

// The most clients within a limit keep it, and one replica carries more of them when they think or may wait longer.
TEST(Simulator, CarriedClientsKeepTheLimit) {
    LatencySpec tight, loose;
    tight.tpot_p95 = Seconds(0.03);
    loose.tpot_p95 = Seconds(0.06);
    const double few = carried_clients(engine(), {1, 1}, tight, 0, 1e6),
                 more = carried_clients(engine(), {1, 1}, loose, 0, 1e6),
                 thinking = carried_clients(engine(), {1, 1}, tight, 30, 1e6);
    EXPECT_GE(few, 1);
    EXPECT_GT(more, few);
    EXPECT_GT(thinking, 2 * few);
    EXPECT_EQ(carried_clients(engine(), {1, 1}, tight, 0, few), few);
    EXPECT_LE(simulate_serving(engine(), {1, 1}, {.concurrency = few, .requests = 2000}).tpot_p95, 0.03);
    EXPECT_GT(simulate_serving(engine(), {1, 1}, {.concurrency = 1.2 * few + 2, .requests = 2000}).tpot_p95, 0.03);
}

// A prefix that the cache has is read but neither computed nor held by each request.
TEST(Simulator, ACachedPrefixIsNotComputed) {
    ServingSetup s = engine(), cached = engine();
    s.prompt_cv = cached.prompt_cv = 0;
    cached.cached_tokens = 800;
    for (const SchedulerPolicy policy : kPolicies) {
        s.policy = cached.policy = policy;
        const ServingOutcome plain = simulate_serving(s, {1, 1}, {.concurrency = 1, .requests = 50}),
                             warm = simulate_serving(cached, {1, 1}, {.concurrency = 1, .requests = 50});
        EXPECT_NEAR(warm.ttft_p50, step_seconds(s, {1, 1}, 0, 0, 200, 800), 1e-9);
        EXPECT_LT(warm.ttft_p50, plain.ttft_p50);
        EXPECT_NEAR(warm.tpot_p50, plain.tpot_p50, 1e-9);  // the whole context is still read
        EXPECT_LT(simulate_serving(cached, {1, 1}, {.concurrency = 48, .requests = 500}).peak_kv_share,
                  simulate_serving(s, {1, 1}, {.concurrency = 48, .requests = 500}).peak_kv_share);
    }
    EXPECT_GT(serving_memory(cached, {1, 1}).max_batch, 0);
}

// Nothing is lost and nothing counted twice, whatever the policy and however often sequences are thrown out.
TEST(Simulator, KeepsItsBooks) {
    for (const ServingSetup& base : {engine(), cramped()}) {
        for (const SchedulerPolicy policy : kPolicies) {
            for (const double window : {0.0, 700.0}) {
                ServingSetup s = base;
                s.policy = policy;
                s.sliding_window = window;
                const ServingOutcome o = simulate_serving(s, {1, 1}, {.concurrency = 48, .seed = 3, .requests = 1000});
                EXPECT_GE(o.measured, 900);
                EXPECT_GE(o.finished, o.measured);
                EXPECT_LE(o.peak_kv_share, 1.0);
                EXPECT_GT(o.peak_kv_share, 0.0);
                EXPECT_LE(o.busy, 1.0 + 1e-9);
                EXPECT_GE(o.ttft_p95, o.ttft_p50);
                EXPECT_GE(o.e2e_p50, o.ttft_p50);
                const bool reserved = policy == SchedulerPolicy::in_flight || policy == SchedulerPolicy::fixed_batch;
                EXPECT_TRUE(!reserved || o.preemptions == 0);
            }
        }
    }
    ServingSetup s = cramped();
    s.output_tokens = 600;
    EXPECT_GT(simulate_serving(s, {1, 1}, {.concurrency = 48, .requests = 1000}).preemptions, 0);
}

// Tokens out are the tokens asked for.
TEST(Simulator, CountsEveryOutputToken) {
    ServingSetup s = engine();
    s.output_cv = s.prompt_cv = 0;
    const ServingOutcome o = simulate_serving(s, {1, 1}, {.requests_per_second = 5, .requests = 1000});
    EXPECT_EQ(o.tokens, o.finished * 200);
    EXPECT_NEAR(o.output_tokens_per_s, 200 * o.requests_per_s, 0.02 * o.output_tokens_per_s);
}

// With one length for all, E2E = TTFT + TPOT (OSL - 1) holds for the single request exactly.
TEST(Simulator, EndToEndIsFirstTokenPlusTheRest) {
    ServingSetup s = engine();
    s.output_cv = s.prompt_cv = 0;
    for (const SchedulerPolicy policy : kPolicies) {
        s.policy = policy;
        const ServingOutcome o = simulate_serving(s, {1, 1}, {.concurrency = 1, .requests = 50});
        EXPECT_NEAR(o.e2e_p50, o.ttft_p50 + o.tpot_p50 * 199, 1e-9);
        EXPECT_NEAR(o.ttft_p50, step_seconds(s, {1, 1}, 0, 0, 1000, 0), 1e-9);
        // Alone, each token takes one decode step; the mean context is in the middle.
        EXPECT_NEAR(o.tpot_p50, step_seconds(s, {1, 1}, 1, 1000 + 100, 0, 0), 1e-6);
    }
}

// Steps taken together cost what they cost one by one: a closed loop of two in lockstep, worked out by adding steps.
TEST(Simulator, SkippingAheadChangesNothing) {
    ServingSetup s = engine();
    s.output_cv = s.prompt_cv = 0;
    s.output_tokens = 50;
    s.prompt_tokens = 100;
    const ServingOutcome o = simulate_serving(s, {1, 1}, {.concurrency = 2, .requests = 40, .burst = true});
    const StepModel model(s, {1, 1});
    StepWork work;
    work.add_prompt(100, 0, true);
    work.add_prompt(100, 0, true);
    double all = model.seconds(work);
    for (int i = 0; i < 49; ++i) {
        StepWork decode;
        decode.decode = 2;
        decode.context = 2 * (101 + i);
        all += model.seconds(decode);
    }
    EXPECT_NEAR(o.e2e_p50, all, 1e-9);
    EXPECT_LT(o.decisions * 10, o.steps);
}

// Steps are taken together wherever nothing else happens, also where windows fill up one after the other: to the user
// the run is the one that a step at a time gives, and long answers cost no more than short ones.
TEST(Simulator, RunsOfStepsAgreeWithSingleSteps) {
    for (const ServingSetup& base : {engine(), cramped()}) {
        for (const SchedulerPolicy policy : kPolicies) {
            for (const double window : {0.0, 700.0, 1101.0}) {
                ServingSetup s = base;
                s.policy = policy;
                s.sliding_window = window;
                s.output_tokens = 400;
                for (ServingLoad load : {ServingLoad{.concurrency = 40, .seed = 5, .requests = 400},
                                         ServingLoad{.requests_per_second = 3, .seed = 6, .requests = 400}}) {
                    const ServingOutcome together = simulate_serving(s, {1, 1}, load);
                    load.single_steps = true;
                    const ServingOutcome single = simulate_serving(s, {1, 1}, load);
                    EXPECT_NEAR(together.e2e_p95, single.e2e_p95, 1e-3 * single.e2e_p95) << window;
                    EXPECT_NEAR(together.ttft_p95, single.ttft_p95, 2e-2 * single.ttft_p95 + 1e-3) << window;
                    EXPECT_NEAR(together.tpot_mean, single.tpot_mean, 1e-3 * single.tpot_mean) << window;
                    EXPECT_NEAR(together.peak_kv_share, single.peak_kv_share, 0.01) << window;
                    EXPECT_LT(together.decisions, single.decisions) << window;
                }
            }
        }
    }
}

// An answer ten times as long is no more work to simulate: a plan for long answers is made as fast.
TEST(Simulator, LongAnswersAreNoMoreWork) {
    for (const double window : {0.0, 4096.0}) {
        ServingSetup s = engine();
        s.sliding_window = window;
        s.prompt_tokens = 3000;
        const auto work_of = [&](double output) {
            s.output_tokens = output;
            const ServingOutcome o =
                simulate_serving(s, {1, 1}, {.requests_per_second = 100 / output, .requests = 500});
            return static_cast<double>(o.decisions) / static_cast<double>(o.finished);
        };
        EXPECT_LT(work_of(3000), 2 * work_of(300) + 2) << window;
        EXPECT_LT(work_of(3000), 12) << window;
    }
}

// The same seed gives the same run to the last bit; another seed another run of the same system.
TEST(Simulator, IsDeterministicBySeed) {
    const ServingLoad load{.requests_per_second = 8, .seed = 9, .requests = 2000};
    const ServingOutcome a = simulate_serving(engine(), {1, 1}, load), b = simulate_serving(engine(), {1, 1}, load);
    EXPECT_EQ(a.ttft_p99, b.ttft_p99);
    EXPECT_EQ(a.e2e_mean, b.e2e_mean);
    EXPECT_EQ(a.steps, b.steps);
    ServingLoad other = load;
    other.seed = 10;
    const ServingOutcome c = simulate_serving(engine(), {1, 1}, other);
    EXPECT_NE(a.ttft_p99, c.ttft_p99);
    EXPECT_NEAR(a.tpot_p50, c.tpot_p50, 0.1 * a.tpot_p50);
}

// The same requests closer together never wait less, and end in saturation that is told.
TEST(Simulator, MoreLoadNeverShortensTheWait) {
    for (const SchedulerPolicy policy : kPolicies) {
        ServingSetup s = engine();
        s.policy = policy;
        double last = 0;
        bool saturated = false;
        for (const double rate : {1.0, 4.0, 10.0, 20.0, 40.0, 80.0, 200.0}) {
            const ServingOutcome o = simulate_serving(s, {1, 1}, {.requests_per_second = rate, .requests = 2000});
            // A fixed batch at a low rate is shorter the more often it is cut, so it may fall a little.
            EXPECT_GE(o.ttft_p95, last * 0.97) << static_cast<int>(policy) << " at " << rate;
            last = o.ttft_p95;
            saturated = o.saturated;
        }
        EXPECT_TRUE(saturated) << static_cast<int>(policy);
    }
}

// Twice the bandwidth, twice the compute, or a lower `speed` factor: never slower.
TEST(Simulator, AFasterDeviceIsNeverSlower) {
    const ServingLoad load{.requests_per_second = 15, .requests = 2000};
    const ServingOutcome base = simulate_serving(engine(), {1, 1}, load);
    ServingSetup wide = engine(), strong = engine();
    wide.device.memory_bytes_per_s *= 2;
    for (double& f : strong.device.peak_flops) f *= 2;
    for (const ServingSetup& s : {wide, strong}) {
        const ServingOutcome o = simulate_serving(s, {1, 1}, load);
        EXPECT_LE(o.ttft_p95, base.ttft_p95 * 1.001);
        EXPECT_LE(o.e2e_p50, base.e2e_p50 * 1.001);
    }
    ServingLoad slow = load;
    slow.speed = 1.2;
    EXPECT_GT(simulate_serving(engine(), {1, 1}, slow).e2e_p50, base.e2e_p50);
}

// Chunks protect those that decode; whole prompts first make them wait.
TEST(Simulator, ChunksKeepTheTimePerTokenSteady) {
    ServingSetup chunked = engine(), first = engine();
    chunked.token_budget = 1024;
    for (ServingSetup* s : {&chunked, &first}) {
        s->prompt_tokens = 6000;
        s->output_tokens = 100;
    }
    first.policy = SchedulerPolicy::prefill_first;
    const ServingLoad load{.requests_per_second = 4, .requests = 3000};
    const ServingOutcome a = simulate_serving(chunked, {1, 1}, load), b = simulate_serving(first, {1, 1}, load);
    EXPECT_LE(b.ttft_p50, a.ttft_p50);
    EXPECT_LE(a.mean_batch, 256);
    EXPECT_GT(a.steps, 0);
}

// Odd questions end, and with an answer that says so.
TEST(Simulator, AlwaysEnds) {
    ServingSetup s = engine();
    EXPECT_EQ(simulate_serving(s, {1, 1}, {}).steps, 0);
    EXPECT_TRUE(simulate_serving(s, {1, 1}, {.requests_per_second = 1e9}).saturated);
    s.prompt_tokens = 200000;
    EXPECT_GT(simulate_serving(s, {1, 1}, {.requests_per_second = 0.01, .requests = 50}).measured, 0);
    s = engine();
    s.prompt_tokens = s.output_tokens = 1;
    EXPECT_GT(simulate_serving(s, {1, 1}, {.concurrency = 5000, .requests = 50}).measured, 0);
    s.prompt_cv = s.output_cv = 4;
    for (const SchedulerPolicy policy : kPolicies) {
        s.policy = policy;
        s.token_budget = 300;
        EXPECT_GT(simulate_serving(s, {2, 2}, {.concurrency = 700, .requests = 500}).measured, 0);
    }
}

// The generators have the mean and the spread they are asked for; a request does not depend on the rate or the policy.
// A run of a benchmark client: its burst waits for all prompts before it, what follows hardly waits, and both are told.
TEST(Simulator, ABurstIsToldApartFromWhatFollows) {
    ServingSetup s = engine();
    s.prompt_cv = s.output_cv = 0.1;
    const ServingOutcome o = simulate_serving(s, {1, 1}, {.concurrency = 32, .rounds = 4, .burst = true});
    EXPECT_EQ(o.measured, 128);
    EXPECT_EQ(o.finished, 128);
    EXPECT_GT(o.ttft_first_mean, 2 * o.ttft_mean);
    EXPECT_GT(o.ttft_mean, 0);
    EXPECT_GT(o.tpot_mean, 0);
}

// One front end tokenises a burst prompt by prompt: the last request of eight enters after eight of its times.
TEST(Simulator, AFrontEndWorksOnOneRequestAfterTheOther) {
    ServingSetup s = engine();
    s.prompt_cv = s.output_cv = 0;
    const ServingLoad load{.concurrency = 8, .rounds = 1, .burst = true};
    const double free = simulate_serving(s, {1, 1}, load).ttft_p99;
    s.front_request_s = 1;
    const ServingOutcome slow = simulate_serving(s, {1, 1}, load);
    EXPECT_NEAR(slow.ttft_p99, 8 + step_seconds(s, {1, 1}, 0, 0, 1000, 0), 0.05);
    EXPECT_NEAR(slow.ttft_p50, 4 + step_seconds(s, {1, 1}, 0, 0, 1000, 0), 0.05);
    EXPECT_LT(free, 1);
    s.front_request_s = 0;
    s.first_token_s = 0.5;
    EXPECT_NEAR(simulate_serving(s, {1, 1}, load).ttft_p99, free + 0.5, 1e-9);
}

// A benchmark ends with its last request: nothing comes behind it, and its first ones count.
TEST(Simulator, AWholeRunIsAllOfItsRequests) {
    const ServingSetup s = engine();
    ServingLoad load;
    load.requests_per_second = 2;
    load.requests = 15;
    load.whole_run = true;
    const ServingOutcome o = simulate_serving(s, {1, 1}, load);
    EXPECT_EQ(o.measured, 15);
    EXPECT_EQ(o.finished, 15);
    EXPECT_GT(o.output_tokens_per_s, 0);
}

TEST(Draws, HaveTheMomentsAsked) {
    for (const LengthLaw law : {LengthLaw::lognormal, LengthLaw::gamma, LengthLaw::uniform}) {
        ServingSetup s = engine();
        s.length_law = law;
        s.prompt_cv = law == LengthLaw::uniform ? 0.5 : 0.8;
        s.arrival_cv = law == LengthLaw::gamma ? 2 : 1;
        double n = 0, sum = 0, square = 0, gap = 0, gap_square = 0;
        for (std::uint64_t i = 0; i < 200000; ++i) {
            const RequestDraw d = draw_request(s, 4, i);
            n += 1, sum += d.prompt, square += d.prompt * d.prompt, gap += d.gap, gap_square += d.gap * d.gap;
        }
        EXPECT_NEAR(sum / n, 1000, 10);
        EXPECT_NEAR(std::sqrt(square / n - sum / n * sum / n) / (sum / n), s.prompt_cv, 0.02);
        EXPECT_NEAR(gap / n, 1, 0.02);
        EXPECT_NEAR(std::sqrt(gap_square / n - 1), s.arrival_cv, 0.05);
    }
    ServingSetup s = engine();
    s.prompt_cv = 1, s.length_most = 4;
    double longest = 0;
    for (std::uint64_t i = 0; i < 1000; ++i) longest = std::max(longest, draw_request(s, 4, i).prompt);
    EXPECT_EQ(longest, 4000);
    s.prompt_cv = 0;
    EXPECT_EQ(draw_request(s, 1, 17).prompt, 1000);
}

}  // namespace
}  // namespace stoker

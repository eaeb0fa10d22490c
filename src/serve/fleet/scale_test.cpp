// A replica too few is latency, one too many is money, and one that comes and goes is both.
#include "serve/fleet/scale.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "serve/fleet/scale_replay.h"

namespace stoker {
namespace {

ServiceLoad load_of(double work, int replicas) {
    ServiceLoad load{
        .prefill_tokens_per_s = 20'000, .decode_tokens_per_s = 1'200, .cold_start_s = 60, .replicas = replicas};
    load.fast = load.slow = {work * 10'000, work * 600};
    load.in_flight = work > 0 ? 1 : 0;
    return load;
}

// The busiest minute of the conversation trace, worked by hand: 1.98 replicas of work, and what random arrivals add.
TEST(Scale, CountsTheWorkThatArrives) {
    ServiceLoad load = load_of(0, 1);
    load.fast = load.slow = {9'760, 1'784};
    load.in_flight = 10;
    ScaleMemory memory;
    const ScaleDecision decision = decide_scale(load, {}, memory, 0);
    EXPECT_NEAR(decision.work, 1.975, 0.001);
    EXPECT_EQ(decision.replicas, 3);
    EXPECT_EQ(decision.cause, ScaleCause::arrivals);
    load.waiting_prompt_tokens = 1'200'000;  // two replicas more for half a minute
    const ScaleDecision more = decide_scale(load, {}, memory, 0);
    EXPECT_EQ(more.replicas, 5);
    EXPECT_EQ(more.cause, ScaleCause::backlog);
}

// However many gateways and looks ask while it starts: one replica.
TEST(Scale, StartsOneReplicaForOneDemand) {
    ScaleMemory memory;
    ServiceLoad load = load_of(0, 0);
    load.queued = 1;
    int starts = 0;
    for (int look = 0; look < 1'000; ++look) {
        const ScaleDecision decision = decide_scale(load, {}, memory, look * 0.05);
        starts += decision.replicas - load.replicas;
        load.replicas = decision.replicas;
        load.starting = decision.replicas;
        load.queued = look;
    }
    EXPECT_EQ(starts, 1);
}

// To zero only when nobody has asked for longer than a start takes; never while one is being started for somebody.
TEST(Scale, GoesToZeroAndBack) {
    ScaleMemory memory;
    ServiceLoad load = load_of(0, 1);
    load.idle_s = 299;
    EXPECT_EQ(decide_scale(load, {}, memory, 0).replicas, 1);
    load.idle_s = 300;
    EXPECT_EQ(decide_scale(load, {}, memory, 0).cause, ScaleCause::idle);
    EXPECT_EQ(decide_scale(load, {}, memory, 0).replicas, 0);
    load.cold_start_s = 600;  // loading takes ten minutes: idling is the cheaper of the two
    EXPECT_EQ(decide_scale(load, {}, memory, 0).replicas, 1);
    load.cold_start_s = 60;
    load.starting = 1;
    EXPECT_EQ(decide_scale(load, {}, memory, 0).replicas, 1);
    load.starting = 0;
    load.in_flight = 1;  // a stream that lasts
    EXPECT_EQ(decide_scale(load, {}, memory, 0).replicas, 1);
    load = load_of(0, 0);
    EXPECT_EQ(decide_scale(load, {}, memory, 0).replicas, 0);
    load.queued = 1;
    EXPECT_EQ(decide_scale(load, {}, memory, 0).cause, ScaleCause::first_request);
}

// Down after the whole slow window, by half at most, to the most that was wanted in it.
TEST(Scale, GoesDownSlowly) {
    ScaleMemory memory;
    EXPECT_EQ(decide_scale(load_of(2, 16), {.most = 16, .slow_s = 180}, memory, 0).replicas, 16);
    EXPECT_EQ(decide_scale(load_of(5, 16), {.most = 16, .slow_s = 180}, memory, 90).replicas, 16);
    EXPECT_EQ(decide_scale(load_of(2, 16), {.most = 16, .slow_s = 180}, memory, 179).replicas, 16);
    EXPECT_EQ(decide_scale(load_of(2, 16), {.most = 16, .slow_s = 180}, memory, 180).replicas, 8);
    EXPECT_EQ(decide_scale(load_of(14, 8), {.most = 16, .slow_s = 180}, memory, 200).replicas, 16);
    EXPECT_EQ(memory.less_since_s, -1);
}

TEST(Scale, KeepsItsLimits) {
    ScaleMemory memory;
    EXPECT_EQ(decide_scale(load_of(100, 2), {.most = 4}, memory, 0).replicas, 4);
    EXPECT_EQ(decide_scale(load_of(100, 4), {.most = 4}, memory, 0).cause, ScaleCause::limit);
    EXPECT_EQ(decide_scale(load_of(0, 0), {.least = 2}, memory, 0).replicas, 2);
    EXPECT_EQ(decide_scale(load_of(100, 8), {.most = 4}, memory, 0).replicas, 4);
    ServiceLoad unknown = load_of(3, 1);  // no rate is known: what is there stays
    unknown.prefill_tokens_per_s = 0;
    EXPECT_EQ(decide_scale(unknown, {}, memory, 0).replicas, 1);
}

TEST(ColdStart, IsLearntAndNeverAConstant) {
    ColdStart cold(40);
    EXPECT_DOUBLE_EQ(cold.expected_s(), 40);
    EXPECT_DOUBLE_EQ(cold.budget_s(), 120);
    cold.started(700);  // 140 GB at 200 MB/s
    EXPECT_DOUBLE_EQ(cold.budget_s(), 2'100);
    for (int i = 0; i < 8; ++i) cold.started(10);
    EXPECT_DOUBLE_EQ(cold.expected_s(), 10);
}

TEST(LoadMeter, ForgetsWhatIsOlderThanTheWindow) {
    LoadMeter meter;
    EXPECT_DOUBLE_EQ(meter.rate(5, 10).prompt_tokens_per_s, 0);
    meter.arrived(100, 1'000, 10);
    EXPECT_DOUBLE_EQ(meter.rate(100.5, 10).prompt_tokens_per_s, 1'000);  // a second at least
    EXPECT_DOUBLE_EQ(meter.rate(105, 10).prompt_tokens_per_s, 200);
    EXPECT_DOUBLE_EQ(meter.rate(120, 10).prompt_tokens_per_s, 0);
}

std::vector<TraceRequest> tide(double seconds, double mean_rate) {
    SplitMix draw(5);
    std::vector<TraceRequest> trace;
    for (double at_s = 0; at_s < seconds;) {
        at_s += draw.exponential() / (mean_rate * (1 + 0.6 * std::sin(at_s / seconds * 6.283)));
        trace.push_back({at_s, 200 + draw.exponential() * 900, 1 + draw.exponential() * 200});
    }
    return trace;
}

// A tide with Poisson waves in virtual time: the objective holds, at little more than the work itself would take, and
// replicas hardly ever come only to go. bench/serve/scale.cpp has the published traces, beside somebody who knows them.
TEST(Scale, FollowsATide) {
    const std::vector<TraceRequest> trace = tide(1'200, 5);
    const ReplicaModel model{.cold_start_s = 20};
    double work_s = 0;
    for (const TraceRequest& r : trace)
        work_s += r.prompt_tokens / model.prefill_tokens_per_s + r.output_tokens / model.decode_tokens_per_s;
    const ScaleReplayResult ours = replay_scaling(trace, model, {}, {.least = 1, .most = 32}, 5);
    EXPECT_EQ(ours.requests, static_cast<std::int64_t>(trace.size()));
    EXPECT_GE(ours.met_share(), 0.98);
    EXPECT_LE(ours.replica_seconds, 1.8 * work_s);
    EXPECT_LE(ours.reversals, 2);
}

// Bursts with minutes between them, each of more than one replica holds: who stops replicas after each of them starts
// them again for each, and answers it late. After the first ones they stay; and go when no more come.
TEST(Scale, LearnsThatBurstsComeAgain) {
    SplitMix draw(9);
    std::vector<TraceRequest> trace;
    for (int burst = 0; burst < 12; ++burst)
        for (double at_s = 0; at_s < 40; at_s += draw.exponential() / 8)
            trace.push_back({burst * 280 + at_s, 200 + draw.exponential() * 900, 1 + draw.exponential() * 60});
    std::sort(trace.begin(), trace.end(), [](const auto& a, const auto& b) { return a.at_s < b.at_s; });
    const ReplicaModel model{.cold_start_s = 60};
    const ScaleReplayResult without = replay_scaling(trace, model, {}, {.least = 1, .most = 32, .most_kept_s = 0}, 1);
    const ScaleReplayResult ours = replay_scaling(trace, model, {}, {.least = 1, .most = 32}, 1);
    EXPECT_GT(ours.met_share(), without.met_share() + 0.15);
    EXPECT_LT(3 * ours.starts, 2 * without.starts);
    // A day later: they go, and what was learnt with them.
    ScaleMemory memory{.kept_s = 400, .declined_s = 0, .lowered_s = 0};
    ServiceLoad quiet = load_of(1, 4);
    int replicas = 4;
    for (double now_s = 3'000; now_s < 6'000; now_s += 10) {
        quiet.replicas = replicas;
        replicas = decide_scale(quiet, {}, memory, now_s).replicas;
    }
    EXPECT_EQ(replicas, 2);
    EXPECT_LT(memory.kept_s, 400);
}

// Who knows the trace holds the objective with less than a fixed number that holds it.
TEST(Scale, KnowsACheaperScheduleBeforehand) {
    const std::vector<TraceRequest> trace = tide(240, 3);
    const ReplicaModel model{.cold_start_s = 10};
    const std::vector<int> levels = clairvoyant_levels(trace, model, {}, 0.98);
    const ScaleReplayResult best = replay_levels(trace, model, {}, levels);
    EXPECT_GE(best.met_share(), 0.98);
    EXPECT_LT(best.replica_seconds, 240 * 6);
}

}  // namespace
}  // namespace stoker

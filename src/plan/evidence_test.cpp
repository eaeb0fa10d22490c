// A headline whose interval ends before what the nearest measured run showed promises what was seen to fail.
#include "plan/evidence.h"

#include <cmath>

#include "plan/chance.h"
#include "plan/testing.h"

namespace stoker {
namespace {

using testing::catalog_of;
using testing::plan_of;
using testing::quick;

constexpr std::string_view kTuning =
    "kind: fine-tuning\nmodel: llama-3-8b\nmethod: lora\ndata: {examples: 52000, sequence: 1024, epochs: 3}\n";

// Whatever is asked, a run that took so many times as long, so many doublings away.
PlanOptions with_run(double slower, double distance, std::string metric = "step_s") {
    PlanOptions options = quick();
    options.nearest_run = [=](const PlannedCase&) {
        const bool is_time = metric == "step_s" || metric.ends_with("_ms");
        return PublishedRun{.id = "X1",
                            .title = "a run",
                            .metric = metric,
                            .measured = is_time ? slower : 1,
                            .predicted = is_time ? 1 : slower,
                            .distance = distance};
    };
    return options;
}

const Catalog& two_sizes() {
    static const Catalog few = catalog_of({"Standard_NC40ads_H100_v5", "Standard_NC24ads_A100_v4"});
    return few;
}

TEST(NearestRunHeld, TheIntervalOfTheHeadlineReachesWhatANearRunTook) {
    for (const double slower : {0.5, 0.7, 1.1, 1.8, 2.9, 6.0}) {
        for (const double distance : {0.0, 1.0, 2.0}) {
            const Plan plan = plan_of(two_sizes(), kTuning, with_run(slower, distance));
            ASSERT_TRUE(plan.feasible());
            const Range& hours = plan.candidates.front().prediction.hours;
            const Range& usd = plan.candidates.front().prediction.usd;
            EXPECT_GE(hours.high, 0.95 * hours.mid * slower) << slower;  // machines start as fast as ever
            EXPECT_LE(hours.low, hours.mid * std::max(slower, 0.5) * 1.1) << slower;
            EXPECT_GE(usd.high, 0.95 * usd.mid * slower);
        }
    }
}

TEST(NearestRunHeld, FarRunsCountLessAndTheMiddleStays) {
    const auto high = [](double distance) {
        const Range hours = plan_of(two_sizes(), kTuning, with_run(6, distance)).candidates.front().prediction.hours;
        return hours.high / hours.mid;
    };
    EXPECT_GT(high(1), 5.5);
    EXPECT_LT(high(4), 0.7 * high(1));
    const Range without = plan_of(two_sizes(), kTuning).candidates.front().prediction.hours;
    const Range far = plan_of(two_sizes(), kTuning, with_run(6, 6)).candidates.front().prediction.hours;
    const Range near = plan_of(two_sizes(), kTuning, with_run(6, 0)).candidates.front().prediction.hours;
    EXPECT_DOUBLE_EQ(far.high, without.high);
    EXPECT_DOUBLE_EQ(near.mid, without.mid);
}

// What sources showed together is held, and not what the nearest of them showed alone.
TEST(NearestRunHeld, OneOutlierIsNotHeldWhereOthersLieNear) {
    PlanOptions options = with_run(6, 1);
    options.nearest_run = [alone = options.nearest_run](const PlannedCase& one) {
        auto run = alone(one);
        run->other_sources = 3, run->together = 1.2;
        return run;
    };
    const Range hours = plan_of(two_sizes(), kTuning, options).candidates.front().prediction.hours;
    const Range without = plan_of(two_sizes(), kTuning).candidates.front().prediction.hours;
    EXPECT_GE(hours.high, 0.99 * without.high);
    EXPECT_LT(hours.high / hours.mid, 3);
}

// The chance to make a deadline comes from that interval: what a near run missed is not promised with nine in ten.
TEST(NearestRunHeld, ADeadlineThatTheNearRunMissedIsNotCertain) {
    const std::string asked = std::string(kTuning) + "objective: {deadline: 10h}\nwhere: {max_nodes: 1}\n";
    const auto chance = [](const Plan& plan) {
        return plan.feasible() ? chance_below(plan.candidates.front().prediction.hours, 10) : 0;
    };
    EXPECT_LT(chance(plan_of(two_sizes(), asked, with_run(4, 1))), chance(plan_of(two_sizes(), asked)));
}

// What a service's nearest run says of tokens is held by the time of a token, and of first tokens by those.
TEST(NearestRunHeld, ServicesHoldItInTheLatencyThatWasMeasured) {
    constexpr std::string_view asked =
        "kind: inference\nmodel: llama-3-8b\ntraffic: {requests_per_second: 1, prompt_tokens: 500, output_tokens: "
        "100}\n";
    const Prediction tokens = plan_of(two_sizes(), asked, with_run(5, 1, "out_tokens_per_s")).candidates[0].prediction;
    EXPECT_GE(tokens.tpot_p95_s.high, 4.99 * tokens.tpot_p95_s.mid);
    EXPECT_LT(tokens.ttft_p95_s.high, 4.9 * tokens.ttft_p95_s.mid);
    const Prediction first = plan_of(two_sizes(), asked, with_run(5, 1, "ttft_ms")).candidates[0].prediction;
    EXPECT_GE(first.ttft_p95_s.high, 4.99 * first.ttft_p95_s.mid);
}

// The chance to keep latency limits comes from that interval, too: what a near run missed is not promised.
TEST(NearestRunHeld, AServicePromisesNoLimitThatTheNearRunMissed) {
    constexpr std::string_view asked =
        "kind: inference\nmodel: llama-3-8b\ntraffic: {requests_per_second: 1, prompt_tokens: 500, output_tokens: "
        "100}\nobjective: {latency: {tpot_p95: 60ms}}\n";
    const Prediction alone = plan_of(two_sizes(), asked).candidates[0].prediction;
    const Prediction held = plan_of(two_sizes(), asked, with_run(6, 1, "out_tokens_per_s")).candidates[0].prediction;
    EXPECT_GE(alone.latency_chance, 0.9);
    EXPECT_GE(held.tpot_p95_s.high, 5.99 * held.tpot_p95_s.mid);
    EXPECT_LT(held.latency_chance, alone.latency_chance);
    EXPECT_DOUBLE_EQ(held.latency_chance, chance_below(held.tpot_p95_s, 0.06));
    // A run that was faster, or is nothing like this, takes nothing away.
    for (const auto& run : {with_run(0.5, 1, "out_tokens_per_s"), with_run(6, 6, "out_tokens_per_s")})
        EXPECT_DOUBLE_EQ(plan_of(two_sizes(), asked, run).candidates[0].prediction.latency_chance,
                         alone.latency_chance);
}

// Nobody published speech: a rate of it that is told without a wide interval is believed.
TEST(Evidence, SpeechIsMeasuredNowhere) {
    const Plan plan = plan_of(two_sizes(),
                              "kind: batch-inference\nmodel: whisper-large-v3\ntraffic: {requests: "
                              "200000, audio: 30s}\n");
    EXPECT_FALSE(plan.candidates.front().measured);
    EXPECT_GT(plan.candidates.front().prediction.hours.high, 1.6 * plan.candidates.front().prediction.hours.mid);
}

}  // namespace
}  // namespace stoker

#include "sizing/economics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace stoker {
namespace {

// Wall-clock time of `segments` segments of interval + stall, where failures come at an exponential rate, a failure
// loses the segment, and the restart itself can fail.
double simulate_wall_s(double stall, double interval, double restart, double mtbf, int segments, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::exponential_distribution<double> next(1 / mtbf);
    double wall = 0, until_failure = next(random);
    for (int done = 0; done < segments; ++done) {
        double need = interval + stall;
        while (until_failure < need) {
            wall += until_failure;
            until_failure = next(random);
            need = restart + interval + stall;
        }
        wall += need;
        until_failure -= need;
    }
    return wall;
}

// R175: the closed form and a simulated run agree, from rare failures to several in every interval.
TEST(Economics, SimulatedFailuresConvergeToTheClosedForm) {
    struct Case {
        double stall, interval, restart, mtbf;
    };
    const Case cases[] = {{60, 3600, 600, 180'000},
                          {30, 1800, 600, 20'000},
                          {120, 3600, 900, 7200},
                          {5, 600, 300, 900},
                          {0, 1000, 0, 1000}};
    for (const Case& c : cases) {
        const int segments = 200'000;
        const double simulated =
            segments * c.interval / simulate_wall_s(c.stall, c.interval, c.restart, c.mtbf, segments, 7);
        const double closed = exact_goodput(c.stall, c.interval, c.restart, c.mtbf);
        EXPECT_NEAR(simulated, closed, 0.01 * closed) << "mtbf " << c.mtbf;
    }
}

// Daly's interval is within a hair of the best interval found by search, and no worse than Young's.
TEST(Economics, DalysIntervalIsTheBest) {
    for (const double stall : {1.0, 30.0, 300.0}) {
        for (const double mtbf : {1800.0, 10'000.0, 200'000.0}) {
            if (stall >= mtbf / 2) continue;
            const double chosen = exact_goodput(stall, daly_interval_s(stall, mtbf), 300, mtbf);
            double best = 0;
            for (double tau = 1; tau < 4 * mtbf; tau *= 1.01)
                best = std::max(best, exact_goodput(stall, tau, 300, mtbf));
            EXPECT_GE(chosen, best * 0.999) << stall << " " << mtbf;
            EXPECT_GE(chosen, exact_goodput(stall, young_interval_s(stall, mtbf), 300, mtbf) - 1e-9);
        }
    }
}

// Hand arithmetic: sqrt(2 x 60 x 180,000) = 4,648 s; Daly adds a third of sqrt(60/360,000) and takes the stall off.
TEST(Economics, IntervalsAreTheFormulas) {
    EXPECT_NEAR(young_interval_s(60, 180'000), 4647.6, 0.1);
    EXPECT_NEAR(daly_interval_s(60, 180'000), 4647.58 * (1 + std::sqrt(1.0 / 6000) / 3 + 1.0 / 6000 / 9) - 60, 0.1);
    EXPECT_DOUBLE_EQ(daly_interval_s(100, 40), 40);
    EXPECT_TRUE(std::isinf(daly_interval_s(60, INFINITY)));
}

// Llama 3: 16,384 GPUs fail every three hours; a checkpoint of 5.7 TB at 2 TB/s keeps about 90 % or more useful, as
// published.
TEST(Economics, Llama3KeepsItsPublishedGoodput) {
    const CheckpointPlan plan = plan_checkpoints({.restart_s = 600}, 16'384, 2048, 5.67e12, 2e12, false, 54 * 86'400.0);
    EXPECT_NEAR(plan.mtbf_s / 3600, 3.05, 0.01);
    EXPECT_GT(plan.goodput, 0.90);
    EXPECT_LT(plan.goodput, 0.96);
    EXPECT_NEAR(plan.expected_failures, 419 / plan.goodput, 60);
    EXPECT_NEAR(plan.lost_s_per_failure, plan.interval_s / 2 + 600, 20);
}

TEST(Economics, CheckpointsAreNoLongerApartThanTheWorkAndObeyAPinnedInterval) {
    const CheckpointPlan pinned = plan_checkpoints({}, 8, 1, 1e11, 1e9, false, 86'400, 1800);
    EXPECT_DOUBLE_EQ(pinned.interval_s, 1800);
    EXPECT_DOUBLE_EQ(pinned.stall_s, 100);
    EXPECT_NEAR(pinned.goodput, 1800.0 / 1900, 0.01);
    const CheckpointPlan brief = plan_checkpoints({}, 8, 1, 1e9, 1e9, false, 300);
    EXPECT_DOUBLE_EQ(brief.interval_s, 0);  // its result is the only one
    EXPECT_GT(brief.goodput, 0.99);
    EXPECT_EQ(plan_checkpoints({}, 8, 1, 1e9, 1e9, false, 0).goodput, 1);
}

// A run is not cut into more pieces than pay: 5.6 h on 768 GPUs with a checkpoint that takes long expect a tenth of a
// failure, and lose no quarter to guard against it.
TEST(Economics, AShortRunLosesNoMoreToCheckpointsThanToFailures) {
    for (const double work_s : {60.0, 3600.0, 20'000.0, 200'000.0})
        for (const double bytes : {1e9, 1e12, 9.4e12}) {
            const CheckpointPlan plan = plan_checkpoints({.least_interval_s = 60}, 768, 96, bytes, 64e9, false, work_s);
            EXPECT_TRUE(plan.interval_s == 0 || (plan.interval_s >= 60 && plan.interval_s <= work_s / 2));
            const double none = exact_goodput(plan.stall_s, work_s, 600, plan.mtbf_s);
            EXPECT_GE(plan.goodput, none - 1e-9);
        }
}

// Without failures there is nothing to be lost, only the one checkpoint at the end to be written.
TEST(Economics, NoFailuresNoLoss) {
    const CheckpointPlan plan = plan_checkpoints({.failures_per_gpu_hour = 0}, 0, 8, 1e9, 1e9, false, 1000);
    EXPECT_TRUE(std::isinf(plan.mtbf_s));
    EXPECT_EQ(plan.expected_failures, 0);
    EXPECT_EQ(plan.lost_s_per_failure, 0);
    EXPECT_NEAR(plan.goodput, 1000.0 / 1001, 1e-12);
}

// Spot evictions shorten the interval and are counted apart from failures; asynchronous checkpoints stall less.
TEST(Economics, EvictionsShortenTheInterval) {
    const CheckpointPlan calm = plan_checkpoints({}, 64, 8, 1e12, 1e10, false, 1e6);
    const CheckpointPlan spot = plan_checkpoints({.evictions_per_node_hour = 0.02}, 64, 8, 1e12, 1e10, false, 1e6);
    const CheckpointPlan async = plan_checkpoints({.evictions_per_node_hour = 0.02}, 64, 8, 1e12, 1e10, true, 1e6);
    EXPECT_LT(spot.interval_s, calm.interval_s);
    EXPECT_LT(spot.goodput, calm.goodput);
    EXPECT_GT(spot.expected_evictions, 10 * spot.expected_failures);
    EXPECT_LT(async.stall_s, spot.stall_s);
    EXPECT_GT(async.goodput, spot.goodput);
    EXPECT_GE(async.interval_s, async.write_s);
}

// 8 H100 for a day at 90 %: 8 x (70 + 0.9 x 630 + 300 W) x 24 h x 1.2.
TEST(Economics, EnergyIsPowerTimesTime) {
    EXPECT_NEAR(energy_kwh(8, 700, 70, 0.9, 300, 86'400, 1.2), 8 * 0.937 * 24 * 1.2, 1e-9);
    EXPECT_EQ(energy_kwh(8, 700, 70, 0.9, 300, 0, 1.2), 0);
}

// R64: the more a machine is used, the sooner it has paid for itself.
TEST(Economics, BreakEvenFallsAsUtilisationRises) {
    const OwnSpec own{.capex = Usd::from_double(300'000), .power_w = 10'200, .staff_usd_per_year = 20'000};
    double last = INFINITY;
    bool ever = false;
    for (int percent = 1; percent <= 100; ++percent) {
        const OwnVerdict verdict = own_or_rent(own, Usd::from_double(60), percent / 100.0);
        EXPECT_LE(verdict.break_even_months, last) << percent;
        last = verdict.break_even_months;
        ever = ever || std::isfinite(last);
    }
    EXPECT_TRUE(ever);
}

// At the break-even utilisation both cost the same over the machine's life, and it pays off exactly at the end of it.
TEST(Economics, BothCostTheSameAtBreakEven) {
    const OwnSpec own{.capex = Usd::from_double(300'000), .power_w = 10'200, .staff_usd_per_year = 20'000, .nodes = 4};
    const double u = own_or_rent(own, Usd::from_double(60), 0.5).break_even_utilisation;
    ASSERT_GT(u, 0);
    ASSERT_LT(u, 1);
    const OwnVerdict even = own_or_rent(own, Usd::from_double(60), u);
    EXPECT_NEAR(even.own_total.dollars(), even.rent_total.dollars(), 1);
    EXPECT_NEAR(own_or_rent(own, Usd::from_double(60), u * 1.0001).break_even_months, 48, 0.1);
    EXPECT_NEAR(even.own_usd_per_used_hour, 60, 0.01);
}

// Where renting costs less than the electricity, owning never pays.
TEST(Economics, OwningNeverPaysWhenRentIsLessThanPower) {
    const OwnVerdict verdict =
        own_or_rent({.capex = Usd::from_double(1000), .power_w = 10'000}, Usd::from_double(0.5), 1);
    EXPECT_TRUE(std::isinf(verdict.break_even_months));
    EXPECT_TRUE(std::isinf(verdict.break_even_utilisation));
}

// 60 s to write, a failure each 3.1 h: sqrt(2 x 60 x 11160) = 1157 s (Young; the figures of Llama 3).
TEST(Economics, TheIntervalIsYoungs) {
    EXPECT_NEAR(suggested_interval_s(60, 3.1 * 3600), 1157, 1);
    EXPECT_DOUBLE_EQ(suggested_interval_s(60, 0), 0);
    EXPECT_GE(suggested_interval_s(600, 1800), 0);
}

// Nodes of one zone are taken together: sixteen of them lose one a few times as often as one, and not sixteen times.
// While there is no capacity, time passes; it is none of the work's.
TEST(Economics, AGangIsTakenTogetherAndWaits) {
    const FailureModel apart{.evictions_per_node_hour = 0.02};
    FailureModel together = apart;
    together.eviction_gang_exponent = 0.5;
    together.wait_after_eviction_s = 3600;
    const CheckpointPlan a = plan_checkpoints(apart, 128, 16, 1e12, 1e11, false, 1e6);
    const CheckpointPlan b = plan_checkpoints(together, 128, 16, 1e12, 1e11, false, 1e6);
    EXPECT_NEAR(b.expected_evictions * b.goodput, 1e6 / 3600 * 0.02 * 4, 1e-6);
    EXPECT_NEAR(a.expected_evictions * a.goodput, 1e6 / 3600 * 0.02 * 16, 1e-6);
    EXPECT_EQ(a.waiting_s, 0);
    EXPECT_NEAR(b.waiting_s, 3600 * b.expected_evictions, 1e-6);
    EXPECT_GT(b.goodput, a.goodput);
}

}  // namespace
}  // namespace stoker

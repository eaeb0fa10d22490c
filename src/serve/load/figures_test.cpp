// Percentiles and goodput are what endpoints are bought by.
#include "serve/load/figures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace stoker {
namespace {

LoadRecord answered(double scheduled_s, double ttft_s, double end_s, std::int64_t tokens) {
    return {.scheduled_s = scheduled_s,
            .sent_s = scheduled_s,
            .ttft_s = ttft_s,
            .end_s = end_s,
            .prompt_tokens = 10,
            .output_tokens = tokens,
            .counted = true,
            .status = 200};
}

TEST(LoadFigures, AreOfTheRequestsThatWereAnswered) {
    LoadRun run{.records = {answered(0, 0.1, 1.1, 11), answered(1, 0.3, 2.3, 11)}, .seconds = 2.3};
    run.records.push_back({.scheduled_s = 1, .sent_s = 1.5, .end_s = 2, .error = "HTTP 503: full", .status = 503});
    const LoadFigures f = figures_of(run, {.ttft_s = 0.2, .tpot_s = 0.1});
    EXPECT_EQ(f.sent, 3);
    EXPECT_EQ(f.answered, 2);
    EXPECT_EQ(f.errors.at("HTTP 503: full"), 1);
    EXPECT_DOUBLE_EQ(f.tpot_s.most, 0.1);
    EXPECT_DOUBLE_EQ(f.ttft_s.p50, 0.1);
    EXPECT_DOUBLE_EQ(f.ttft_s.p99, 0.3);
    EXPECT_DOUBLE_EQ(f.output_tokens_per_s, 22 / 2.3);
    EXPECT_NEAR(f.goodput_share, 1 / 3.0, 1e-9);  // one too slow, one refused
    EXPECT_DOUBLE_EQ(f.sent_late_s.most, 0.5);
    EXPECT_TRUE(f.tokens_counted);
}

// One token has a TTFT and no time per token; nothing answered has no figures and does not divide by zero.
TEST(LoadFigures, HaveNoFiguresOfNothing) {
    const LoadFigures one = figures_of({.records = {answered(0, 0.1, 0.1, 1)}, .seconds = 0.1}, {});
    EXPECT_EQ(one.tpot_s.count, 0);
    EXPECT_EQ(one.ttft_s.count, 1);
    EXPECT_DOUBLE_EQ(one.goodput_share, 1);
    const LoadFigures none = figures_of({}, {});
    EXPECT_EQ(none.sent, 0);
    EXPECT_NE(json_of(none).dump(0).find("\"ttft_s\":null"), std::string::npos);
}

TEST(LoadFigures, RankPercentilesByCeiling) {
    std::vector<double> values(100);
    std::iota(values.begin(), values.end(), 1.0);
    const LoadSpread spread = spread_of(values);
    EXPECT_DOUBLE_EQ(spread.p50, 50);
    EXPECT_DOUBLE_EQ(spread.p99, 99);
    EXPECT_DOUBLE_EQ(spread.most, 100);
    EXPECT_NEAR(spread.deviation, 28.87, 0.01);
}

// Gaps of the asked mean; a shape below one comes in bursts, above one more evenly.
TEST(LoadArrivals, HaveTheRateAndShapeThatWereAsked) {
    auto spread_of_gaps = [](double shape) {
        const std::vector<double> times =
            arrival_times({.requests = 20'000, .requests_per_second = 10, .arrival_shape = shape});
        std::vector<double> gaps;
        for (std::size_t i = 1; i < times.size(); ++i) gaps.push_back(times[i] - times[i - 1]);
        return spread_of(gaps);
    };
    const LoadSpread poisson = spread_of_gaps(1), bursts = spread_of_gaps(0.25), even = spread_of_gaps(16);
    for (const LoadSpread& s : {poisson, bursts, even}) EXPECT_NEAR(s.mean, 0.1, 0.005);
    EXPECT_NEAR(poisson.deviation / poisson.mean, 1, 0.05);
    EXPECT_NEAR(bursts.deviation / bursts.mean, 2, 0.15);
    EXPECT_NEAR(even.deviation / even.mean, 0.25, 0.02);
}

}  // namespace
}  // namespace stoker

#include "observe/health_judge.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

HealthCheck measured_check(const char* name, double value) {
    return {.name = name, .measured = value};
}

// Near what is expected passes, a little less warns, much less fails, and the line that is told is that of failing.
TEST(HealthJudge, ToleranceDecides) {
    const Expectation usual{.value = 100, .source = "declared"};
    for (const auto& [value, verdict] : {std::pair(100.0, HealthVerdict::pass), std::pair(85.0, HealthVerdict::pass),
                                         std::pair(84.0, HealthVerdict::warn), std::pair(70.0, HealthVerdict::warn),
                                         std::pair(69.0, HealthVerdict::fail), std::pair(0.0, HealthVerdict::fail)}) {
        HealthCheck check = measured_check("link-bandwidth", value);
        judge_check(check, usual);
        EXPECT_EQ(check.verdict, verdict) << value;
        EXPECT_DOUBLE_EQ(*check.expected, 70);
        EXPECT_NE(check.source.find("declared"), std::string::npos);
    }
}

// Of latency less is better.
TEST(HealthJudge, LatencyIsBetterLow) {
    HealthCheck check = measured_check("link-latency", 30e-6);
    judge_check(check, Expectation{.value = 20e-6, .source = "kept"});
    EXPECT_EQ(check.verdict, HealthVerdict::pass);
    check.measured = 100e-6;
    judge_check(check, Expectation{.value = 20e-6, .source = "kept"});
    EXPECT_EQ(check.verdict, HealthVerdict::fail);
}

// What nobody expects anything of is never a pass; where any machine has a floor, that decides.
TEST(HealthJudge, WithoutAnExpectationNothingPasses) {
    HealthCheck unknown = measured_check("matmul", 1e12);
    judge_check(unknown, std::nullopt);
    EXPECT_EQ(unknown.verdict, HealthVerdict::skipped);
    EXPECT_FALSE(unknown.expected.has_value());
    HealthCheck slow = measured_check("disk-write", 5e6), fast = measured_check("disk-write", 2e9);
    judge_check(slow, std::nullopt);
    judge_check(fast, std::nullopt);
    EXPECT_EQ(slow.verdict, HealthVerdict::fail);
    EXPECT_EQ(fast.verdict, HealthVerdict::pass);
    HealthCheck absent{.name = "matmul"};
    judge_check(absent, Expectation{.value = 1, .source = ""});
    EXPECT_EQ(absent.verdict, HealthVerdict::skipped);
}

// A baseline that was itself taken on a broken disk does not make it whole.
TEST(HealthJudge, TheFloorHoldsWhateverIsExpected) {
    HealthCheck check = measured_check("disk-write", 5e6);
    judge_check(check, Expectation{.value = 5e6, .source = "kept"});
    EXPECT_EQ(check.verdict, HealthVerdict::fail);
    EXPECT_DOUBLE_EQ(*check.expected, 60e6);
}

// A published minimum has no tolerance of ours.
TEST(HealthJudge, PublishedMinimumIsTheLine) {
    HealthCheck check = measured_check("memory-bandwidth", 319e9);
    judge_check(check, Expectation{.value = 320e9, .source = "size", .is_line = true});
    EXPECT_EQ(check.verdict, HealthVerdict::fail);
    EXPECT_DOUBLE_EQ(*check.expected, 320e9);
}

// One bad node among eight is found; with seven known, nothing is said.
TEST(HealthJudge, APoolFindsItsOutlier) {
    EXPECT_FALSE(pool_line({1, 2, 3, 4, 5, 6, 7}, false).has_value());
    const auto line = pool_line({100, 101, 99, 100, 102, 98, 100, 60}, false);
    ASSERT_TRUE(line.has_value());
    EXPECT_LT(line->line, 98);
    EXPECT_GT(line->line, 60);
    const auto equal = pool_line({10, 10, 10, 10, 10, 10, 10, 10}, false);
    EXPECT_DOUBLE_EQ(equal->line, 9.5);
    EXPECT_GT(pool_line({1, 1, 1, 1, 1, 1, 1, 9}, true)->line, 1);
    std::vector<HealthReport> reports;
    for (int i = 0; i < 8; ++i) reports.push_back({.checks = {measured_check("matmul", i == 3 ? 50 : 100 + i)}});
    judge_by_pool(reports);
    for (int i = 0; i < 8; ++i)
        EXPECT_EQ(reports[static_cast<std::size_t>(i)].verdict(), i == 3 ? HealthVerdict::fail : HealthVerdict::pass)
            << i;
    EXPECT_NE(reports[3].checks[0].source.find("8 nodes"), std::string::npos);
}

// Of the nodes of one gang the one that works longer than nodes do is told, as long as they are enough to say so.
TEST(HealthJudge, ANodeIsHeldAgainstThoseOfItsGang) {
    RunEvidence evidence;
    for (int i = 0; i < 18; ++i) {
        RankEvidence rank{.rank = i, .node = "n" + std::to_string(i / 2)};
        const double seconds = i == 7 ? 0.2 : 0.1 + 0.001 * (i % 3);
        rank.measures["compute_s"] = {.mean = seconds, .median = seconds, .low = seconds, .high = seconds, .count = 50};
        evidence.ranks.push_back(rank);
    }
    const auto reports = judge_nodes_of(evidence);
    ASSERT_EQ(reports.size(), 9u);
    for (const HealthReport& report : reports) {
        const HealthCheck& check = report.checks.at(0);
        EXPECT_EQ(check.verdict, check.node == "n3" ? HealthVerdict::fail : HealthVerdict::pass) << check.node;
        EXPECT_EQ(check.source, "median of 9 nodes plus 4 MAD");
    }
    evidence.ranks.resize(14);
    for (const HealthReport& report : judge_nodes_of(evidence))
        EXPECT_EQ(report.verdict(), HealthVerdict::skipped) << "seven are no pool";
    for (RankEvidence& rank : evidence.ranks) rank.node.clear();
    EXPECT_TRUE(judge_nodes_of(evidence).empty()) << "all on one machine";
}

}  // namespace
}  // namespace stoker

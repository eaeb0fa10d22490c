// What is kept of reports is bounded, and what they mean for a node follows from the records alone.
#include "run/state/node_health.h"

#include <gmock/gmock.h>

#include <limits>

#include "base/codec.h"

namespace stoker {
namespace {

// A report from a broken measurement must still be written down, and read back as it was written.
TEST(NodeHealth, WhatIsKeptIsBoundedAndReadsBack) {
    HealthReport report;
    for (int i = 0; i < 100; ++i)
        report.checks.push_back({.name = std::string(5000, 'n'),
                                 .peer = "a\x01"
                                         "b\xff",
                                 .verdict = i % 3 == 0   ? HealthVerdict::pass
                                            : i % 3 == 1 ? HealthVerdict::warn
                                                         : HealthVerdict::fail,
                                 .measured = std::numeric_limits<double>::infinity(),
                                 .expected = std::nan(""),
                                 .detail = std::string(100'000, 'd')});
    const NodeChecked record = checked_record("n1", "b", HealthLevel::quick, report);
    EXPECT_EQ(record.verdict, HealthVerdict::fail);
    EXPECT_EQ(record.cause, Cause::node_unhealthy);
    EXPECT_EQ(record.passed, 34);
    ASSERT_EQ(record.not_passed.size(), kMostKeptChecks);
    EXPECT_EQ(record.not_passed.back().verdict, HealthVerdict::fail) << "the worst are kept";
    const std::string text = codec::encode(record);
    EXPECT_LT(text.size(), 20'000U);
    NodeChecked again;
    EXPECT_TRUE(codec::decode_exactly(text, &again, codec::kShape<std::decay_t<decltype(again)>>));
    EXPECT_EQ(codec::encode(again), text);
    EXPECT_EQ(checked_record("n1", "b", HealthLevel::quick, {}).verdict, HealthVerdict::skipped);
}

// Years of blames and repairs take no more room than a month of them.
TEST(NodeHealth, HistoriesAreBoundedAndForgiven) {
    NodeHealth health;
    for (int i = 1; i <= 100; ++i) {
        remember(health, NodeBlamed{.node = "a", .attempt = {{7}, 1}, .members = {"a", "b"}, .share_milli = 100}, i);
        remember_move(health, Cause::node_repaired, i);
    }
    EXPECT_EQ(health.blames.size(), kMostBlames);
    EXPECT_EQ(health.blames.back().at_us, 100);
    EXPECT_EQ(health.repairs_us.size(), kMostRepairs);
    remember(health, NodeChecked{.node = "a", .boot_id = "", .verdict = HealthVerdict::fail, .not_passed = {}}, 101);
    remember(health, NodeChecked{.node = "a", .boot_id = "", .verdict = HealthVerdict::skipped, .not_passed = {}}, 102);
    EXPECT_EQ(health.not_passed, 2);
    remember_move(health, Cause::none, 103);
    EXPECT_EQ(health.since_us, 103);
    EXPECT_EQ(health.forgiven_us, 100);
    EXPECT_TRUE(health.last);
    remember_move(health, Cause::node_override, 104);
    EXPECT_TRUE(health.repairs_us.empty());
    EXPECT_TRUE(health.last) << "what it measured stays told";
    remember_move(health, Cause::node_repaired, 105);
    EXPECT_FALSE(health.last);
    EXPECT_EQ(health.not_passed, 0);
}

}  // namespace
}  // namespace stoker

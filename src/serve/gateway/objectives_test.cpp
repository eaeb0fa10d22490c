#include "serve/gateway/objectives.h"

#include <gtest/gtest.h>

namespace stoker::gateway {
namespace {

constexpr std::int64_t kNow = 1'800'000'000'000'000, kHour = 3'600'000'000;

gateway::Setup setup_with(ServiceObjective objective) {
    gateway::Setup setup;
    setup.models.emplace("m", ModelSetup{.id = 7, .name = "m", .objective = objective});
    return setup;
}

void see(ObjectiveJudge& judge, int count, LedgerOutcome outcome, int status, std::uint32_t ttft_ms,
         std::int64_t age_us) {
    for (int i = 0; i < count; ++i)
        judge.take({.model = 7}, {.ttft_ms = ttft_ms,
                                  .duration_ms = 2 * ttft_ms,
                                  .status = static_cast<std::uint16_t>(status),
                                  .outcome = static_cast<std::uint8_t>(outcome),
                                  .finished_unix_us = kNow - age_us});
}

// Else a service that failed is said to be well, or one is blamed for what its clients did.
TEST(Objectives, AnErrorBudgetIsSpentByWhatTheServiceMissedAlone) {
    const gateway::Setup setup = setup_with({.first_token_s = 1, .met = 0.95, .availability = 0.99});
    ObjectiveJudge judge(setup, kNow);
    see(judge, 970, LedgerOutcome::ok, 200, 200, 100 * kHour);
    see(judge, 20, LedgerOutcome::ok, 200, 1500, kHour / 2);
    see(judge, 5, LedgerOutcome::upstream_error, 502, 0, kHour / 2);
    see(judge, 5, LedgerOutcome::gateway_crash, 0, 0, 2 * kHour);
    see(judge, 50, LedgerOutcome::client_cancel, 499, 0, kHour / 2);
    see(judge, 50, LedgerOutcome::rejected, 400, 0, kHour / 2);
    see(judge, 100, LedgerOutcome::upstream_error, 502, 0, 40 * 24 * kHour);  // long ago
    const auto reports = judge.reports();
    ASSERT_EQ(reports.size(), 1u);
    const ObjectiveReport& report = reports[0];
    EXPECT_EQ(report.availability.of, 1000u);
    EXPECT_EQ(report.availability.missed, 10u);
    EXPECT_NEAR(report.availability.left, 0, 1e-9);
    EXPECT_EQ(report.times.of, 990u);
    EXPECT_EQ(report.times.missed, 20u);
    EXPECT_TRUE(report.kept());
    // 5 of 25 in the last hour: twenty times what the budget allows; a page begins at 2 % of 28 days an hour.
    EXPECT_NEAR(report.availability.burn[0], 20, 1e-9);
    EXPECT_TRUE(report.availability.burns_alert[0]);
    EXPECT_EQ(report.first_token.count, 990u);
    EXPECT_NEAR(report.first_token.p50_s, 0.2, 1e-6);
    EXPECT_NEAR(report.first_token.p99_s, 1.5, 1e-6);
}

TEST(Objectives, NothingAskedIsNothingJudged) {
    EXPECT_TRUE(ObjectiveJudge(setup_with({}), kNow).reports().empty());
    EXPECT_TRUE(objective_alerts(setup_with({})).empty());
    ObjectiveJudge judge(setup_with({.availability = 0.999}), kNow);
    const auto reports = judge.reports();
    ASSERT_EQ(reports.size(), 1u);
    EXPECT_TRUE(reports[0].kept());
    EXPECT_EQ(reports[0].times.target, 0);
}

// Else a name with a quote makes rules that Prometheus does not read.
TEST(Objectives, NamesAreQuotedInRules) {
    gateway::Setup setup;
    setup.models.emplace("it's \"m\"", ModelSetup{.name = "it's \"m\"", .objective = {.availability = 0.99}});
    const std::string rules = objective_alerts(setup);
    EXPECT_NE(rules.find("model=\"it''s \\\"m\\\"\""), std::string::npos) << rules;
}

}  // namespace
}  // namespace stoker::gateway

#include "app/client/run_health.h"

#include <gtest/gtest.h>

#include "doctor/health_text.h"

namespace stoker {
namespace {

api::DiagnosisView a_diagnosis(const char* name, double gain) {
    return {.name = name,
            .what = "what it is",
            .evidence = {"a figure"},
            .cost_s = gain,
            .expected_gain = gain,
            .fix = "do this"};
}

// A server that is newer than the program: what it found is told last and as unknown, and no device is blamed for it.
TEST(RunHealth, ADiagnosisOfANewerServerIsToldAsThat) {
    api::ExplanationView explanation;
    explanation.diagnoses = {a_diagnosis("of-next-year", 0.6), a_diagnosis("straggler", 0.1)};
    const HealthReport report = by_layers(health_of_explanation(explanation), {});
    EXPECT_EQ(to_blame(report)->name, "straggler");
    EXPECT_EQ(report.checks.back().name, "of-next-year");
    EXPECT_NE(report.checks.back().detail.find("this stoker does not know of-next-year"), std::string::npos);
    EXPECT_EQ(report.checks.front().detail.find("does not know"), std::string::npos);
}

// Both are at fault: the network is blamed first, although the other costs more.
TEST(RunHealth, TheNetworkIsBlamedBeforeTheModel) {
    api::ExplanationView explanation;
    explanation.diagnoses = {a_diagnosis("starved-input", 0.6), a_diagnosis("slow-link", 0.3)};
    explanation.ruled_out = {{"straggler", "ranks are alike"}};
    explanation.not_known = {{"other-precision", "the hook"}};
    HealthReport node;
    node.checks.push_back({.layer = HealthLayer::device, .name = "disk-write", .verdict = HealthVerdict::fail});
    const HealthReport report = by_layers(health_of_explanation(explanation), node);
    const HealthCheck* blamed = to_blame(report);
    ASSERT_NE(blamed, nullptr);
    EXPECT_EQ(blamed->name, "slow-link");
    EXPECT_EQ(report.checks.front().layer, HealthLayer::network);
    EXPECT_EQ(report.checks.back().layer, HealthLayer::model);
    EXPECT_NE(blamed->detail.find("a figure"), std::string::npos);

    api::RunView view;
    view.run.state = RunState::running;
    view.run.used_s = 1800;
    view.cost_microusd = 295'000'000;
    const RunCost cost = cost_of_trouble(view, explanation, blamed);
    ASSERT_TRUE(cost.per_hour_usd.has_value());
    EXPECT_DOUBLE_EQ(*cost.per_hour_usd, 590);
    EXPECT_DOUBLE_EQ(cost.share, 0.3);
    const std::string text = conclusion_text(view, blamed, cost, Style{});
    for (const char* part : {"the network: slow-link", "$590", "30 %", "$177", "do this"})
        EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
}

// Whose run crept over a bad cable is told which node's check had found it, without logging in there; a node that
// nobody checked is no node that passed.
TEST(RunHealth, NodesOfTheRunSayWhatTheirLastCheckFound) {
    api::RunView view;
    view.attempts.resize(2);
    view.attempts[0].ranks = {{.rank = 0, .node = "gone"}};
    view.attempts[1].ranks = {{.rank = 0, .node = "a"}, {.rank = 1, .node = "b"}, {.rank = 2, .node = "c"}};
    std::vector<api::NodeView> nodes(5);
    const char* names[] = {"a", "b", "c", "gone", "here"};
    for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].name = names[i];
    nodes[0].doctor = nodes[1].doctor = nodes[3].doctor = "10.0.0.1:7411";
    nodes[0].check = api::NodeCheckView{.at = "2026-11-22T06:00:00Z",
                                        .verdict = HealthVerdict::fail,
                                        .passed = 3,
                                        .not_passed = {{.layer = HealthLayer::network,
                                                        .name = "link-bandwidth",
                                                        .peer = "b",
                                                        .verdict = HealthVerdict::fail,
                                                        .measured = 6e6,
                                                        .expected = 1.2e9}}};
    const HealthReport report = health_of_nodes(view, nodes);
    ASSERT_EQ(report.checks.size(), 3u) << "c has no address to be checked at, the others are not of this attempt";
    EXPECT_EQ(report.checks[0].node, "a");
    EXPECT_EQ(report.checks[0].verdict, HealthVerdict::fail);
    EXPECT_NE(report.checks[0].detail.find("2026-11-22T06:00:00Z"), std::string::npos);
    EXPECT_EQ(report.checks[1].verdict, HealthVerdict::pass);
    EXPECT_EQ(report.checks[2].node, "b");
    EXPECT_EQ(report.checks[2].verdict, HealthVerdict::skipped);
    EXPECT_EQ(report.checks[2].fix, "stoker nodes check b");
    EXPECT_EQ(to_blame(by_layers({}, report))->node, "a");
    EXPECT_TRUE(health_of_nodes({}, nodes).checks.empty());
}

// What costs little is a warning; nothing found is said so, and no cost is made up.
TEST(RunHealth, LittleIsAWarningAndNothingIsNothing) {
    api::ExplanationView explanation;
    explanation.diagnoses = {a_diagnosis("noisy-neighbour", 0.01), a_diagnosis("warm-up", 0.5)};
    const HealthReport report = health_of_explanation(explanation);
    EXPECT_EQ(report.verdict(), HealthVerdict::warn);
    const std::string none = conclusion_text({}, nullptr, {}, Style{});
    EXPECT_NE(none.find("nothing was found"), std::string::npos);
    EXPECT_FALSE(cost_of_trouble({}, {}, nullptr).per_hour_usd.has_value());
}

}  // namespace
}  // namespace stoker

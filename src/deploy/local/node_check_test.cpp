// A check that hangs may hold up neither the health gate nor the end of the server.
#include "deploy/local/node_check.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

namespace stoker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

// What was measured arrives as it was told, with the node and level that were asked for.
TEST(NodeCheck, TellsWhatTheFunctionMeasured) {
    NodeChecks checks([](const NodeInfo& node, HealthLevel level, Deadline) {
        return HealthReport{{{.name = "memory-bandwidth",
                              .node = node.name,
                              .verdict = level == HealthLevel::full ? HealthVerdict::pass : HealthVerdict::fail}}};
    });
    const NodeInfo node{.name = "alpha"};
    const HealthReport full = checks.check(node, HealthLevel::full, steady_clock::now() + seconds(60));
    ASSERT_EQ(full.checks.size(), 1U);
    EXPECT_EQ(full.checks[0].node, "alpha");
    EXPECT_EQ(full.verdict(), HealthVerdict::pass);
    EXPECT_EQ(checks.check(node, HealthLevel::quick, steady_clock::now() + seconds(60)).verdict(), HealthVerdict::fail);
    EXPECT_EQ(NodeChecks({}).check(node, HealthLevel::quick, steady_clock::now()).verdict(), HealthVerdict::skipped);
}

// A link that swallows everything: the gate learns by the deadline that nothing is known, which is never a pass.
TEST(NodeCheck, OneThatHangsIsSkippedAtItsDeadlineAndWhenTheServerStops) {
    auto release = std::make_shared<std::atomic<bool>>(false);
    NodeChecks checks([release](const NodeInfo&, HealthLevel, Deadline) {
        while (!*release) std::this_thread::sleep_for(milliseconds(1));
        return HealthReport{{{.name = "late", .verdict = HealthVerdict::pass}}};
    });
    const NodeInfo node{.name = "alpha"};
    HealthReport report = checks.check(node, HealthLevel::quick, steady_clock::now() + milliseconds(20));
    EXPECT_EQ(report.verdict(), HealthVerdict::skipped);
    ASSERT_EQ(report.checks.size(), 1U);
    EXPECT_NE(report.checks[0].detail.find("deadline"), std::string::npos);

    auto waiting = std::async(
        std::launch::async, [&] { return checks.check(node, HealthLevel::full, steady_clock::now() + seconds(600)); });
    // Whichever comes first, the check or the interrupt: it is told again until it is heard.
    while (waiting.wait_for(milliseconds(1)) != std::future_status::ready) checks.interrupt();
    EXPECT_EQ(waiting.get().verdict(), HealthVerdict::skipped);
    // Threads that never come back are bounded.
    for (int i = 0; i < 40; ++i) report = checks.check(node, HealthLevel::quick, steady_clock::now());
    EXPECT_NE(report.checks.at(0).detail.find("have not come back"), std::string::npos);
    *release = true;
}

}  // namespace
}  // namespace stoker

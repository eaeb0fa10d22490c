// A check that claims what it did not measure lets a sick node take a gang.
#include "server/node_check.h"

#include <gtest/gtest.h>

#include "deploy/local/node_check.h"

namespace stoker {
namespace {

TEST(NodeCheck, WithoutTimeNothingIsMeasuredAndNothingClaimed) {
    const NodeCheckFunction check = node_check("", "");
    const HealthReport report =
        NodeChecks(check).check({.name = "here"}, HealthLevel::quick, std::chrono::steady_clock::now());
    EXPECT_NE(report.verdict(), HealthVerdict::pass);
}

TEST(NodeCheck, ANodeElsewhereIsLookedAtThroughItsDoctorAlone) {
    const NodeCheckFunction check = node_check("token", "/tmp");
    NodeInfo node{.name = "far"};
    node.doctor = "127.0.0.1:1";  // nothing listens there
    const HealthReport report =
        check(node, HealthLevel::quick, std::chrono::steady_clock::now() + std::chrono::seconds(5));
    ASSERT_FALSE(report.checks.empty());
    for (const HealthCheck& each : report.checks) EXPECT_EQ(each.layer, HealthLayer::network) << each.name;
    EXPECT_NE(report.verdict(), HealthVerdict::pass);
}

}  // namespace
}  // namespace stoker

// What people and scripts see of a node's health.
#include "server/node_view.h"

#include <gtest/gtest.h>

#include "run/decide/testing.h"

namespace stoker::api {
namespace {

// A list that called a quarantined node ready, or hid why, would send people to look for the fault elsewhere.
TEST(NodeView, ShowsCheckBlamesAndRepairs) {
    run_testing::World world;
    world.node("a", 4);
    world.node("b", 4);
    const HealthGate gate{.level = HealthLevel::quick};
    world.put(NodeMoved{"a", NodeState::checking, Cause::none});
    EXPECT_EQ(view_of_nodes(world.state, gate, world.now_us).items.at(0).reason, "a waits for its check");
    const HealthReport report{{{.name = "memory", .verdict = HealthVerdict::pass},
                               {.name = "disk", .verdict = HealthVerdict::fail, .detail = "read-only"}}};
    world.put(checked_record("a", "b1", HealthLevel::quick, report));
    world.put(NodeMoved{"a", NodeState::quarantined, Cause::node_unhealthy});
    world.put(NodeBlamed{.node = "a", .attempt = {{7}, 1}, .members = {"a", "b"}, .share_milli = 250});
    const NodeList list = view_of_nodes(world.state, gate, world.now_us);
    ASSERT_EQ(list.items.size(), 2u);
    const NodeView& a = list.items[0];
    EXPECT_EQ(a.state, NodeState::quarantined);
    EXPECT_EQ(a.takes, NodeTakes::nothing);
    EXPECT_EQ(a.reason, "a is quarantined: disk: read-only");
    EXPECT_FALSE(a.since.empty());
    ASSERT_TRUE(a.check);
    EXPECT_EQ(a.check->passed, 1);
    ASSERT_EQ(a.check->not_passed.size(), 1u);
    ASSERT_EQ(a.blames.size(), 1u);
    EXPECT_DOUBLE_EQ(a.blames[0].share, 0.25);
    EXPECT_FALSE(list.items[1].check);
    EXPECT_TRUE(view_of_nodes(world.state).items[1].reason.empty());
    world.now_us += 1;
    world.put(NodeMoved{"a", NodeState::checking, Cause::node_repaired});
    const NodeView repaired = view_of_nodes(world.state, gate, world.now_us).items[0];
    EXPECT_EQ(repaired.repairs.size(), 1u);
    EXPECT_TRUE(repaired.blames.empty()) << "what was before the repair counts no more";
}

}  // namespace
}  // namespace stoker::api

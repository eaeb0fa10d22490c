#include "server/run_view.h"

#include <gtest/gtest.h>

#include "run/decide/testing.h"
#include "server/node_view.h"

namespace stoker::api {
namespace {

// What `stoker ps` shows of a run that waits, runs and has ended.
TEST(RunViewTest, ARunIsShownAsItIs) {
    run_testing::World world;
    world.node("alpha", 4);
    const RunId first = world.submit(run_testing::World::spec(1, 2)),
                second = world.submit(run_testing::World::spec(1, 4));
    world.pass();
    const RunItem running = item_of(world.state, *world.state.find(first), world.now_us);
    EXPECT_EQ(running.id, first);
    EXPECT_EQ(running.attempts, 1);
    EXPECT_EQ(item_of(world.state, *world.state.find(second), world.now_us).attempts, 0);
    world.end(first);
    EXPECT_EQ(item_of(world.state, *world.state.find(first), world.now_us).state, RunState::succeeded);
    const NodeList nodes = view_of_nodes(world.state);
    ASSERT_EQ(nodes.items.size(), 1u);
    EXPECT_EQ(nodes.items[0].name, "alpha");
    EXPECT_EQ(device_names(world.state, "alpha", 0b101), (std::vector<std::string>{"0", "2"}));
    EXPECT_TRUE(device_names(world.state, "nosuchnode", 1).size() <= 1);
}

// A cursor is bound to its order: with the other one a page would skip and repeat.
TEST(RunViewTest, ACursorBelongsToItsList) {
    ListQuery query, other;
    const std::string cursor = cursor_of(query, RunId{7});
    ASSERT_TRUE(read_cursor(cursor, other));
    EXPECT_EQ(other.after, RunId{7});
    ListQuery oldest;
    oldest.newest_first = false;
    EXPECT_FALSE(read_cursor(cursor, oldest));
    for (const char* wrong : {"", "x", "r-7", "n", "n-", "99999999999999999999999"})
        EXPECT_FALSE(read_cursor(wrong, query)) << wrong;
}

}  // namespace
}  // namespace stoker::api

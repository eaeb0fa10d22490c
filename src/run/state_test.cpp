#include "run/state.h"

#include <gmock/gmock.h>

#include "run/testing.h"

namespace stoker {
namespace {

using run_testing::World;
using testing::HasSubstr;

Status apply_next(State state, RecordBody body) {
    return state.apply(Record{.seq = state.seq + 1, .at_us = state.at_us + 1, .epoch = 1, .body = std::move(body)});
}

// The journal is the truth, and not everything that is well chained is true.
TEST(StateTest, RefusesWhatDoesNotFollow) {
    World world;
    world.node("a", 4);
    const RunId run = world.submit(World::spec(2, 1));
    const State& state = world.state;
    EXPECT_THAT(apply_next(state, RunMoved{.run = run, .event = RunEvent::retry, .detail = ""}).error().text(),
                HasSubstr("retry while queued"));
    EXPECT_THAT(
        apply_next(state, AttemptCreated{.attempt = {run, 1}, .places = {{"a", 1}}, .resume_from = ""}).error().text(),
        HasSubstr("a part of a gang"));
    EXPECT_FALSE(
        apply_next(state, AttemptCreated{.attempt = {run, 2}, .places = {{"a", 1}, {"a", 2}}, .resume_from = ""}));
    EXPECT_FALSE(apply_next(state, CoreStarted{"tests", 1}));
    EXPECT_FALSE(apply_next(state, NodeMoved{"nowhere", NodeState::lost, Cause::none}));
    EXPECT_FALSE(apply_next(state, OperationResent{{"tests", 99}}));
    State copy = state;
    EXPECT_FALSE(copy.apply(Record{.seq = state.seq + 2, .body = RunHeld{run, true}}));
}

// A second attempt may not begin while the first one lives: two would write over each other's files.
TEST(StateTest, OneAttemptAtATime) {
    World world;
    world.node("a", 4);
    const RunId run = world.submit(World::spec(1, 1));
    world.pass();
    EXPECT_FALSE(apply_next(world.state, AttemptCreated{.attempt = {run, 2}, .places = {{"a", 2}}, .resume_from = ""}));
}

TEST(StateTest, SnapshotsGiveBackEverything) {
    World world;
    world.node("a", 4);
    for (int i = 0; i < 5; ++i) world.submit(World::spec(1, 1));
    world.pass();
    world.end({2});
    const auto again = decode_state(encode_state(world.state));
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(digest(*again), digest(world.state));
    EXPECT_EQ(again->queue, world.state.queue);
    EXPECT_EQ(again->live, world.state.live);
    EXPECT_EQ(again->launches, world.state.launches);
    EXPECT_FALSE(decode_state("{\"seq\": -1}"));
    EXPECT_FALSE(decode_state("{"));
}

}  // namespace
}  // namespace stoker

#include "run/state/state.h"

#include <gmock/gmock.h>

#include "run/state/state_testing.h"

namespace stoker {
namespace {

using run_testing::StateWorld;
using testing::HasSubstr;

Status apply_next(State state, RecordBody body) {
    return state.apply(Record{.seq = state.seq + 1, .at_us = state.at_us + 1, .epoch = 1, .body = std::move(body)});
}

// The journal is the truth, and not everything that is well chained is true.
TEST(StateTest, RefusesWhatDoesNotFollow) {
    StateWorld world;
    world.node("a", 4);
    const RunId run = world.submit(StateWorld::spec(2, 1));
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

// Who follows the moves of a run sees every state: what an attempt did to it is told once more, and changes nothing.
TEST(StateTest, AMoveThatFollowedFromTheAttemptIsToldAndChangesNothing) {
    StateWorld world;
    world.node("a", 4);
    const RunId run = world.submit(StateWorld::spec(1, 1));
    State state = world.state;
    const auto tell = [&](RecordBody body) {
        return state.apply(Record{.seq = state.seq + 1, .at_us = state.at_us + 1, .epoch = 1, .body = std::move(body)});
    };
    ASSERT_TRUE(tell(AttemptCreated{.attempt = {run, 1}, .places = {{"a", 1}}, .resume_from = ""}));
    const std::uint64_t version = state.find(run)->version;
    EXPECT_TRUE(tell(RunMoved{.run = run, .event = RunEvent::admit, .detail = ""}));
    EXPECT_EQ(state.find(run)->state, RunState::starting);
    EXPECT_EQ(state.find(run)->version, version + 1);
    // What has not happened is no move.
    EXPECT_FALSE(tell(RunMoved{.run = run, .event = RunEvent::withdraw, .detail = ""}));
}

// A second attempt may not begin while the first one lives: two would write over each other's files.
TEST(StateTest, OneAttemptAtATime) {
    StateWorld world;
    world.node("a", 4);
    const RunId run = world.submit(StateWorld::spec(1, 1));
    world.start(run, "a", 1);
    EXPECT_FALSE(apply_next(world.state, AttemptCreated{.attempt = {run, 2}, .places = {{"a", 2}}, .resume_from = ""}));
}

Fact gang_end(const StateWorld& world, RunId run, std::int64_t run_us) {
    Fact fact;
    fact.kind = FactKind::gang_ended;
    fact.operation = world.state.find(run)->attempts.back().launch;
    fact.cause = Cause::ok;
    if (run_us != 0) fact.run_us = run_us;
    return fact;
}

// The server was away when the work ended: nobody held the place since, and nobody pays for it.
TEST(StateTest, TimeEndsWithTheWorkAndNotWhenItIsRead) {
    for (const bool told : {true, false}) {
        StateWorld world;
        world.node("a", 4);
        const RunId run = world.submit(StateWorld::spec(1, 1));
        world.start(run, "a", 1);
        const std::int64_t began_us = world.now_us;
        world.now_us += 20 * kSecondUs;
        world.put(FactSeen{gang_end(world, run, told ? began_us + 2 * kSecondUs : 0)});
        EXPECT_EQ(used_us(*world.state.find(run), world.now_us), (told ? 2 : 20) * kSecondUs);
        world.now_us += kSecondUs;
        world.end(run);
        // Without the word of the engine, as in journals from before: when it was read.
        const std::int64_t expected_us = (told ? 2 : 21) * kSecondUs;
        EXPECT_EQ(world.state.find(run)->used_us, expected_us);
        EXPECT_EQ(world.state.find(run)->attempts.back().ended_us, began_us + expected_us);
        EXPECT_EQ(world.state.durations_us.at("job"), std::vector{expected_us});
        const auto again = decode_state(encode_state(world.state));
        ASSERT_TRUE(again) << again.error().text();
        EXPECT_EQ(digest(*again), digest(world.state));
    }
}

// The answer to a cancel may come before the word of the end.
TEST(StateTest, EndThatIsHeardOfAfterTheAttemptWasClosedCorrectsItsTime) {
    StateWorld world;
    world.node("a", 4);
    const RunId run = world.submit(StateWorld::spec(1, 1));
    world.start(run, "a", 1);
    const std::int64_t began_us = world.now_us;
    world.now_us += 20 * kSecondUs;
    world.end(run, Cause::cancelled);
    EXPECT_EQ(world.state.find(run)->used_us, 20 * kSecondUs);
    world.put(FactSeen{gang_end(world, run, began_us + 3 * kSecondUs)});
    EXPECT_EQ(world.state.find(run)->used_us, 3 * kSecondUs);
    EXPECT_EQ(world.state.find(run)->attempts.back().ended_us, began_us + 3 * kSecondUs);
    // Nothing ends before it began, whatever an engine says, nor later than it is told.
    world.put(FactSeen{gang_end(world, run, began_us - kSecondUs)});
    EXPECT_EQ(world.state.find(run)->used_us, 0);
}

// A server that is updated starts from the snapshot of the old one, which knows nothing of health; and as long as
// nothing about health happens it writes the same snapshots, so that a journal checked by digest stays sound.
TEST(StateTest, SnapshotsFromBeforeTheHealthGateAreRead) {
    const std::string old =
        R"({"at_us":9,"core_version":0,"cursor":0,"epoch":1,"nodes":{"a":{"cause":"held","info":)"
        R"({"boot_id":"b1","cpu_milli":1000,"devices":[],"memory_bytes":5,"name":"a","topology":"leaf-1"},)"
        R"("state":"draining","version":2}},"operations":[],"runs":[],"runs_made":0,"seq":3,"site":"tests","sites":[]})";
    const auto state = decode_state(old);
    ASSERT_TRUE(state) << state.error().text();
    EXPECT_EQ(encode_state(*state), old);
    EXPECT_FALSE(state->nodes.at("a").health);
    State next = *state;
    ASSERT_TRUE(next.apply(Record{.seq = 4, .at_us = 10, .epoch = 1, .body = NodeMoved{"a", NodeState::ready, {}}}));
    EXPECT_FALSE(next.nodes.at("a").health);
    EXPECT_FALSE(next.apply(Record{.seq = 5, .body = NodeChecked{.node = "nowhere", .boot_id = "", .not_passed = {}}}));
}

TEST(StateTest, SnapshotsGiveBackHealth) {
    StateWorld world;
    world.node("a", 4);
    NodeChecked checked{.node = "a", .boot_id = "b1", .verdict = HealthVerdict::fail, .not_passed = {}};
    checked.not_passed.push_back({.name = "disk-write", .measured = 0.25, .unit = "bytes/s"});
    world.put(checked);
    world.put(NodeMoved{"a", NodeState::quarantined, Cause::node_unhealthy});
    world.put(NodeBlamed{"a", {{1}, 1}, {"a", "b"}, 300});
    world.put(NodeMoved{"a", NodeState::checking, Cause::node_repaired});
    const auto again = decode_state(encode_state(world.state));
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(digest(*again), digest(world.state));
    EXPECT_EQ(again->nodes.at("a").health->repairs_us.size(), 1U);
}

TEST(StateTest, SnapshotsGiveBackEverything) {
    StateWorld world;
    world.node("a", 4);
    for (int i = 0; i < 5; ++i) world.submit(StateWorld::spec(1, 1));
    for (std::uint64_t i = 0; i < 4; ++i) world.start({i + 1}, "a", 1U << i);
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

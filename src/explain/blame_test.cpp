// A node that slows every gang down must be found by its gangs; one that is innocent may never be blamed.
#include "explain/blame.h"

#include <gtest/gtest.h>

#include "observe/diagnosis.h"
#include "run/decide/testing.h"

namespace stoker {
namespace {

using run_testing::World;

RunEvidence evidence_of(const std::vector<double>& compute_s) {
    RunEvidence evidence;
    for (std::size_t i = 0; i < compute_s.size(); ++i) {
        RankEvidence rank{.rank = static_cast<int>(i), .steps = 100};
        for (const auto& [name, value] : {std::pair{"compute_s", compute_s[i]}, std::pair{"step_s", 0.2}})
            rank.measures[name] = {.mean = value, .median = value, .low = value, .high = value, .count = 100};
        evidence.ranks.push_back(std::move(rank));
    }
    return evidence;
}

// The slowest rank's node is named, with what it cost; ranks that are alike blame nobody.
TEST(Blame, NamesTheNodeOfTheSlowestRank) {
    const EndedAttempt ended{.attempt = {{7}, 1}, .node_of_rank = {"a", "b", "c"}};
    const auto blame = blame_of(ended, evidence_of({0.1, 0.18, 0.1}));
    ASSERT_TRUE(blame);
    EXPECT_EQ(blame->node, "b");
    EXPECT_NEAR(blame->share, 0.4, 0.05);
    EXPECT_FALSE(blame_of(ended, evidence_of({0.1, 0.101, 0.1})));
    EXPECT_FALSE(blame_of(ended, RunEvidence{}));
    // What the job does to itself on that rank is not the node's fault.
    RunEvidence stopped = evidence_of({0.1, 0.18, 0.1});
    stopped.ranks[1].measures["throttled"] = {.mean = 0.8, .median = 0.8, .low = 0.8, .high = 0.8, .count = 100};
    for (const Diagnosis& each : diagnose(stopped).found)
        if (each.name() == "cpu-limit") {
            EXPECT_FALSE(blame_of(ended, stopped));
        }
}

// Among many nodes one is always the slowest: only what is out of their spread is a fault.
TEST(Blame, ManyNodesAreHeldAgainstEachOther) {
    EndedAttempt ended{.attempt = {{7}, 1}, .node_of_rank = {}};
    std::vector<double> compute_s;
    for (int i = 0; i < 9; ++i) {
        ended.node_of_rank.push_back("n" + std::to_string(i));
        compute_s.push_back(0.1 + 0.01 * i);
    }
    EXPECT_FALSE(blame_of(ended, evidence_of(compute_s))) << "their spread is wide";
    compute_s.assign(9, 0.1);
    compute_s[4] = 0.18;
    const auto blame = blame_of(ended, evidence_of(compute_s));
    ASSERT_TRUE(blame);
    EXPECT_EQ(blame->node, "n4");
}

// Ranks that share one node say nothing about that node against others, nor does an attempt that never ran.
TEST(Blame, LooksOnlyAtAttemptsOverSeveralNodesThatRan) {
    World world;
    world.node("a", 8);
    world.node("b", 2);
    const RunId one = world.submit(World::spec(2, 2));
    world.pass();
    world.end(one);
    EXPECT_FALSE(ended_attempt(world.state, {one, 1}));
    RunSpec wide = World::spec(2, 1);
    wide.nodes = 2;
    const RunId two = world.submit(wide);
    world.pass();
    EXPECT_FALSE(ended_attempt(world.state, {two, 1})) << "it still runs";
    world.now_us += 10 * kSecondUs;
    const AttemptId attempt{two, 1};
    world.put(OperationAnswered{
        .operation = world.state.find(two)->attempts.back().launch, .answer = Answer::confirmed, .detail = ""});
    world.put(AttemptMoved{attempt, AttemptEvent::all_ready, Cause::none, ""});
    world.now_us += 60 * kSecondUs;
    world.put(AttemptMoved{attempt, AttemptEvent::end, Cause::ok, ""});
    world.put(AttemptMoved{attempt, AttemptEvent::gone, Cause::ok, ""});
    const auto ended = ended_attempt(world.state, attempt);
    ASSERT_TRUE(ended);
    ASSERT_EQ(ended->node_of_rank.size(), 2u);
    EXPECT_NE(ended->node_of_rank[0], ended->node_of_rank[1]);
    EXPECT_DOUBLE_EQ(ended->to_s - ended->from_s, 60);
    EXPECT_FALSE(ended_attempt(world.state, {{99}, 1}));
}

}  // namespace
}  // namespace stoker

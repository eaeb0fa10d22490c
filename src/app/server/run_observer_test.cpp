// Ranks that live are looked at, those that have ended or never began are not.
#include "app/server/run_observer.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(LiveRanks, AreThoseThatStartedAndHaveNotEnded) {
    State state;
    const RunId id{.number = 7};
    stoker::Run run{.id = id};
    Attempt attempt{.number = 2, .state = AttemptState::running};
    attempt.ranks.resize(4);
    attempt.ranks[0] = {.started = true, .pid = 100};
    attempt.ranks[1] = {.started = true, .ended = true, .pid = 101};
    attempt.ranks[3] = {.started = true, .pid = 103};
    run.attempts.push_back(attempt);
    state.runs[id] = run;
    EXPECT_TRUE(live_ranks(state, "/f").empty());
    state.live.insert(id);
    const auto ranks = live_ranks(state, "/f");
    ASSERT_EQ(ranks.size(), 2u);
    EXPECT_EQ(ranks[0].run, "r-7");
    EXPECT_EQ(ranks[0].sources.at(0).path, "/f/runs/r-7/metrics.jsonl");
    EXPECT_EQ(ranks[1].pid, 103);
    EXPECT_EQ(ranks[1].sources.at(0).path, "/f/runs/r-7/metrics.rank-3.jsonl");
}

}  // namespace
}  // namespace stoker

// Ranks that live are looked at, those that have ended or never began are not.
#include "explain/run_observer.h"

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
    EXPECT_EQ(ranks[1].sources.size(), 1u);
    EXPECT_EQ(ranks[1].folders, (std::vector<std::string>{"/f/runs/r-7"}));
    state.runs[id].spec.folder = "/run-folder";
    state.runs[id].spec.observe = ObserveSpec{.heartbeat = "beat", .step_pattern = "step {step}/{}"};
    state.runs[id].spec.checkpoint.folder = "/elsewhere";
    const auto observed = live_ranks(state, "/f");
    ASSERT_EQ(observed[1].sources.size(), 3u);
    EXPECT_EQ(observed[1].sources[1].path, "/run-folder/beat.rank-3");
    EXPECT_EQ(observed[1].sources[2].path, "/f/runs/r-7/a-7.2/rank-3.out");
    EXPECT_EQ(observed[1].folders.size(), 2u);
}

}  // namespace
}  // namespace stoker

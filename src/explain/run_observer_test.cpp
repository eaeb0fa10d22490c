// Of ranks that live it is asked what they do, of those that have ended or never began it is not.
#include "explain/run_observer.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(LiveGangs, HaveTheRanksThatStartedAndHaveNotEnded) {
    State state;
    const RunId id{.number = 7};
    stoker::Run run{.id = id};
    Attempt attempt{.number = 2, .state = AttemptState::running};
    attempt.ranks.resize(4);
    attempt.places.resize(4);
    attempt.ranks[0] = {.started = true, .pid = 100};
    attempt.ranks[1] = {.started = true, .ended = true, .pid = 101};
    attempt.ranks[3] = {.started = true, .pid = 103};
    attempt.places[3].node = "n2";
    run.attempts.push_back(attempt);
    state.runs[id] = run;
    EXPECT_TRUE(live_gangs(state, "/f").empty());
    state.live.insert(id);
    const auto gangs = live_gangs(state, "/f");
    ASSERT_EQ(gangs.size(), 1u);
    EXPECT_EQ(gangs[0].run, id);
    EXPECT_EQ(gangs[0].gang.live,
              (std::vector<LiveRank>{{.rank = 0, .pid = 100, .node = {}}, {.rank = 3, .pid = 103, .node = "n2"}}));
    EXPECT_EQ(gangs[0].gang.log_folder, "/f/runs/r-7/a-7.2");
    const MeasureSpec plain{.lines = "/f/runs/r-7/metrics.jsonl",
                            .heartbeat = {},
                            .step_pattern = {},
                            .folders = {"/f/runs/r-7"},
                            .interface = {}};
    EXPECT_EQ(gangs[0].gang.measure, plain);
    state.runs[id].spec.folder = "/run-folder";
    state.runs[id].spec.observe = ObserveSpec{.heartbeat = "beat", .step_pattern = "step {step}/{}"};
    state.runs[id].spec.checkpoint.folder = "/elsewhere";
    const auto observed = live_gangs(state, "/f");
    EXPECT_EQ(observed[0].gang.measure.heartbeat, "/run-folder/beat");
    EXPECT_EQ(observed[0].gang.measure.step_pattern, "step {step}/{}");
    EXPECT_EQ(observed[0].gang.measure.folders, (std::vector<std::string>{"/f/runs/r-7", "/elsewhere"}));
}

}  // namespace
}  // namespace stoker

// The engine with the real local driver and real processes. This program is its own keeper: called with
// "keeper FOLDER" it is one.
#include "run/engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "deploy/local/keeper.h"
#include "run/engine/engine_testing.h"

namespace stoker {
namespace {

using engine_testing::content;
using engine_testing::eventually;
using engine_testing::kAmple;
using engine_testing::Rig;

// The first thing a stranger does: a script runs, and its log, metrics and artifacts are where they were promised.
TEST(EngineTest, AScriptRunsAndLeavesWhatItWrote) {
    Rig rig;
    rig.open();
    RunSpec spec = rig.script(
        "echo working in $PWD; echo '{\"step\":1}' > \"$STOKER_METRICS_FILE\"; echo x > \"$STOKER_ARTIFACT_DIR/a\";"
        "test -d \"$STOKER_CHECKPOINT_DIR\" && echo lr $STOKER_PARAM_LR_DECAY");
    spec.checkpoint.folder = "checkpoints";
    spec.parameters = {{"lr-decay", "0.5"}};
    const RunId id = rig.submit(spec);
    ASSERT_TRUE(rig.reaches(id, RunState::succeeded));
    const RunFolder folder = rig.folder(id);
    EXPECT_EQ(rig.log(id), "working in " + folder.path + "\nlr 0.5\n");
    EXPECT_EQ(content(folder.metrics()), "{\"step\":1}\n");
    EXPECT_EQ(content(folder.artifacts() + "/a"), "x\n");
    EXPECT_TRUE(rig.settles());
    const EngineStats stats = rig.engine->stats();
    EXPECT_GT(stats.records, 5u);
    EXPECT_GT(stats.commit_p99_s, 0);
    EXPECT_GT(stats.journal_bytes, 0);
    EXPECT_EQ(stats.waiting_effects + stats.running_effects, 0u);
}

// Two ranks that cannot find each other are two lonely programs: rank, size and a port that both know.
TEST(EngineTest, AGangFindsItself) {
    Rig rig;
    rig.open();
    RunSpec spec = rig.script("echo $RANK/$WORLD_SIZE $NODE_RANK $MASTER_ADDR:$MASTER_PORT");
    spec.ranks = 2;
    spec.nodes = 2;
    const RunId id = rig.submit(spec);
    ASSERT_TRUE(rig.reaches(id, RunState::succeeded));
    const std::string first = rig.log(id, 1, 0), second = rig.log(id, 1, 1);
    EXPECT_TRUE(first.starts_with("0/2 0 127.0.0.1:")) << first;
    EXPECT_TRUE(second.starts_with("1/2 1 127.0.0.1:")) << second;
    EXPECT_EQ(first.substr(first.find(':')), second.substr(second.find(':')));
}

// One rank dies: the others hold machines for nothing and must end, and the cause must be the rank's that died.
TEST(EngineTest, AFailingRankEndsItsGang) {
    Rig rig;
    rig.open();
    RunSpec spec = rig.script("if [ $RANK = 1 ]; then exit 3; fi; exec sleep 600");
    spec.ranks = 2;
    const RunId id = rig.submit(spec);
    ASSERT_TRUE(rig.reaches(id, RunState::failed));
    EXPECT_EQ(rig.run(id).cause, Cause::user_error);
    EXPECT_NE(rig.run(id).detail.find("rank 1"), std::string::npos) << rig.run(id).detail;
}

// The server is restarted under running work: it goes on, once, and is found again.
TEST(EngineTest, TheNextEngineAdoptsWhatRuns) {
    Rig rig;
    rig.open();
    const RunId id = rig.submit(rig.script("echo begin $$; while [ ! -e go ]; do sleep 0.02; done; echo end"));
    ASSERT_TRUE(rig.says(id, "begin"));
    rig.engine->stop();
    EXPECT_FALSE(call(*rig.engine, {.what = CancelRun{id}}).ok());
    rig.open();
    EXPECT_EQ(rig.run(id).attempts.size(), 1u);
    std::ofstream(rig.folder(id).path + "/go") << "go";
    ASSERT_TRUE(rig.reaches(id, RunState::succeeded));
    EXPECT_EQ(rig.run(id).attempts.size(), 1u);
    EXPECT_TRUE(rig.log(id).ends_with("end\n")) << rig.log(id);
    EXPECT_TRUE(rig.settles());
}

// While nobody looked, the work ended: the next engine learns how.
TEST(EngineTest, WhatEndedMeanwhileIsLearnt) {
    Rig rig;
    rig.open();
    const RunId good = rig.submit(rig.script("echo begin; while [ ! -e go ]; do sleep 0.02; done"));
    const RunId bad = rig.submit(rig.script("echo begin; while [ ! -e go ]; do sleep 0.02; done; exit 9"));
    ASSERT_TRUE(rig.says(good, "begin") && rig.says(bad, "begin"));
    rig.engine->stop();
    for (const RunId id : {good, bad}) std::ofstream(rig.folder(id).path + "/go") << "go";
    ASSERT_TRUE(eventually([&] { return processes_with("TEST_MARK=" + rig.mark).empty(); }));
    rig.open();
    EXPECT_TRUE(rig.reaches(good, RunState::succeeded));
    EXPECT_TRUE(rig.reaches(bad, RunState::failed));
    EXPECT_NE(rig.run(bad).detail.find("left with 9"), std::string::npos) << rig.run(bad).detail;
}

// A program that will not leave is ended when its grace is over; a person waits for no longer than that.
TEST(EngineTest, CancelEndsWhatIgnoresTerm) {
    Rig rig;
    rig.open();
    RunSpec spec = rig.script("trap '' TERM; echo begin; while :; do sleep 0.05; done");
    spec.grace_s = 1;
    const RunId id = rig.submit(spec);
    ASSERT_TRUE(rig.says(id, "begin"));
    ASSERT_TRUE(rig.ask({.what = CancelRun{id}}).ok());
    ASSERT_TRUE(rig.reaches(id, RunState::cancelled));
    EXPECT_TRUE(rig.ask({.what = CancelRun{id}})->repeated);
    EXPECT_TRUE(rig.settles());
}

// Forty cancels that wait for their grace must hold up neither a launch nor each other.
TEST(EngineTest, CancelsHoldNobodyUp) {
    Rig rig;
    rig.options.max_effects = 8;
    rig.open();
    RunSpec stubborn = rig.script("trap '' TERM; echo begin; while :; do sleep 0.5; done");
    stubborn.grace_s = 3;
    std::vector<RunId> ids;
    for (int i = 0; i < 12; ++i) ids.push_back(rig.submit(stubborn));
    for (const RunId id : ids) ASSERT_TRUE(rig.says(id, "begin"));
    for (const RunId id : ids) ASSERT_TRUE(rig.ask({.what = CancelRun{id}}).ok());
    ASSERT_TRUE(rig.reaches(rig.submit(rig.script("true")), RunState::succeeded));
    for (const RunId id : ids) ASSERT_TRUE(rig.reaches(id, RunState::cancelled));
    std::vector<std::int64_t> ends;
    for (const RunId id : ids) ends.push_back(rig.run(id).ended_us);
    const auto [first, last] = std::minmax_element(ends.begin(), ends.end());
    // Four rounds of three threads would end 9 s apart.
    EXPECT_LT(*last - *first, 8 * 1'000'000);
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
    if (argc == 3 && std::strcmp(argv[1], "keeper") == 0) return stoker::run_keeper(argv[2]);
    ::testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}

// Checkpoints that are uploaded while a run goes on, and that come back when its folder is gone: with the real engine,
// processes, and a folder as the store.
#include "run/engine/upload.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "run/decide/why.h"
#include "run/engine/engine_testing.h"
#include "run/engine/upload_manifest.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using engine_testing::eventually;
using engine_testing::Rig;

// Writes a checkpoint of `step`, as a shell does it.
std::string save(int step) {
    const std::string name = "step-" + std::to_string(step);
    return "cd \"$STOKER_CHECKPOINT_DIR\"; mkdir -p " + name + ".tmp; echo " + std::to_string(step) + " > " + name +
           ".tmp/data; echo '{\"files\":{\"data\":" + std::to_string(std::to_string(step).size() + 1) + "}}' > " +
           name + ".tmp/manifest.json; mv " + name + ".tmp " + name + "; ";
}

class UploadTest : public testing::Test {
protected:
    void open() {
        rig.open();
        uploads =
            CheckpointUploads::start(*rig.engine, {.look_every_s = 0.02, .first_wait_s = 0.05, .most_wait_s = 0.2});
    }
    void close() {
        uploads.reset();
        rig.engine->stop();
        rig.engine.reset();
    }
    void TearDown() override { uploads.reset(); }
    RunSpec spec(const std::string& script) {
        RunSpec made = rig.script(script);
        made.checkpoint.folder = "checkpoints";
        made.checkpoint.upload = UploadPolicy{.to = "file://" + rig.root + "/store"};
        return made;
    }
    bool is_stored(RunId id, std::int64_t step) {
        return eventually([&] {
            const auto run = rig.run(id);
            return run.stored && run.stored->step == step && run.stored->uploading < 0;
        });
    }
    Rig rig;
    std::unique_ptr<CheckpointUploads> uploads;
};

// The whole promise: it goes up while the run goes on, and comes back when the folder is lost.
TEST_F(UploadTest, ACheckpointGoesUpAndComesBack) {
    open();
    const RunId id = rig.submit(spec("echo from \"$STOKER_RESUME_FROM\"; " + save(7) + "echo saved; exec sleep 600"));
    ASSERT_TRUE(rig.says(id, "saved"));
    ASSERT_TRUE(is_stored(id, 7));
    EXPECT_TRUE(fs::exists(rig.root + "/store/" +
                           rig.run(id).stored->url.substr(rig.run(id).stored->url.find("store/") + 6) +
                           "/complete/step-7.json"));
    ASSERT_TRUE(rig.ask({.what = HoldRun{id, true}}));
    ASSERT_TRUE(rig.ask({.what = EvictRun{id, 0}}));
    ASSERT_TRUE(eventually([&] { return rig.run(id).state == RunState::queued; }));
    fs::remove_all(rig.folder(id).path + "/checkpoints");
    ASSERT_TRUE(rig.ask({.what = HoldRun{id, false}}));
    ASSERT_TRUE(rig.says(id, "saved", 2));
    EXPECT_NE(rig.log(id, 2).find("/step-7"), std::string::npos) << rig.log(id, 2);
    EXPECT_EQ(rig.run(id).attempts[1].resume_step, 7);
    ASSERT_TRUE(rig.ask({.what = CancelRun{id}}));
    ASSERT_TRUE(eventually([&] { return is_terminal(rig.run(id).state); }));
}

// What was begun by a server that was killed is done by the next: the record says begun, the store has nothing.
TEST_F(UploadTest, WhatAKilledServerHadBegunIsDoneByTheNext) {
    rig.open();  // no uploads yet
    const RunId id = rig.submit(spec(save(3)));
    ASSERT_TRUE(rig.reaches(id, RunState::succeeded));
    const std::string url = "file://" + rig.root + "/store/elsewhere/" + id.text();
    ASSERT_TRUE(rig.ask({.what = BeginUpload{.run = id, .step = 3, .url = url}}));
    EXPECT_EQ(rig.ask({.what = BeginUpload{.run = id, .step = 4, .url = url}}).error().kind(), ErrorKind::conflict);
    rig.engine->stop();
    rig.engine.reset();
    open();
    ASSERT_TRUE(is_stored(id, 3));
    EXPECT_EQ(rig.run(id).stored->url, url) << "where it was begun";
    EXPECT_TRUE(fs::exists(rig.root + "/store/elsewhere/" + id.text() + "/complete/step-3.json"));
    // Begun, gone from the folder, and not in the store: it is told, and ends.
    fs::remove_all(rig.folder(id).path + "/checkpoints");
    ASSERT_TRUE(rig.ask({.what = BeginUpload{.run = id, .step = 9, .url = url}}));
    close();
    open();
    ASSERT_TRUE(eventually([&] { return rig.run(id).stored->faults > 0; }));
    EXPECT_EQ(rig.run(id).stored->step, 3);
}

// A store that refuses is a warning, never a failure of the run; when it is well again, it gets what it lacks.
TEST_F(UploadTest, AFailureIsAWarningAndIsTriedAgain) {
    // A file stands where the store's folder should be.
    std::ofstream(rig.root + "/store") << "in the way";
    open();
    const RunId id = rig.submit(spec(save(1) + "exec sleep 600"));
    ASSERT_TRUE(eventually([&] {
        const auto run = rig.run(id);
        return run.stored && run.stored->faults > 0;
    }));
    EXPECT_FALSE(rig.run(id).stored->fault.empty());
    EXPECT_EQ(rig.run(id).state, RunState::running);
    fs::remove(rig.root + "/store");
    ASSERT_TRUE(is_stored(id, 1));
    EXPECT_TRUE(rig.run(id).stored->fault.empty());
    ASSERT_TRUE(rig.ask({.what = CancelRun{id}}));
    ASSERT_TRUE(eventually([&] { return is_terminal(rig.run(id).state); }));
}

// every: 3 leaves out what lies between, and the end brings the last one all the same.
TEST_F(UploadTest, TheLastOneGoesUpWhenTheRunHasEnded) {
    open();
    RunSpec often = spec(save(1) + save(2));
    often.checkpoint.upload->every = 3;
    const RunId id = rig.submit(often);
    ASSERT_TRUE(rig.reaches(id, RunState::succeeded));
    uploads->finish([] { return false; });
    EXPECT_EQ(uploads->owed(), 0u);
    ASSERT_TRUE(rig.run(id).stored.has_value());
    EXPECT_EQ(rig.run(id).stored->step, 2);
    often.checkpoint.upload->at_end = false;
    const RunId other = rig.submit(often);
    ASSERT_TRUE(rig.reaches(other, RunState::succeeded));
    uploads->finish([] { return false; });
    EXPECT_FALSE(rig.run(other).stored.has_value());
}

// Asked to go on from a store that has nothing, it waits and says why, instead of doing the work from the beginning.
TEST_F(UploadTest, ARestoreThatFindsNothingWaitsWithItsReason) {
    open();
    RunSpec from = rig.script("true");
    from.checkpoint.folder = "checkpoints";
    from.checkpoint.restore_from = "file://" + rig.root + "/nothing";
    const RunId id = rig.submit(from);
    std::string text;
    ASSERT_TRUE(eventually([&] {
        (void)rig.engine->read(
            [&](const EngineView& view) { text = why(view.state, id, view.now_us, view.scheduler).text; });
        return text.find("there is no complete checkpoint") != std::string::npos;
    })) << text;
    EXPECT_EQ(rig.run(id).state, RunState::queued);
    // Others go past it.
    const RunId other = rig.submit(rig.script("true"));
    ASSERT_TRUE(rig.reaches(other, RunState::succeeded));
    ASSERT_TRUE(rig.ask({.what = CancelRun{id}}));
}

}  // namespace
}  // namespace stoker

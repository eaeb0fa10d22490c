// What ends a run from outside (eviction, lease), and what the engine does at its own limits: a full queue, a full or
// slow disk, a clock that jumps, a stop in the middle.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <future>
#include <set>

#include "run/engine/engine_testing.h"
#include "run/state/rules.h"

namespace stoker {
namespace {

using engine_testing::content;
using engine_testing::eventually;
using engine_testing::kAmple;
using engine_testing::Rig;

// Steps that write a checkpoint on USR1, and go on from the one they are given.
constexpr const char* kTraining = R"(
save() { d=$STOKER_CHECKPOINT_DIR/step-00000$step; mkdir $d.tmp; echo $step > $d.tmp/state
  printf '{"files":{"state":2}}' > $d.tmp/manifest.json; mv $d.tmp $d; echo saved $step; exit 75; }
step=0; [ -n "$STOKER_RESUME_FROM" ] && step=$(cat $STOKER_RESUME_FROM/state)
trap save USR1
echo from $step
[ $step -gt 0 ] && exit 0
step=3; echo ready
while :; do sleep 0.02; done)";

// A machine is taken with notice: the work is told, saves, and goes on elsewhere from what it saved.
TEST(EngineLimitsTest, AnEvictedRunGoesOnFromItsCheckpoint) {
    Rig rig;
    rig.open();
    RunSpec spec = rig.script(kTraining);
    spec.checkpoint.folder = "checkpoints";
    const RunId id = rig.submit(spec);
    ASSERT_TRUE(rig.says(id, "ready"));
    ASSERT_TRUE(rig.ask({.what = EvictRun{.run = id, .notice_s = 30}}).ok());
    ASSERT_TRUE(rig.reaches(id, RunState::succeeded));
    const stoker::Run run = rig.run(id);
    ASSERT_EQ(run.attempts.size(), 2u);
    EXPECT_EQ(run.attempts[0].cause, Cause::preempted);
    EXPECT_EQ(run.attempts[1].resume_from, rig.folder(id).path + "/checkpoints/step-000003");
    EXPECT_NE(rig.log(id, 2).find("from 3"), std::string::npos);
}

// Checkpoints would fill the disk: of those that an attempt leaves, the newest are kept.
TEST(EngineLimitsTest, OldCheckpointsArePrunedWhenTheAttemptEnds) {
    Rig rig;
    rig.open();
    RunSpec spec = rig.script(
        "cd $STOKER_CHECKPOINT_DIR; for i in 1 2 3 4 5 6; do mkdir step-$i; echo {\\\"files\\\":{}} > "
        "step-$i/manifest.json; done; mkdir step-2.tmp step-9.tmp");
    spec.checkpoint = {.folder = "checkpoints", .keep = 2};
    const RunId id = rig.submit(spec);
    ASSERT_TRUE(rig.reaches(id, RunState::succeeded));
    const std::string folder = rig.folder(id).path + "/checkpoints/";
    EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(folder + "step-2.tmp"); }));
    EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(folder + "step-1"); }));
    EXPECT_FALSE(std::filesystem::exists(folder + "step-4"));
    for (const char* kept : {"step-5", "step-6", "step-9.tmp"}) EXPECT_TRUE(std::filesystem::exists(folder + kept));
}

// A notebook that somebody forgot: it is told when its lease ends, and stopped.
TEST(EngineLimitsTest, ALeaseStopsAndTheHardMaximumStopsAnything) {
    Rig rig;
    rig.open();
    // On a busy machine both signals may have come before the shell looks: the TERM of the end must not be the first.
    RunSpec forgotten =
        rig.script("trap 'echo told; exit 0' USR1; trap '' TERM; echo begin; while :; do sleep 0.02; done");
    forgotten.lease.stop_after_s = 600;
    forgotten.grace_s = 60;
    RunSpec stubborn = rig.script("trap '' TERM USR1; echo begin; while :; do sleep 0.02; done");
    stubborn.lease.hard_max_s = 1;
    stubborn.grace_s = 1;
    const RunId told = rig.submit(forgotten), ended = rig.submit(stubborn);
    // Not before it can hear: on a busy machine a shell takes longer than a second to set its trap.
    ASSERT_TRUE(rig.says(told, "begin"));
    const auto soon = std::chrono::system_clock::now().time_since_epoch() + std::chrono::seconds(1);
    const std::int64_t soon_us = std::chrono::duration_cast<std::chrono::microseconds>(soon).count();
    ASSERT_TRUE(rig.ask({.what = RenewLease{told, soon_us}}).ok());
    ASSERT_TRUE(rig.reaches(told, RunState::expired));
    ASSERT_TRUE(rig.reaches(ended, RunState::expired));
    EXPECT_EQ(rig.run(told).cause, Cause::lease);
    EXPECT_NE(rig.log(told).find("told"), std::string::npos);
    EXPECT_EQ(rig.run(ended).cause, Cause::lease);
}

// More callers than the engine keeps waiting are told so at once, and everyone who was taken gets an answer.
TEST(EngineLimitsTest, TheQueueIsBoundedAndEveryoneTakenIsAnswered) {
    Rig rig;
    std::promise<void> gate;
    const std::shared_future<void> open_gate = gate.get_future().share();
    std::atomic<bool> closed = false, held = false;
    rig.options.max_waiting = 4;
    rig.options.before_turn = [&] {
        if (!closed) return;
        held = true;
        open_gate.wait();
    };
    rig.open();
    closed = true;
    int taken = 0, refused = 0;
    std::atomic<int> answered = 0;
    // Something to do, so that the engine comes to the gate; from then on nothing is taken out of the queue.
    ASSERT_TRUE(
        rig.engine->post({.what = Submit{.spec = rig.script("true")}}, [&](const Result<Ack>&) { ++answered; }).ok());
    ++taken;
    ASSERT_TRUE(eventually([&] { return held.load(); }));
    for (int i = 0; i < 100; ++i) {
        const Status status =
            rig.engine->post({.what = Submit{.spec = rig.script("true")}}, [&](const Result<Ack>& ack) {
                EXPECT_TRUE(ack.ok());
                ++answered;
            });
        (status ? taken : refused) += 1;
        EXPECT_TRUE(status.ok() || status.error().kind() == ErrorKind::exhausted);
    }
    EXPECT_GE(taken, 4);
    EXPECT_GT(refused, 0);
    EXPECT_EQ(call(*rig.engine, {.what = CancelRun{{1}}}, 0.05).error().kind(), ErrorKind::exhausted);
    closed = false;
    gate.set_value();
    EXPECT_TRUE(eventually([&] { return answered == taken; }));
}

// A caller with little time gets its answer in time, whatever the disk does.
TEST(EngineLimitsTest, CallersDoNotWaitForASlowDisk) {
    Rig rig;
    std::atomic<int> delay_ms = 0;
    rig.options.before_turn = [&] { std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms)); };
    rig.open();
    ASSERT_TRUE(rig.settles());
    delay_ms = 300;
    const RunSpec spec = rig.script("true");
    EXPECT_EQ(call(*rig.engine, {.what = Submit{.spec = spec, .key = "k"}}, 0.02).error().kind(), ErrorKind::timed_out);
    // It was done all the same: the same key finds it.
    const auto again = rig.ask({.what = Submit{.spec = spec, .key = "k"}});
    ASSERT_TRUE(again.ok());
    EXPECT_TRUE(again->repeated);
    delay_ms = 0;
    EXPECT_TRUE(rig.reaches(again->run, RunState::succeeded));
}

// Somebody who looks waits for no turn, sees what was acknowledged before, and nothing that is not on disk yet: a
// client that submits and then lists must find its run, and a list must stay quick while the disk is slow.
TEST(EngineLimitsTest, ReadersWaitForNoTurnAndSeeWhatIsOnDisk) {
    Rig rig;
    std::atomic<bool> closed = false;
    std::promise<void> gate;
    const std::shared_future<void> opened = gate.get_future().share();
    rig.options.before_turn = [&] {
        if (closed) opened.wait();
    };
    rig.open();
    ASSERT_TRUE(rig.settles());
    const RunId first = rig.submit(rig.script("true"));
    EXPECT_EQ(rig.run(first).id, first);
    ASSERT_TRUE(rig.reaches(first, RunState::succeeded));
    ASSERT_TRUE(rig.settles());
    closed = true;
    std::atomic<bool> seen_in_answer = false, answered = false;
    ASSERT_TRUE(rig.engine
                    ->post({.what = Submit{.spec = rig.script("true")}},
                           [&](const Result<Ack>& ack) {
                               (void)rig.engine->read([&](const EngineView& view) {
                                   seen_in_answer = ack.ok() && view.state.find(ack->run) != nullptr;
                               });
                               answered = true;
                           })
                    .ok());
    // The core stands; with the turn of the core each of these would never come back.
    for (int i = 0; i < 100; ++i) {
        std::size_t runs = 0;
        ASSERT_TRUE(rig.engine->read([&](const EngineView& view) { runs = view.state.runs.size(); }).ok());
        EXPECT_EQ(runs, 1U);
    }
    EXPECT_FALSE(answered);
    closed = false;
    gate.set_value();
    ASSERT_TRUE(eventually([&] { return answered.load(); }));
    EXPECT_TRUE(seen_in_answer);
}

// The state that readers see is brought up to date record by record; it may never drift from the core's.
TEST(EngineLimitsTest, TheShownStateIsTheCoresState) {
    Rig rig;
    rig.open();
    RunSpec spec = rig.script("test $RANK = 0 && exit 3; true");
    spec.ranks = 2;
    std::vector<RunId> ids = {rig.submit(spec), rig.submit(rig.script("true")), rig.submit(rig.script("sleep 100"))};
    RunSpec graph;
    graph.name = "graph";
    graph.kind = RunKind::graph;
    graph.steps = {{.name = "a", .run = rig.script("true")},
                   {.name = "b", .depends_on = {"a"}, .run = rig.script("true")}};
    ids.push_back(rig.submit(graph));
    ASSERT_TRUE(rig.reaches(ids[0], RunState::failed));
    ASSERT_TRUE(rig.ask({.what = CancelRun{ids[2]}}).ok());
    ASSERT_TRUE(rig.reaches(ids[2], RunState::cancelled));
    ASSERT_TRUE(rig.reaches(ids[3], RunState::succeeded));
    ASSERT_TRUE(rig.settles());
    std::string shown;
    std::size_t queue = 0, timers = 0;
    ASSERT_TRUE(rig.engine
                    ->read([&](const EngineView& view) {
                        shown = digest(view.state);
                        queue = view.state.queue.size();
                        timers = view.state.timers.size();
                    })
                    .ok());
    std::promise<void> compared;
    ASSERT_TRUE(rig.engine
                    ->read_journal([&](const EngineView& view) {
                        EXPECT_EQ(shown, digest(view.state));
                        EXPECT_EQ(queue, view.state.queue.size());
                        EXPECT_EQ(timers, view.state.timers.size());
                        ASSERT_NE(view.journal, nullptr);
                        compared.set_value();
                    })
                    .ok());
    ASSERT_EQ(compared.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
}

// A clock that is set an hour on or back moves no lease and no back-off, and is told.
TEST(EngineLimitsTest, AJumpOfTheClockEndsNothing) {
    Rig rig;
    std::atomic<std::int64_t> jump_us = 0;
    rig.options.wall_us = [&] { return wall_clock_us() + jump_us; };
    rig.open();
    RunSpec spec = rig.script("echo begin; while [ ! -e go ]; do sleep 0.02; done");
    spec.lease.stop_after_s = 1800;
    const RunId id = rig.submit(spec);
    ASSERT_TRUE(rig.says(id, "begin"));
    for (const std::int64_t hours : {1, -1}) {
        jump_us = hours * 3600 * kSecondUs;
        const RunId other = rig.submit(rig.script("true"));
        ASSERT_TRUE(rig.reaches(other, RunState::succeeded));
        EXPECT_NEAR(rig.engine->stats().clock_jump_s, static_cast<double>(hours) * 3600, 60);
        EXPECT_EQ(rig.run(id).state, RunState::running);
        EXPECT_GE(rig.run(other).ended_us, rig.run(id).started_us);
    }
    // The next server starts while the clock is an hour behind: time does not go back, and facts are still heard.
    rig.engine->stop();
    rig.open();
    std::ofstream(rig.folder(id).path + "/go") << "go";
    ASSERT_TRUE(rig.reaches(id, RunState::succeeded));
    EXPECT_GE(rig.run(id).ended_us, rig.run(id).started_us);
}

// The server is stopped while launches and cancels are under way: it ends soon, and the next one finishes them.
TEST(EngineLimitsTest, StopInTheMiddleOfEffects) {
    Rig rig;
    rig.open();
    RunSpec stubborn = rig.script("trap '' TERM; echo begin; while :; do sleep 0.05; done");
    stubborn.grace_s = 14;
    const RunId cancelled = rig.submit(stubborn);
    ASSERT_TRUE(rig.says(cancelled, "begin"));
    ASSERT_TRUE(rig.ask({.what = CancelRun{cancelled}}).ok());
    std::vector<RunId> ids;
    for (int i = 0; i < 8; ++i) ids.push_back(rig.submit(rig.script("sleep 0.1")));
    const auto began = std::chrono::steady_clock::now();
    rig.engine->stop();
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(12)) << "it waited for the grace";
    rig.open();
    for (const RunId id : ids) {
        EXPECT_TRUE(rig.reaches(id, RunState::succeeded));
        EXPECT_EQ(rig.run(id).attempts.size(), 1u);
    }
    EXPECT_TRUE(rig.reaches(cancelled, RunState::cancelled));
}

// Watchers see each record once, after it is on disk, and none once they are gone.
TEST(EngineLimitsTest, WatchersSeeWhatWasWritten) {
    Rig rig;
    rig.open();
    std::atomic<int> submitted = 0;
    auto watch = rig.engine->watch([&](std::span<const Record> records) {
        for (const Record& record : records) submitted += std::holds_alternative<RunSubmitted>(record.body) ? 1 : 0;
    });
    const RunId id = rig.submit(rig.script("true"));
    ASSERT_TRUE(rig.reaches(id, RunState::succeeded));
    EXPECT_EQ(submitted, 1);
    watch.reset();
    ASSERT_TRUE(rig.reaches(rig.submit(rig.script("true")), RunState::succeeded));
    EXPECT_EQ(submitted, 1);
}

// Somebody looks without a server, beside one, and where nothing ever ran; looking changes no file.
TEST(EngineLimitsTest, OfflineShowsWhatTheJournalHolds) {
    Rig rig;
    const auto nothing = read_offline(rig.root + "/engine");
    ASSERT_FALSE(nothing.ok());
    EXPECT_EQ(nothing.error().kind(), ErrorKind::not_found);
    EXPECT_NE(nothing.error().message().find("no runs yet"), std::string::npos);
    rig.open();
    const RunId id = rig.submit(rig.script("true"));
    ASSERT_TRUE(rig.reaches(id, RunState::succeeded) && rig.settles());
    const auto beside = read_offline(rig.root + "/engine");
    ASSERT_TRUE(beside.ok()) << beside.error().text();
    EXPECT_EQ(beside->state.find(id)->state, RunState::succeeded);
    rig.engine->stop();
    const auto files = [&] {
        std::set<std::string> names;
        for (const auto& each : std::filesystem::directory_iterator(rig.root + "/engine"))
            names.insert(each.path().filename());
        return names;
    };
    const auto before = files();
    const auto alone = read_offline(rig.root + "/engine");
    ASSERT_TRUE(alone.ok()) << alone.error().text();
    EXPECT_EQ(alone->state.seq, beside->state.seq);
    EXPECT_GT(alone->last_record_us, 0);
    EXPECT_EQ(files(), before);
}

// The disk is full in the middle: what was acknowledged is there afterwards, the rest was refused, and the server is
// told once that it has to end.
TEST(EngineLimitsTest, AFullDiskLosesNothingAcknowledged) {
    Rig rig;
    std::atomic<int> failures = 0;
    rig.options.on_failure = [&](const Error&) { ++failures; };
    rig.open();
    ASSERT_TRUE(rig.settles());
    RunSpec waits = rig.script("true");
    waits.per_rank.gpus = 1;  // there is none: it stays in the queue
    const RunId before = rig.submit(waits, "before");
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
    auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit none = limit;
    none.rlim_cur = 4096;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
    const auto refused = call(*rig.engine, {.what = Submit{.spec = waits, .key = "during"}});
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    std::signal(SIGXFSZ, handler);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind(), ErrorKind::unavailable) << refused.error().text();
    const auto after = call(*rig.engine, {.what = Submit{.spec = waits, .key = "after"}});
    ASSERT_FALSE(after.ok());
    EXPECT_FALSE(rig.engine->read([](const EngineView&) {}).ok());
    EXPECT_TRUE(eventually([&] { return failures == 1; }));
    rig.engine->stop();
    EXPECT_EQ(failures, 1);
    rig.open();
    EXPECT_EQ(rig.run(before).state, RunState::queued);
    EXPECT_FALSE(rig.ask({.what = Submit{.spec = waits, .key = "during"}})->repeated);
}

// A disk that fills up refuses new work before it is too full to write down how the old work ends.
TEST(EngineLimitsTest, ANearlyFullDiskRefusesNewRunsAndLetsOldOnesEnd) {
    Rig rig;
    const std::string folder = rig.root + "/engine";
    std::filesystem::create_directories(folder);
    if (::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=32m") != 0) GTEST_SKIP() << "no file system can be mounted";
    rig.open();
    const RunId old = rig.submit(rig.script("echo begin; while [ ! -e go ]; do sleep 0.02; done"));
    EXPECT_TRUE(rig.says(old, "begin"));
    const std::string ballast = folder + "/ballast";
    std::ofstream(ballast) << std::string((32u << 20) - (3u << 20), 'x');  // 1 MiB or so stays free
    EXPECT_TRUE(eventually([&] {
        const auto refused = call(*rig.engine, {.what = Submit{.spec = rig.script("true")}});
        return !refused && refused.error().kind() == ErrorKind::exhausted;
    }));
    std::ofstream(rig.folder(old).path + "/go") << "go";
    EXPECT_TRUE(rig.reaches(old, RunState::succeeded));
    std::filesystem::remove(ballast);
    EXPECT_TRUE(eventually([&] { return call(*rig.engine, {.what = Submit{.spec = rig.script("true")}}).ok(); }));
    EXPECT_TRUE(rig.settles());
    rig.engine->stop();
    rig.engine.reset();
    EXPECT_TRUE(eventually([&] { return ::umount(folder.c_str()) == 0; }));
}

// A folder that cannot be written is said at the start, not found out later; a second server is told who has it.
TEST(EngineLimitsTest, BadFoldersAreRefusedAtTheStart) {
    Rig rig;
    rig.open();
    const auto second = Engine::open(rig.options);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().kind(), ErrorKind::conflict);
    EXPECT_NE(second.error().message().find(std::to_string(::getpid())), std::string::npos);
    EngineOptions nowhere = rig.options;
    nowhere.folder = "/proc/none/engine";
    EXPECT_FALSE(Engine::open(nowhere).ok());
}

}  // namespace
}  // namespace stoker

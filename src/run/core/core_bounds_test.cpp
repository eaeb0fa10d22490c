// What the core keeps and for how long: snapshots, commits, the queue, ended runs, answers that do not come.
#include "run/core/core_testing.h"

namespace stoker {
namespace {

// A checkpoint folder that hangs may cost its own run time, and nobody else anything; and nothing that is in it.
TEST_F(CoreTest, ACheckpointFolderIsAskedForAndNeverWaitedFor) {
    machine(1);
    RunSpec spec = job();
    spec.checkpoint.folder = "/nfs/ck";
    const RunId run = tell(Submit{.spec = spec})->run;
    ASSERT_EQ(turn_.looks.size(), 1U);
    const Look look = turn_.looks[0];
    EXPECT_EQ(effect(Verb::launch), nullptr);
    tick(1);
    EXPECT_TRUE(turn_.looks.empty());  // once
    tick(15);
    const RunId other = tell(Submit{.spec = job()})->run;
    ASSERT_NE(effect(Verb::launch), nullptr);
    EXPECT_EQ(effect(Verb::launch)->attempt.run, other);
    const OperationId op = effect(Verb::launch)->operation;
    ASSERT_TRUE(answer(op, Certainty::confirmed));
    ASSERT_TRUE(tell(SawCheckpoints{run, look.asked, CheckpointView{.newest = "/nfs/ck/step-7", .step = 7}}));
    ASSERT_TRUE(tell(SawFact{fact(FactKind::rank_ended, op, Cause::ok)}));
    ASSERT_TRUE(tell(SawFact{fact(FactKind::gang_ended, op, Cause::ok)}));
    for (int i = 0; i < 3 && effect(Verb::launch) == nullptr; ++i) {
        const auto looks = turn_.looks;
        if (looks.empty()) {
            tick(1);
        } else {
            ASSERT_TRUE(
                tell(SawCheckpoints{run, looks[0].asked, CheckpointView{.newest = "/nfs/ck/step-7", .step = 7}}));
        }
    }
    ASSERT_NE(effect(Verb::launch), nullptr);
    EXPECT_EQ(core_->state().find(run)->attempts[0].resume_from, "/nfs/ck/step-7");
}

// A queue without a bound fills memory and disk; a run that nobody waits for any more should not start.
TEST_F(CoreTest, TheQueueIsBoundedInLengthAndInTime) {
    open(CoreOptions{.site = "tests", .max_queued = 2});
    ASSERT_TRUE(tell(Listed{{.asked_seq = core_->state().seq, .ours = {}}}));
    RunSpec spec = job();
    spec.queue_timeout_s = 60;
    const RunId run = tell(Submit{.spec = spec})->run;
    ASSERT_TRUE(tell(Submit{.spec = job()}));
    const auto refused = tell(Submit{.spec = job()});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), ErrorKind::exhausted);
    EXPECT_THAT(refused.error().text(), HasSubstr("2 runs wait already"));
    tick(60);
    EXPECT_EQ(state_of(run), RunState::expired);
    EXPECT_EQ(core_->state().find(run)->cause, Cause::no_capacity);
}

// Memory is bounded; what is forgotten is still in the journal, and a restart forgets the same.
TEST_F(CoreTest, EndedRunsAreForgottenOldestFirst) {
    open(CoreOptions{.site = "tests", .max_ended = 2});
    std::vector<RunId> runs;
    for (int i = 0; i < 4; ++i) {
        runs.push_back(tell(Submit{.spec = job(), .key = std::to_string(i)})->run);
        ASSERT_TRUE(tell(CancelRun{runs.back()}));
    }
    EXPECT_EQ(core_->state().find(runs[1]), nullptr);
    EXPECT_NE(core_->state().find(runs[2]), nullptr);
    EXPECT_EQ(core_->state().keys.size(), 2U);
    EXPECT_THAT(tell(CancelRun{runs[0]}).error().text(), HasSubstr("ended long ago"));
    const std::string before = digest(core_->state());
    open(CoreOptions{.site = "tests", .max_ended = 2});
    EXPECT_EQ(core_->state().runs.size(), 2U);
    EXPECT_EQ(tell(Submit{.spec = job()})->run.number, 5U);
}

// A large snapshot is written while runs go on changing and being forgotten; it has to be the state of one moment.
TEST_F(CoreTest, ASnapshotInPiecesIsTheStateOfOneMoment) {
    State state = core_->state();
    std::uint64_t seq = state.seq;
    const auto put = [&](RecordBody body) {
        ASSERT_TRUE(state.apply({.seq = ++seq, .at_us = now_us_, .epoch = 1, .body = std::move(body)}));
    };
    for (std::uint64_t i = 1; i <= 9; ++i) put(RunSubmitted{.run = {i}, .spec = job(), .key = "", .step = ""});
    const std::string expected = encode_state(state);
    StateWriter writer(state);
    std::string text = *writer.next(state, 1);
    const auto change = [&](RecordBody body) {
        writer.before_change(state, state.run_of(body));
        put(std::move(body));
    };
    for (std::uint64_t i : {9, 1, 5})
        change(RunMoved{.run = {i}, .event = RunEvent::cancel, .cause = Cause::cancelled});
    change(RunForgotten{{5}});
    change(RunSubmitted{.run = {10}, .spec = job(), .key = "", .step = ""});
    while (const auto piece = writer.next(state, 1)) {
        text += *piece;
        if (state.find(RunId{8}) != nullptr && !is_terminal(state.find(RunId{8})->state))
            change(RunMoved{.run = {8}, .event = RunEvent::cancel, .cause = Cause::cancelled});
    }
    EXPECT_EQ(text, expected);
}

// After a kill the pieces that were written are no snapshot; all of them are.
TEST_F(CoreTest, ASnapshotInPiecesCountsWhenItIsWhole) {
    open(CoreOptions{.site = "tests", .snapshot_every = 20, .snapshot_piece_bytes = 700});
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(tell(Submit{.spec = job()}));
    EXPECT_FALSE(*journal_->newest_snapshot());
    open(CoreOptions{.site = "tests", .snapshot_every = 20, .snapshot_piece_bytes = 700});
    EXPECT_EQ(core_->state().runs.size(), 30U);
    ASSERT_TRUE(tell(Submit{.spec = job()}));
    for (int i = 0; i < 250; ++i) ASSERT_TRUE(tell(HoldRun{{1}, i % 2 == 0}));
    const auto snapshot = journal_->newest_snapshot();
    ASSERT_TRUE(snapshot && *snapshot);
    const std::string before = digest(core_->state());
    const auto decoded = decode_state((*snapshot)->state);
    ASSERT_TRUE(decoded) << decoded.error().text();
    EXPECT_EQ(decoded->seq, (*snapshot)->seq);
    open();
    EXPECT_EQ(core_->state().runs.size(), 31U);
}

// A command that comes with many others shares their commit, and one that is refused does not take them along.
TEST_F(CoreTest, OneCommitForAllCommandsOfATurn) {
    const std::uint64_t before = journal_->head().seq;
    RunSpec bad = job();
    bad.command.clear();
    const std::vector<Command> commands = {
        {.what = Submit{.spec = job()}}, {.what = Submit{.spec = bad}}, {.what = Submit{.spec = job()}}};
    const auto turn = core_->turn(commands, now_us_);
    ASSERT_TRUE(turn);
    EXPECT_TRUE(turn->acks[0] && !turn->acks[1] && turn->acks[2]);
    EXPECT_EQ(journal_->head().seq, before + 2);
}

// Acknowledged means on disk. When the disk says no, nothing is acknowledged any more and the file is as it was.
TEST_F(CoreTest, AFailedCommitEndsEverything) {
    const RunId kept = tell(Submit{.spec = job()})->run;
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit none = before;
    none.rlim_cur = 4096;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
    const auto refused = tell(Submit{.spec = job()});
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_FALSE(refused);
    EXPECT_THAT(tell(Submit{.spec = job()}).error().text(), HasSubstr("restart the server"));
    open();
    EXPECT_EQ(core_->state().runs.size(), 1U);
    EXPECT_NE(core_->state().find(kept), nullptr);
}

// A snapshot and the records after it are the whole; an edit in the middle is found.
TEST_F(CoreTest, ReopensFromSnapshotsAndRefusesAForeignHistory) {
    open(5);
    machine();
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(tell(Submit{.spec = job()}));
    State live = core_->state();
    ASSERT_TRUE(*journal_->newest_snapshot());
    open(5);
    EXPECT_EQ(core_->state().runs.size(), live.runs.size());
    EXPECT_EQ(core_->state().epoch, live.epoch + 1);
    EXPECT_EQ(core_->state().queue, live.queue);
    core_.reset();
    // A record that is well chained, and cannot be: the run does not exist.
    const JournalEntry entry{.kind = 4,
                             .format = 1,
                             .object = "run/r-77",
                             .version = 1,
                             .actor = "x",
                             .cause = "",
                             .operation = "",
                             .trace = "",
                             .body = R"({"held":true,"run":"r-77"})"};
    ASSERT_TRUE(journal_->append({&entry, 1}, now_us_));
    const auto core = Core::open(*journal_, {.site = "tests"}, now_us_);
    ASSERT_FALSE(core);
    EXPECT_THAT(core.error().text(), HasSubstr("does not fit the state before it"));
}

}  // namespace
}  // namespace stoker

#include "run/core.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <filesystem>

#include "run/rules.h"

namespace stoker {
namespace {

using testing::HasSubstr;

// A core on a journal in a temporary folder, with answers and facts as a driver would give them.
class CoreTest : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = testing::TempDir() + "core-XXXXXX";
        folder_ = ::mkdtemp(pattern.data());
        open();
    }
    void TearDown() override {
        core_.reset();
        journal_.reset();
        std::filesystem::remove_all(folder_);
    }
    void open(std::uint64_t snapshot_every = 10'000) {
        open(CoreOptions{.site = "tests", .log_root = "/logs", .snapshot_every = snapshot_every});
    }
    void open(CoreOptions options) {
        core_.reset();
        journal_.reset();
        auto journal = Journal::open(folder_, {});
        ASSERT_TRUE(journal) << journal.error().text();
        journal_ = std::move(*journal);
        auto core = Core::open(*journal_, std::move(options), now_us_);
        ASSERT_TRUE(core) << core.error().text();
        core_ = std::move(*core);
    }
    // One command in a turn of its own; answers what the turn brought.
    Result<Ack> tell(decltype(Command::what) what, std::optional<std::uint64_t> if_version = {}) {
        const Command command{.what = std::move(what), .if_version = if_version};
        now_us_ += 10'000'000;
        auto turn = core_->turn({&command, 1}, now_us_);
        if (!turn) return turn.error();
        turn_ = std::move(*turn);
        return turn_.acks[0];
    }
    void tick(std::int64_t seconds) {
        now_us_ += seconds * kSecondUs;
        auto turn = core_->turn({}, now_us_);
        ASSERT_TRUE(turn) << turn.error().text();
        turn_ = std::move(*turn);
    }
    void machine(int gpus = 4) {
        NodeInfo node{.name = "n1", .cpu_milli = 16'000, .memory_bytes = std::int64_t{64} << 30, .boot_id = "b"};
        for (int i = 0; i < gpus; ++i) node.devices.push_back({.id = "GPU-" + std::to_string(i), .model = "H100"});
        ASSERT_TRUE(tell(SawNodes{{node}}));
        ASSERT_TRUE(tell(Listed{{.asked_seq = core_->state().seq, .ours = {}}}));
    }
    static RunSpec job(int gpus = 1) {
        RunSpec spec;
        spec.name = "job";
        spec.command = {"true"};
        spec.per_rank.gpus = gpus;
        return spec;
    }
    const Effect* effect(Verb verb) const {
        for (const Effect& each : turn_.effects)
            if (each.verb == verb) return &each;
        return nullptr;
    }
    Result<Ack> answer(OperationId id, Certainty certainty, Cause cause = Cause::none) {
        return tell(Answered{id, {.certainty = certainty, .cause = cause}});
    }
    Fact fact(FactKind kind, OperationId launch, Cause cause = Cause::none) {
        return {.cursor = ++cursor_,
                .kind = kind,
                .operation = launch,
                .epoch = core_->state().epoch,
                .at_us = now_us_,
                .rank = kind == FactKind::gang_ended ? -1 : 0,
                .cause = cause};
    }
    RunState state_of(RunId run) const { return core_->state().find(run)->state; }

    std::string folder_;
    std::unique_ptr<Journal> journal_;
    std::unique_ptr<Core> core_;
    std::int64_t now_us_ = 1'700'000'000 * kSecondUs;
    std::uint64_t cursor_ = 0;
    Turn turn_;
};

// The whole life, with what the driver is asked for at each point.
TEST_F(CoreTest, ARunGoesFromSubmissionToItsEnd) {
    machine();
    const RunId run = tell(Submit{.spec = job(2), .key = "k"})->run;
    const Effect* launch = effect(Verb::launch);
    ASSERT_NE(launch, nullptr);
    const OperationId op = launch->operation;
    EXPECT_LE(op.seq, journal_->head().seq);
    ASSERT_EQ(launch->gang.ranks.size(), 1U);
    EXPECT_EQ(launch->gang.ranks[0].devices, (std::vector<std::string>{"GPU-0", "GPU-1"}));
    EXPECT_EQ(launch->gang.ranks[0].environment.at("STOKER_OP"), op.text());
    EXPECT_EQ(launch->gang.log_folder, "/logs/r-1/a-1.1");
    EXPECT_EQ(state_of(run), RunState::starting);
    ASSERT_TRUE(answer(op, Certainty::confirmed));
    EXPECT_EQ(state_of(run), RunState::running);
    ASSERT_TRUE(tell(SawFact{fact(FactKind::rank_ended, op, Cause::ok)}));
    ASSERT_TRUE(tell(SawFact{fact(FactKind::gang_ended, op, Cause::ok)}));
    EXPECT_EQ(state_of(run), RunState::succeeded);
    ASSERT_NE(effect(Verb::release), nullptr);
    ASSERT_TRUE(answer(effect(Verb::release)->operation, Certainty::confirmed));
    EXPECT_TRUE(core_->state().operations.empty());
}

// A client whose answer was lost asks again; that must not start the work twice.
TEST_F(CoreTest, AnIdempotencyKeyGivesTheSameRunAlsoAfterARestart) {
    const RunId run = tell(Submit{.spec = job(), .key = "k"})->run;
    EXPECT_EQ(tell(Submit{.spec = job(), .key = "k"})->run, run);
    open();
    const auto again = tell(Submit{.spec = job(), .key = "k"});
    EXPECT_EQ(again->run, run);
    EXPECT_TRUE(again->repeated);
    const auto other = tell(Submit{.spec = job(2), .key = "k"});
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().kind(), ErrorKind::conflict);
    EXPECT_EQ(core_->state().runs.size(), 1U);
}

TEST_F(CoreTest, RefusalsLeaveNoRecord) {
    const std::uint64_t before = core_->state().seq;
    RunSpec bad = job();
    bad.ranks = 0;
    EXPECT_FALSE(tell(Submit{.spec = bad}));
    RunSpec large = job();
    large.command.assign(40, std::string(30'000, 'x'));
    EXPECT_THAT(tell(Submit{.spec = large}).error().text(), HasSubstr("at most"));
    EXPECT_EQ(tell(CancelRun{{7}}).error().kind(), ErrorKind::not_found);
    EXPECT_EQ(tell(EvictRun{{7}}).error().kind(), ErrorKind::not_found);
    EXPECT_EQ(tell(SetNode{"nowhere", NodeState::ready}).error().kind(), ErrorKind::not_found);
    EXPECT_EQ(core_->state().seq, before);
}

// Two people on one run: the second one's cancel was meant for another state of it.
TEST_F(CoreTest, IfVersionProtectsFromActingOnWhatHasChanged) {
    const Ack ack = *tell(Submit{.spec = job()});
    EXPECT_EQ(tell(HoldRun{ack.run, true}, ack.version)->version, ack.version + 1);
    EXPECT_EQ(tell(CancelRun{ack.run}, ack.version).error().kind(), ErrorKind::conflict);
    EXPECT_TRUE(tell(CancelRun{ack.run}, ack.version + 1));
    EXPECT_EQ(state_of(ack.run), RunState::cancelled);
    EXPECT_TRUE(tell(CancelRun{ack.run})->repeated);
    EXPECT_EQ(tell(HoldRun{ack.run, true}).error().kind(), ErrorKind::conflict);
}

// The launch may still be on its way when somebody cancels: a cancel that overtakes it would find nothing to end.
TEST_F(CoreTest, ACancelWaitsForTheAnswerOfTheLaunch) {
    machine();
    const RunId run = tell(Submit{.spec = job()})->run;
    const OperationId op = effect(Verb::launch)->operation;
    ASSERT_TRUE(tell(CancelRun{run}));
    EXPECT_EQ(effect(Verb::cancel), nullptr);
    ASSERT_TRUE(answer(op, Certainty::confirmed));
    ASSERT_NE(effect(Verb::cancel), nullptr);
    EXPECT_EQ(effect(Verb::cancel)->target, op);
    ASSERT_TRUE(answer(effect(Verb::cancel)->operation, Certainty::confirmed));
    EXPECT_EQ(state_of(run), RunState::cancelled);
}

// A lost answer is neither yes nor no. Only a complete listing that was asked for later proves absence.
TEST_F(CoreTest, ALostLaunchIsSettledByListing) {
    machine();
    const RunId run = tell(Submit{.spec = job()})->run;
    const OperationId op = effect(Verb::launch)->operation;
    const std::uint64_t too_early = core_->state().seq;
    ASSERT_TRUE(answer(op, Certainty::unknown));
    ASSERT_TRUE(tell(Listed{{.asked_seq = too_early, .ours = {}}}));
    EXPECT_EQ(effect(Verb::launch), nullptr);
    OursListing cut;
    cut.complete = false;
    ASSERT_TRUE(tell(Listed{{.asked_seq = core_->state().seq, .ours = cut}}));
    EXPECT_EQ(effect(Verb::launch), nullptr);
    ASSERT_TRUE(tell(Listed{{.asked_seq = core_->state().seq, .ours = {}}}));
    ASSERT_NE(effect(Verb::launch), nullptr);
    EXPECT_EQ(effect(Verb::launch)->operation, op);  // the same id: twice has the effect of once
    ASSERT_TRUE(answer(op, Certainty::unknown));
    ASSERT_TRUE(tell(Listed{{.asked_seq = core_->state().seq, .ours = {.items = {{op, 1, false}}}}}));
    EXPECT_EQ(state_of(run), RunState::running);
}

// A server that asks to be woken in the past spins at full load until somebody else's answer comes.
TEST_F(CoreTest, WaitingForAnAnswerDoesNotSpin) {
    machine();
    const RunId run = tell(Submit{.spec = job()})->run;
    ASSERT_TRUE(answer(effect(Verb::launch)->operation, Certainty::unknown));
    ASSERT_TRUE(tell(CancelRun{run}));
    for (int i = 0; i < 20; ++i) {
        tick(1);
        EXPECT_TRUE(turn_.wake_us == 0 || turn_.wake_us > now_us_) << i;
    }
}

// 10 s, then 20 s; the third failure is one too many for two restarts.
TEST_F(CoreTest, UserErrorsAreTriedAgainWithGrowingPauses) {
    machine();
    RunSpec spec = job();
    spec.max_restarts = 2;
    const RunId run = tell(Submit{.spec = spec})->run;
    for (const int pause : {10, 20, 0}) {
        const OperationId op = effect(Verb::launch)->operation;
        ASSERT_TRUE(answer(op, Certainty::confirmed));
        Fact ended = fact(FactKind::rank_ended, op, Cause::user_error);
        ended.exit_code = 1;
        ASSERT_TRUE(tell(SawFact{ended}));
        ASSERT_TRUE(tell(SawFact{fact(FactKind::gang_ended, op, Cause::user_error)}));
        if (pause == 0) break;
        ASSERT_EQ(state_of(run), RunState::requeued);
        EXPECT_EQ(core_->state().find(run)->not_before_us, now_us_ + pause * kSecondUs);
        tick(pause - 1);
        ASSERT_EQ(state_of(run), RunState::requeued);
        tick(1);
        ASSERT_EQ(state_of(run), RunState::starting);
    }
    EXPECT_EQ(state_of(run), RunState::failed);
    EXPECT_EQ(core_->state().find(run)->cause, Cause::user_error);
    EXPECT_THAT(core_->state().find(run)->detail, HasSubstr("rank 0 on n1 left with 1"));
}

// Somebody else's failure: it costs the user no restart.
TEST_F(CoreTest, ALostNodeCostsNoRestart) {
    machine();
    const RunId run = tell(Submit{.spec = job()})->run;
    const OperationId op = effect(Verb::launch)->operation;
    ASSERT_TRUE(answer(op, Certainty::confirmed));
    Fact lost{.cursor = ++cursor_, .kind = FactKind::node_lost, .cause = Cause::node_lost, .node = "n1"};
    ASSERT_TRUE(tell(SawFact{lost}));
    ASSERT_NE(effect(Verb::cancel), nullptr);  // nothing of it may run when the next try starts
    ASSERT_TRUE(answer(effect(Verb::cancel)->operation, Certainty::confirmed));
    EXPECT_EQ(state_of(run), RunState::queued);
    EXPECT_EQ(core_->state().find(run)->counted_failures, 0);
    EXPECT_EQ(core_->state().find(run)->attempts[0].cause, Cause::node_lost);
}

// Facts repeat, and those of an older server may come late.
TEST_F(CoreTest, OldCursorsAndEpochsChangeNothing) {
    machine();
    const RunId run = tell(Submit{.spec = job()})->run;
    const OperationId op = effect(Verb::launch)->operation;
    ASSERT_TRUE(answer(op, Certainty::confirmed));
    Fact started = fact(FactKind::rank_started, op);
    ASSERT_TRUE(tell(SawFact{started}));
    const std::uint64_t seq = core_->state().seq;
    EXPECT_TRUE(tell(SawFact{started})->repeated);
    Fact old = fact(FactKind::gang_ended, op, Cause::ok);
    old.epoch = 0;
    EXPECT_TRUE(tell(SawFact{old})->repeated);
    EXPECT_EQ(core_->state().seq, seq);
    Fact newer = fact(FactKind::gang_ended, op, Cause::ok);
    newer.epoch = 99;
    EXPECT_EQ(tell(SawFact{newer}).error().kind(), ErrorKind::conflict);
    Fact wrong = fact(FactKind::rank_started, op);
    wrong.rank = 5;
    EXPECT_EQ(tell(SawFact{wrong}).error().kind(), ErrorKind::invalid);
    EXPECT_EQ(state_of(run), RunState::running);
}

// Warned, told to write a checkpoint, stopped; and never past the hard maximum.
TEST_F(CoreTest, ALeaseWarnsStopsAndCannotPassItsMaximum) {
    machine();
    RunSpec spec = job();
    spec.lease = {.stop_after_s = 1000, .hard_max_s = 1500};
    const RunId run = tell(Submit{.spec = spec})->run;
    const std::int64_t began = now_us_;
    const OperationId op = effect(Verb::launch)->operation;
    ASSERT_TRUE(answer(op, Certainty::confirmed));
    tick(900);
    EXPECT_TRUE(core_->state().find(run)->lease.warned);
    ASSERT_TRUE(tell(RenewLease{run, began + 5000 * kSecondUs}));
    EXPECT_EQ(core_->state().find(run)->lease.stop_at_us, began + 1500 * kSecondUs);
    tick(400);
    EXPECT_EQ(state_of(run), RunState::running);
    tick(250);
    EXPECT_EQ(core_->state().find(run)->attempts[0].cause, Cause::lease);
    ASSERT_NE(effect(Verb::cancel), nullptr);
    ASSERT_TRUE(answer(effect(Verb::cancel)->operation, Certainty::confirmed));
    EXPECT_EQ(state_of(run), RunState::expired);
}

TEST_F(CoreTest, AnEvictionSignalsThenStopsThenQueuesAgain) {
    machine();
    const RunId run = tell(Submit{.spec = job()})->run;
    const OperationId op = effect(Verb::launch)->operation;
    ASSERT_TRUE(answer(op, Certainty::confirmed));
    ASSERT_TRUE(tell(EvictRun{run, 30}));
    EXPECT_EQ(state_of(run), RunState::checkpointing);
    ASSERT_NE(effect(Verb::notify), nullptr);
    EXPECT_EQ(effect(Verb::notify)->signal, SIGUSR1);
    ASSERT_TRUE(answer(effect(Verb::notify)->operation, Certainty::confirmed));
    EXPECT_EQ(effect(Verb::cancel), nullptr);
    tick(30);
    ASSERT_NE(effect(Verb::cancel), nullptr);
    ASSERT_TRUE(answer(effect(Verb::cancel)->operation, Certainty::confirmed));
    EXPECT_EQ(core_->state().find(run)->attempts[0].cause, Cause::preempted);
    EXPECT_EQ(core_->state().find(run)->attempts.size(), 2U);  // there is room: it starts at once
}

// Waiting for a checkpoint that nobody will write keeps others from the machine for nothing.
TEST_F(CoreTest, ANoticeThatNobodyHearsEndsTheAttemptAtOnce) {
    machine();
    const RunId run = tell(Submit{.spec = job()})->run;
    ASSERT_TRUE(answer(effect(Verb::launch)->operation, Certainty::confirmed));
    ASSERT_TRUE(tell(EvictRun{run, 3600}));
    ASSERT_TRUE(answer(effect(Verb::notify)->operation, Certainty::rejected));
    ASSERT_NE(effect(Verb::cancel), nullptr);
    ASSERT_TRUE(answer(effect(Verb::cancel)->operation, Certainty::confirmed));
    EXPECT_EQ(core_->state().find(run)->attempts[0].cause, Cause::preempted);
}

// A lease was paid for to its end, whoever hears of it; and it is over then, not a grace later.
TEST_F(CoreTest, ALeaseEndsOnTimeAndMayBeRenewedAfterTheNotice) {
    machine();
    RunSpec spec = job();
    spec.lease.stop_after_s = 1000;
    spec.grace_s = 30;
    const RunId run = tell(Submit{.spec = spec})->run;
    const std::int64_t began = now_us_;
    ASSERT_TRUE(answer(effect(Verb::launch)->operation, Certainty::confirmed));
    tick(965);
    ASSERT_NE(effect(Verb::notify), nullptr);
    ASSERT_TRUE(answer(effect(Verb::notify)->operation, Certainty::rejected));
    EXPECT_EQ(effect(Verb::cancel), nullptr);
    ASSERT_TRUE(tell(RenewLease{run, began + 2000 * kSecondUs}));
    EXPECT_EQ(state_of(run), RunState::running);
    now_us_ = began + 1999 * kSecondUs;
    tick(0);
    EXPECT_NE(effect(Verb::notify), nullptr);
    EXPECT_EQ(state_of(run), RunState::checkpointing);
    tick(1);
    ASSERT_NE(effect(Verb::cancel), nullptr);
    ASSERT_TRUE(answer(effect(Verb::cancel)->operation, Certainty::confirmed));
    EXPECT_EQ(state_of(run), RunState::expired);
    EXPECT_EQ(core_->state().find(run)->cause, Cause::lease);
}

// A spot machine that is not taken after all: what runs there goes on, and its exit codes are its own again.
TEST_F(CoreTest, ANoticeThatIsTakenBackLeavesTheWorkAlone) {
    machine();
    const RunId run = tell(Submit{.spec = job()})->run;
    const OperationId op = effect(Verb::launch)->operation;
    ASSERT_TRUE(answer(op, Certainty::confirmed));
    Fact notice{.cursor = ++cursor_, .kind = FactKind::notice, .cause = Cause::evicted, .seconds = 300, .node = "n1"};
    ASSERT_TRUE(tell(SawFact{notice}));
    EXPECT_EQ(state_of(run), RunState::checkpointing);
    ASSERT_TRUE(answer(effect(Verb::notify)->operation, Certainty::confirmed));
    notice.cursor = ++cursor_;
    notice.seconds = -1;
    ASSERT_TRUE(tell(SawFact{notice}));
    EXPECT_EQ(state_of(run), RunState::running);
    tick(600);
    EXPECT_EQ(effect(Verb::cancel), nullptr);
    ASSERT_TRUE(tell(SawFact{fact(FactKind::rank_ended, op, Cause::ok)}));
    ASSERT_TRUE(tell(SawFact{fact(FactKind::gang_ended, op, Cause::ok)}));
    EXPECT_EQ(state_of(run), RunState::succeeded);
}

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

// After a restart nothing is started before everything outside has been listed.
TEST_F(CoreTest, NothingStartsBeforeTheFirstCompleteListing) {
    machine();
    open();
    EXPECT_TRUE(core_->recovering());
    const RunId run = tell(Submit{.spec = job()})->run;
    EXPECT_EQ(effect(Verb::launch), nullptr);
    EXPECT_EQ(state_of(run), RunState::queued);
    ASSERT_TRUE(tell(Listed{{.asked_seq = core_->state().seq, .ours = {}}}));
    EXPECT_NE(effect(Verb::launch), nullptr);
}

// Something with our mark that nobody knows costs money for ever, unless it is ended; at once would be too early.
TEST_F(CoreTest, OrphansAreEndedAfterAGrace) {
    machine();
    const OperationId stranger{.site = "tests", .seq = 9999}, foreign{.site = "other", .seq = 9999};
    OursListing listing{.items = {{stranger, 1, false}, {foreign, 1, false}}};
    ASSERT_TRUE(tell(Listed{{.asked_seq = core_->state().seq, .ours = listing}}));
    EXPECT_EQ(effect(Verb::cancel), nullptr);
    tick(901);
    ASSERT_TRUE(tell(Listed{{.asked_seq = core_->state().seq, .ours = listing}}));
    ASSERT_EQ(turn_.effects.size(), 1U);
    EXPECT_EQ(turn_.effects[0].verb, Verb::cancel);
    EXPECT_EQ(turn_.effects[0].target, stranger);
    ASSERT_TRUE(answer(turn_.effects[0].operation, Certainty::confirmed));
    listing.items[0].ended = true;
    ASSERT_TRUE(tell(Listed{{.asked_seq = core_->state().seq, .ours = listing}}));
    ASSERT_EQ(turn_.effects.size(), 1U);
    EXPECT_EQ(turn_.effects[0].verb, Verb::release);
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

TEST_F(CoreTest, AGraphRunsItsStepsInOrderAndIsCancelledAsAWhole) {
    machine();
    RunSpec graph;
    graph.name = "g";
    graph.kind = RunKind::graph;
    for (const char* name : {"a", "b"}) {
        GraphStep& step = graph.steps.emplace_back();
        step.name = name;
        step.run.command = {"true"};
        if (*name == 'b') step.depends_on = {"a"};
    }
    const RunId id = tell(Submit{.spec = graph})->run;
    ASSERT_EQ(core_->state().runs.size(), 3U);
    EXPECT_EQ(state_of(id), RunState::running);
    EXPECT_EQ(state_of({2}), RunState::starting);
    EXPECT_EQ(state_of({3}), RunState::queued);
    const OperationId op = effect(Verb::launch)->operation;
    ASSERT_TRUE(answer(op, Certainty::confirmed));
    ASSERT_TRUE(tell(CancelRun{id}));
    EXPECT_EQ(state_of({3}), RunState::cancelled);
    EXPECT_EQ(state_of(id), RunState::cancelling);
    ASSERT_TRUE(answer(effect(Verb::cancel)->operation, Certainty::confirmed));
    EXPECT_EQ(state_of({2}), RunState::cancelled);
    EXPECT_EQ(state_of(id), RunState::cancelled);
}

// A machine that rebooted has lost what ran on it, even if it answers again before anybody noticed.
TEST_F(CoreTest, AnotherBootIdMeansThatEverythingThereIsGone) {
    machine();
    const RunId run = tell(Submit{.spec = job()})->run;
    ASSERT_TRUE(answer(effect(Verb::launch)->operation, Certainty::confirmed));
    NodeInfo node = core_->state().nodes.at("n1").info;
    node.boot_id = "c";
    ASSERT_TRUE(tell(SawNodes{{node}}));
    EXPECT_EQ(core_->state().find(run)->attempts[0].cause, Cause::node_lost);
    EXPECT_EQ(core_->state().nodes.at("n1").state, NodeState::ready);
    ASSERT_TRUE(tell(SawNodes{{}}));
    EXPECT_EQ(core_->state().nodes.at("n1").state, NodeState::draining);
    ASSERT_TRUE(tell(SawNodes{{node}}));
    EXPECT_EQ(core_->state().nodes.at("n1").state, NodeState::ready);
}

}  // namespace
}  // namespace stoker

#include "run/core/core.h"

#include "run/core/core_testing.h"

namespace stoker {
namespace {

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

// A restart finds a gang that has ended, and no fact ever tells so: within seconds the run goes on without it. It used
// to take a server that lived for two minutes, and until then the run counted as running.
TEST_F(CoreTest, AGangThatEndedWithoutAFactIsLostWithinSeconds) {
    machine();
    const RunId run = tell(Submit{.spec = job()})->run;
    const OperationId op = effect(Verb::launch)->operation;
    open();
    tick(0);
    ASSERT_TRUE(turn_.list.has_value());
    const OursListing ended{.items = {{op, 1, true}}};
    ASSERT_TRUE(tell(Listed{{.asked_seq = *turn_.list, .ours = ended}}));
    EXPECT_EQ(state_of(run), RunState::running);
    ASSERT_GT(turn_.wake_us, 0);
    EXPECT_LE(turn_.wake_us, now_us_ + kMissingGraceUs);
    tick(kMissingGraceUs / kSecondUs);
    ASSERT_TRUE(turn_.list.has_value());
    ASSERT_TRUE(tell(Listed{{.asked_seq = *turn_.list, .ours = ended}}));
    ASSERT_NE(effect(Verb::cancel), nullptr);
    ASSERT_TRUE(answer(effect(Verb::cancel)->operation, Certainty::confirmed));
    EXPECT_EQ(state_of(run), RunState::requeued);
    EXPECT_EQ(core_->state().find(run)->cause, Cause::lost_contact);
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

// Work that an engine has accepted and lets wait: Slurm's PENDING, a gang without pods.
#include "run/core/core_testing.h"
#include "run/decide/testing.h"
#include "run/decide/why.h"

namespace stoker {
namespace {

class EngineWaitTest : public CoreTest {
protected:
    // An engine that chooses the nodes, too.
    void SetUp() override {
        CoreTest::SetUp();
        CoreOptions options{.site = "tests", .log_root = "/logs", .engine = "far"};
        options.scheduler.binds = true;
        open(std::move(options));
        machine();
    }
    OperationId accepted(RunSpec spec) {
        EXPECT_TRUE(tell(Submit{.spec = std::move(spec)}));
        const OperationId op = effect(Verb::launch)->operation;
        EXPECT_TRUE(tell(
            Answered{op, {.certainty = Certainty::accepted, .cause = Cause::capacity_busy, .detail = "(Resources)"}}));
        return op;
    }
    Fact started(OperationId op, int rank) {
        Fact each = fact(FactKind::rank_started, op);
        each.rank = rank;
        each.node = "n1";
        return each;
    }
    const stoker::Run& run() const { return *core_->state().find(RunId{1}); }
};

// Whoever named a program that the nodes do not have reads that, and not that a rank was nowhere.
TEST_F(EngineWaitTest, WhatCouldNotBeginSaysWhyInTheEnginesWords) {
    const OperationId op = accepted(job());
    Fact end = fact(FactKind::gang_ended, op, Cause::user_error);
    end.detail = "rank 0: no program named no-such-program in PATH";
    ASSERT_TRUE(tell(SawFact{end}));
    EXPECT_THAT(run().detail, HasSubstr("no program named no-such-program"));
}

// A rank whose host was killed with it left no code: "rank 0 on n1" alone would say nothing of what took it.
TEST_F(EngineWaitTest, WhatEndedWithoutACodeSaysWhyInTheEnginesWords) {
    const OperationId op = accepted(job());
    ASSERT_TRUE(tell(SawFact{started(op, 0)}));
    Fact end = fact(FactKind::rank_ended, op, Cause::cancelled);
    end.rank = 0;
    end.node = "n1";
    end.detail = "job 7 was cancelled in Slurm";
    ASSERT_TRUE(tell(SawFact{end}));
    EXPECT_EQ(run().attempts.back().detail, "rank 0 on n1: job 7 was cancelled in Slurm");
}

// An engine that chooses the nodes is told which of them it may not choose, and whoever waits reads which and why. A
// node that is only good for less takes what it is good for.
TEST_F(EngineWaitTest, TheHealthGateHoldsWhereTheEngineChooses) {
    CoreOptions options{.site = "tests", .log_root = "/logs", .engine = "far"};
    options.scheduler.binds = true;
    options.scheduler.health.level = HealthLevel::quick;
    open(std::move(options));
    std::vector<NodeInfo> nodes;
    for (const char* name : {"n1", "n2", "n3", "n4"})
        nodes.push_back({.name = name, .cpu_milli = 16'000, .memory_bytes = std::int64_t{64} << 30, .boot_id = "b"});
    std::map<std::string, CheckWanted> asked;
    const auto note = [&] {
        for (const CheckWanted& check : turn_.checks) asked[check.node] = check;
    };
    ASSERT_TRUE(tell(SawNodes{nodes}));
    note();
    ASSERT_TRUE(tell(Listed{{.asked_seq = core_->state().seq, .ours = {}}}));
    note();
    const std::map<std::string, HealthVerdict> verdicts{{"n1", HealthVerdict::pass},
                                                        {"n2", HealthVerdict::fail},
                                                        {"n3", HealthVerdict::warn},
                                                        {"n4", HealthVerdict::pass}};
    for (std::size_t done = 0; done < verdicts.size(); ++done) {
        ASSERT_FALSE(asked.empty());
        const CheckWanted check = asked.begin()->second;
        asked.erase(asked.begin());
        ASSERT_TRUE(tell(SawHealth{check, run_testing::link_report(check.node, verdicts.at(check.node))}));
        note();
    }
    RunSpec wide = job(0);
    wide.ranks = wide.nodes = 2;
    wide.per_rank.cpu_milli = 1000;
    ASSERT_TRUE(tell(Submit{.spec = wide}));
    const Effect* launch = effect(Verb::launch);
    ASSERT_NE(launch, nullptr);
    EXPECT_EQ(launch->gang.avoid, (std::vector<std::string>{"n2", "n3"}));
    ASSERT_TRUE(
        tell(Answered{launch->operation,
                      {.certainty = Certainty::accepted, .cause = Cause::capacity_busy, .detail = "(Resources)"}}));
    const std::string text = why(core_->state(), RunId{1}, now_us_, core_->scheduler()).text;
    EXPECT_THAT(text, HasSubstr("it may not be put on n2 is quarantined: link-bandwidth"));
    EXPECT_THAT(text, HasSubstr("n3"));
    ASSERT_TRUE(tell(Submit{.spec = job(0)}));
    ASSERT_NE(effect(Verb::launch), nullptr);
    EXPECT_EQ(effect(Verb::launch)->gang.avoid, std::vector<std::string>{"n2"});
    // One more that fails, and two nodes are not left: the next gang is not given to the engine at all.
    ASSERT_TRUE(tell(SetNode{"n4", NodeState::draining}));
    wide.name = "late";
    ASSERT_TRUE(tell(Submit{.spec = wide}));
    EXPECT_EQ(effect(Verb::launch), nullptr);
    EXPECT_EQ(why(core_->state(), RunId{3}, now_us_, core_->scheduler()).code, Cause::node_unhealthy);
}

// While a controller starts again it does not list all of its nodes. A job that was given to it just then would be kept
// off them for as long as it waits, also when they are back and the others are not: only what is drained here is named.
TEST_F(EngineWaitTest, ANodeThatIsNotListedForAMomentIsNotForbidden) {
    std::vector<NodeInfo> nodes;
    for (const char* name : {"n1", "n2", "n3"})
        nodes.push_back({.name = name, .cpu_milli = 16'000, .memory_bytes = std::int64_t{64} << 30, .boot_id = "b"});
    ASSERT_TRUE(tell(SawNodes{nodes}));
    ASSERT_TRUE(tell(SetNode{"n3", NodeState::draining}));
    ASSERT_TRUE(tell(SawNodes{{nodes[0], nodes[2]}}));
    ASSERT_EQ(core_->state().nodes.at("n2").cause, Cause::lost_contact);
    ASSERT_TRUE(tell(Submit{.spec = job(0)}));
    ASSERT_NE(effect(Verb::launch), nullptr);
    EXPECT_EQ(effect(Verb::launch)->gang.avoid, std::vector<std::string>{"n3"});
}

// A job that is PENDING for an hour is neither killed nor paid for, and says why it waits in the engine's words.
TEST_F(EngineWaitTest, AnHourInTheEnginesQueueCostsNothingAndEndsNothing) {
    RunSpec spec = job();
    spec.timeout_s = 600;
    spec.lease.stop_after_s = 1200;
    const OperationId op = accepted(spec);
    EXPECT_EQ(run().state, RunState::starting);
    EXPECT_EQ(run().started_us, 0);
    EXPECT_EQ(run().lease.stop_at_us, 0);
    tick(3600);
    EXPECT_EQ(run().state, RunState::starting);
    EXPECT_EQ(effect(Verb::cancel), nullptr);
    EXPECT_EQ(used_us(run(), now_us_), 0);
    Why why_it_waits = why(core_->state(), RunId{1}, now_us_);
    EXPECT_EQ(why_it_waits.code, Cause::capacity_busy);
    EXPECT_THAT(why_it_waits.text, HasSubstr("(Resources)"));
    EXPECT_EQ(eta(core_->state(), RunId{1}, now_us_).text, "no estimate: the engine gives none");

    Fact waits = fact(FactKind::waits, op, Cause::quota);
    waits.detail = "(AssocGrpGRES)";
    waits.seconds = 500;
    ASSERT_TRUE(tell(SawFact{waits}));
    EXPECT_EQ(why(core_->state(), RunId{1}, now_us_).code, Cause::quota);
    EXPECT_NEAR(*eta(core_->state(), RunId{1}, now_us_).p50_s, 490, 1);
    // The same again is nothing new to write down.
    const std::uint64_t before = core_->state().seq;
    waits.cursor = ++cursor_;
    waits.at_us = now_us_;
    waits.seconds = 480;
    EXPECT_TRUE(tell(SawFact{waits})->repeated);
    EXPECT_EQ(core_->state().seq, before);

    ASSERT_TRUE(tell(SawFact{started(op, 0)}));
    EXPECT_EQ(run().state, RunState::running);
    EXPECT_EQ(run().attempts[0].places[0].node, "n1");
    EXPECT_EQ(run().lease.stop_at_us, now_us_ + 1200 * kSecondUs);
    tick(500);
    EXPECT_EQ(run().state, RunState::running);
    EXPECT_EQ(used_us(run(), now_us_), 500 * kSecondUs);
    tick(100);
    EXPECT_EQ(run().attempts[0].cause, Cause::timeout) << "its ten minutes count from its start";
}

// What was known of a wait is known after a restart, from the journal and from a snapshot.
TEST_F(EngineWaitTest, TheWaitIsInTheJournal) {
    accepted(job());
    const std::string before = encode_state(core_->state());
    EXPECT_EQ(encode_state(*decode_state(before)), before);
    open();
    ASSERT_TRUE(run().attempts[0].engine_wait);
    EXPECT_EQ(run().attempts[0].engine_wait->detail, "(Resources)");
    EXPECT_TRUE(waits_at_engine(run()));
}

// Nobody waits for a cancelled job to start first.
TEST_F(EngineWaitTest, ACancelReachesWhatWaits) {
    const OperationId op = accepted(job());
    ASSERT_TRUE(tell(CancelRun{RunId{1}}));
    ASSERT_NE(effect(Verb::cancel), nullptr);
    EXPECT_EQ(effect(Verb::cancel)->target, op);
    ASSERT_TRUE(answer(effect(Verb::cancel)->operation, Certainty::confirmed));
    EXPECT_EQ(run().state, RunState::cancelled);
    EXPECT_EQ(run().used_us, 0);
}

// queue_timeout_s means until it starts, wherever it waits.
TEST_F(EngineWaitTest, TheQueueTimeoutHoldsAtTheEngineToo) {
    RunSpec spec = job();
    spec.queue_timeout_s = 900;
    accepted(spec);
    tick(800);
    EXPECT_EQ(run().state, RunState::starting);
    tick(200);
    ASSERT_NE(effect(Verb::cancel), nullptr);
    ASSERT_TRUE(answer(effect(Verb::cancel)->operation, Certainty::confirmed));
    EXPECT_EQ(run().state, RunState::expired);
    EXPECT_EQ(run().cause, Cause::no_capacity);
    EXPECT_THAT(run().detail, HasSubstr("(Resources)"));
}

// Half a gang runs, is paid for and does nothing: it is seen, and given up when the rest does not come.
TEST_F(EngineWaitTest, APartOfAGangIsNotARunningGang) {
    RunSpec spec = job();
    spec.ranks = 3;
    const OperationId op = accepted(spec);
    tick(1000);
    ASSERT_TRUE(tell(SawFact{started(op, 0)}));
    ASSERT_TRUE(tell(SawFact{started(op, 2)}));
    EXPECT_EQ(run().state, RunState::starting);
    EXPECT_GT(used_us(run(), now_us_), 0);
    EXPECT_FALSE(waits_at_engine(run()));
    tick(kGangStartUs / kSecondUs - 20);
    EXPECT_EQ(effect(Verb::cancel), nullptr);
    tick(20);
    EXPECT_EQ(run().attempts[0].cause, Cause::no_capacity);
    EXPECT_EQ(run().attempts[0].detail, "2 of 3 ranks started, and 300 s later not: 1");
    ASSERT_NE(effect(Verb::cancel), nullptr);
    ASSERT_TRUE(answer(effect(Verb::cancel)->operation, Certainty::confirmed));
    EXPECT_EQ(run().state, RunState::requeued) << "nobody's fault: it is tried again";
}

// A launch whose answer was lost is found by listing, waiting or running, and is not sent twice.
TEST_F(EngineWaitTest, ALostAnswerIsFoundWaiting) {
    ASSERT_TRUE(tell(Submit{.spec = job()}));
    const OperationId op = effect(Verb::launch)->operation;
    ASSERT_TRUE(answer(op, Certainty::unknown));
    Listing listing{.asked_seq = core_->state().seq, .ours = {}};
    listing.ours.items.push_back({.operation = op, .epoch = core_->state().epoch, .waits = true});
    ASSERT_TRUE(tell(Listed{listing}));
    EXPECT_EQ(effect(Verb::launch), nullptr);
    EXPECT_EQ(run().attempts[0].launched, Answer::accepted);
    EXPECT_EQ(why(core_->state(), RunId{1}, now_us_).code, Cause::engine_queue);
    // The engine lost it before it began: seen by its absence.
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(tell(Listed{{.asked_seq = core_->state().seq, .ours = {}}}));
    EXPECT_EQ(run().attempts[0].cause, Cause::lost_contact);
}

// What waits at the engine takes as much as if it ran, wherever the engine will put it.
TEST_F(EngineWaitTest, WhatTheEngineHasCountsWithoutANode) {
    accepted(job(3));
    EXPECT_TRUE(core_->state().find(RunId{1})->attempts[0].places[0].node.empty());
    const RunId second = tell(Submit{.spec = job(2)})->run;
    EXPECT_EQ(state_of(second), RunState::queued);
    EXPECT_EQ(state_of(tell(Submit{.spec = job(1)})->run), RunState::starting)
        << "it fits beside the first and delays nobody";
    EXPECT_EQ(state_of(tell(Submit{.spec = job(1)})->run), RunState::queued) << "all four are spoken for";
}

// The driver of such an engine gets how much, and not where; what hangs on nodes it sets itself.
TEST_F(EngineWaitTest, TheGangSaysHowMuchAndNotWhere) {
    RunSpec spec = job(2);
    spec.timeout_s = 600;
    spec.per_rank.gpu_model = "H100";
    ASSERT_TRUE(tell(Submit{.spec = spec}));
    const GangSpec& gang = effect(Verb::launch)->gang;
    EXPECT_EQ(gang.ranks[0].node, "");
    EXPECT_EQ(gang.ranks[0].gpus, 2);
    EXPECT_EQ(gang.ranks[0].gpu_model, "H100");
    EXPECT_TRUE(gang.ranks[0].devices.empty());
    EXPECT_EQ(gang.longest_s, 630);
    EXPECT_EQ(gang.ranks[0].environment.count("MASTER_ADDR"), 0U);
    EXPECT_EQ(gang.ranks[0].environment.at("RANK"), "0");
}

// A run that names another engine than the server's is refused, and not started somewhere else.
TEST_F(EngineWaitTest, AnotherEngineIsRefused) {
    RunSpec spec = job();
    spec.engine = "near";
    const auto refused = tell(Submit{.spec = spec});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), ErrorKind::unsupported);
    EXPECT_THAT(refused.error().text(), HasSubstr("this server drives far"));
    spec.engine = "far";
    EXPECT_TRUE(tell(Submit{.spec = spec}));
}

}  // namespace
}  // namespace stoker

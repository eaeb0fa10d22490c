// The health gate in the core: checks are asked for and asked again, and what they say holds also after kill -9.
#include "run/core/core_testing.h"
#include "run/decide/testing.h"
#include "run/decide/why.h"

namespace stoker {
namespace {

class CoreHealthTest : public CoreTest {
protected:
    void open_gate(std::optional<HealthLevel> level = HealthLevel::quick) {
        CoreOptions options{.site = "tests", .log_root = "/logs"};
        options.scheduler.health.level = level;
        open(std::move(options));
        ASSERT_TRUE(tell(Listed{{.asked_seq = core_->state().seq, .ours = {}}}));
    }
    void two_nodes(const std::string& boot_of_b = "b1") {
        std::vector<NodeInfo> nodes;
        for (const std::string name : {"a", "b"}) {
            NodeInfo node{.name = name,
                          .cpu_milli = 4000,
                          .memory_bytes = std::int64_t{8} << 30,
                          .boot_id = name == "b" ? boot_of_b : "a1"};
            nodes.push_back(node);
        }
        ASSERT_TRUE(tell(SawNodes{nodes}));
        ASSERT_TRUE(tell(Listed{{.asked_seq = core_->state().seq, .ours = {}}}));
    }
    // What every turn so far asked to be checked.
    Result<Ack> tell(decltype(Command::what) what) {
        auto ack = CoreTest::tell(std::move(what));
        note();
        return ack;
    }
    void tick(std::int64_t seconds) {
        CoreTest::tick(seconds);
        note();
    }
    void note() {
        for (const CheckWanted& check : turn_.checks) checks_[check.node] = check;
    }
    void report(const std::string& node, HealthVerdict verdict) {
        ASSERT_TRUE(checks_.contains(node)) << node;
        const CheckWanted check = checks_[node];
        checks_.erase(node);
        ASSERT_TRUE(tell(SawHealth{check, run_testing::link_report(node, verdict)}));
    }
    NodeState node(const std::string& name) const { return core_->state().nodes.at(name).state; }
    Cause cause(const std::string& name) const { return core_->state().nodes.at(name).cause; }
    static RunSpec wide() {
        RunSpec spec = job(0);
        spec.ranks = spec.nodes = 2;
        spec.per_rank.cpu_milli = 1000;
        return spec;
    }
    std::map<std::string, CheckWanted> checks_;
};

// The journey of a slow link: found before the gang, which waits with the reason; gone, the gang starts by itself.
TEST_F(CoreHealthTest, ASlowLinkIsFoundBeforeTheGangAndTheGangStartsWhenItIsGone) {
    open_gate();
    two_nodes();
    EXPECT_EQ(node("a"), NodeState::checking);
    const RunId run = tell(Submit{.spec = wide()})->run;
    EXPECT_EQ(state_of(run), RunState::queued) << "nothing is known of either yet";
    tick(1);
    EXPECT_EQ(checks_.size(), 1U) << "two at once would measure each other";
    report("a", HealthVerdict::pass);
    report("b", HealthVerdict::fail);
    EXPECT_EQ(node("b"), NodeState::quarantined);
    EXPECT_EQ(cause("b"), Cause::node_unhealthy);
    EXPECT_EQ(state_of(run), RunState::queued);
    EXPECT_EQ(why(core_->state(), run, now_us_, core_->scheduler()).code, Cause::node_unhealthy);
    tick(30);
    EXPECT_TRUE(checks_.empty()) << "not again at once";
    tick(60);
    ASSERT_TRUE(checks_.contains("b")) << "and then by itself";
    report("b", HealthVerdict::pass);
    EXPECT_EQ(node("b"), NodeState::ready);
    EXPECT_EQ(state_of(run), RunState::starting);
}

// kill -9 in the middle of a check: it is no effect to be remembered, and is simply asked for again.
TEST_F(CoreHealthTest, ACheckThatTheServerDidNotOutliveIsAskedForAgain) {
    open_gate();
    two_nodes();
    tick(1);
    ASSERT_EQ(checks_.size(), 1U);
    const CheckWanted lost = checks_["a"];
    const std::uint64_t before = core_->state().seq;
    checks_.clear();
    open_gate();
    EXPECT_EQ(core_->state().seq, before + 1) << "only that it started";
    EXPECT_EQ(node("a"), NodeState::checking);
    tick(1);
    EXPECT_EQ(checks_.size(), 1U);
    report("a", HealthVerdict::pass);
    EXPECT_TRUE(tell(SawHealth{lost, {}})->repeated) << "one that comes late changes nothing";
    EXPECT_EQ(node("a"), NodeState::ready);
    open_gate();
    tick(1);
    EXPECT_FALSE(checks_.contains("a")) << "what was found holds";
    EXPECT_EQ(node("a"), NodeState::ready);
}

// A board that is lost while its node is at work keeps new work away at once; what runs goes on, and a check that
// passes when it has ended brings the node back.
TEST_F(CoreHealthTest, WhatIsSeenFailingOnABusyNodeCountsWithoutACheck) {
    open_gate();
    two_nodes();
    tick(1);
    report("a", HealthVerdict::pass);
    report("b", HealthVerdict::pass);
    const RunId run = tell(Submit{.spec = wide()})->run;
    ASSERT_EQ(state_of(run), RunState::starting);
    const CheckWanted seen{.node = "a", .boot_id = core_->state().nodes.at("a").info.boot_id};
    ASSERT_TRUE(tell(SawHealth{seen, run_testing::link_report("a", HealthVerdict::fail)}));
    EXPECT_EQ(node("a"), NodeState::quarantined);
    EXPECT_EQ(node("b"), NodeState::ready);
    EXPECT_EQ(state_of(run), RunState::starting);
    tick(3600);
    EXPECT_FALSE(checks_.contains("a")) << "nothing is measured beside what runs";
    EXPECT_TRUE(tell(SawHealth{seen, run_testing::link_report("a", HealthVerdict::pass)})->repeated);
    EXPECT_EQ(node("a"), NodeState::quarantined);
}

// What was measured of one boot says nothing about the next.
TEST_F(CoreHealthTest, AReportFromBeforeARebootCountsForNothing) {
    open_gate();
    two_nodes();
    tick(1);
    report("a", HealthVerdict::pass);
    const CheckWanted old = checks_["b"];
    two_nodes("b2");
    EXPECT_EQ(node("b"), NodeState::checking);
    checks_.clear();
    EXPECT_TRUE(tell(SawHealth{old, {{{.name = "x", .verdict = HealthVerdict::pass}}}})->repeated);
    EXPECT_EQ(node("b"), NodeState::checking);
    tick(1);
    report("b", HealthVerdict::pass);
    EXPECT_EQ(node("b"), NodeState::ready);
    two_nodes("b3");
    EXPECT_EQ(node("b"), NodeState::checking);
}

// A person knows better than a check, and says so in the journal; and a repair is only believed after the next check.
TEST_F(CoreHealthTest, PeopleOverrideDrainAndRepair) {
    open_gate();
    two_nodes();
    tick(1);
    report("a", HealthVerdict::pass);
    report("b", HealthVerdict::fail);
    ASSERT_TRUE(tell(SetNode{"b", NodeState::draining}));
    ASSERT_TRUE(tell(SetNode{"b", NodeState::ready}));
    EXPECT_EQ(node("b"), NodeState::quarantined) << "back to what its check said";
    ASSERT_TRUE(tell(SetNode{"b", NodeState::ready}));
    EXPECT_EQ(node("b"), NodeState::ready);
    EXPECT_EQ(cause("b"), Cause::node_override);
    const RunId run = tell(Submit{.spec = wide()})->run;
    EXPECT_EQ(state_of(run), RunState::starting);
    ASSERT_TRUE(tell(CancelRun{run}));
    open_gate();
    EXPECT_EQ(cause("b"), Cause::node_override) << "also after a restart";
    ASSERT_TRUE(tell(SetNode{"b", NodeState::checking}));
    EXPECT_EQ(node("b"), NodeState::checking);
    EXPECT_EQ(cause("b"), Cause::node_repaired);
    EXPECT_EQ(core_->state().nodes.at("b").health->repairs_us.size(), 1U);
    EXPECT_FALSE(tell(SetNode{"b", NodeState::lost}));
    EXPECT_FALSE(tell(SetNode{"b", NodeState::quarantined}));
    ASSERT_TRUE(tell(SetNode{"b", NodeState::checking}));
    ASSERT_TRUE(tell(SetNode{"b", NodeState::checking}));
    EXPECT_EQ(node("b"), NodeState::quarantined) << "the third repair";
    EXPECT_EQ(cause("b"), Cause::node_lemon);
}

// Asked for by a person: also without a gate, but never beside what runs.
TEST_F(CoreHealthTest, ACheckThatAPersonAskedForWaitsUntilNothingRunsThere) {
    open_gate(std::nullopt);
    two_nodes();
    tick(3600);
    EXPECT_TRUE(checks_.empty());
    EXPECT_EQ(node("a"), NodeState::ready);
    const RunId run = tell(Submit{.spec = wide()})->run;
    ASSERT_NE(effect(Verb::launch), nullptr);
    const OperationId op = effect(Verb::launch)->operation;
    ASSERT_TRUE(answer(op, Certainty::confirmed));
    EXPECT_FALSE(tell(CheckNode{"b", HealthLevel::full})->repeated);
    EXPECT_TRUE(tell(CheckNode{"b", HealthLevel::quick})->repeated);
    EXPECT_FALSE(tell(CheckNode{"nowhere", HealthLevel::quick}));
    tick(100);
    EXPECT_TRUE(checks_.empty());
    ASSERT_TRUE(tell(SawFact{fact(FactKind::gang_ended, op, Cause::ok)}));
    EXPECT_EQ(state_of(run), RunState::succeeded);
    tick(1);
    ASSERT_TRUE(checks_.contains("b"));
    EXPECT_EQ(checks_["b"].level, HealthLevel::full);
    EXPECT_EQ(state_of(tell(Submit{.spec = wide()})->run), RunState::queued) << "it would be measured";
    EXPECT_TRUE(tell(CheckNode{"b", HealthLevel::full})->repeated);
    report("b", HealthVerdict::skipped);
    EXPECT_EQ(node("b"), NodeState::ready);
    EXPECT_EQ(state_of({2}), RunState::starting) << "without a gate that limits nothing";
}

// One blame for an attempt at most, of a node that was in it; three of different gangs make a suspect.
TEST_F(CoreHealthTest, ObserversBlameNodesOnceForAnAttempt) {
    open_gate(std::nullopt);
    two_nodes();
    const RunId run = tell(Submit{.spec = wide()})->run;
    const AttemptId attempt{run, 1};
    EXPECT_FALSE(tell(BlameNode{attempt, "nowhere", 0.3}));
    EXPECT_FALSE(tell(BlameNode{attempt, "b", 0}));
    EXPECT_FALSE(tell(BlameNode{{run, 9}, "b", 0.3}));
    ASSERT_TRUE(tell(BlameNode{attempt, "b", 0.3}));
    EXPECT_TRUE(tell(BlameNode{attempt, "b", 0.3})->repeated);
    EXPECT_TRUE(tell(BlameNode{attempt, "a", 0.3})->repeated);
    const NodeHealth& health = *core_->state().nodes.at("b").health;
    ASSERT_EQ(health.blames.size(), 1U);
    EXPECT_EQ(health.blames[0].members, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(health.blames[0].share_milli, 300);
    EXPECT_FALSE(core_->state().nodes.at("a").health);
    const RunId small = tell(Submit{.spec = job(0)})->run;
    EXPECT_FALSE(tell(BlameNode{{small, 1}, "a", 0.3})) << "alone it slowed nobody";
}

// The gate closed again after a restart: nothing waits for a check that never comes.
TEST_F(CoreHealthTest, ClosingTheGateLetsUncheckedNodesWork) {
    open_gate();
    two_nodes();
    const RunId run = tell(Submit{.spec = wide()})->run;
    EXPECT_EQ(state_of(run), RunState::queued);
    open_gate(std::nullopt);
    EXPECT_EQ(node("a"), NodeState::ready);
    tick(1);
    EXPECT_EQ(state_of(run), RunState::starting);
}

}  // namespace
}  // namespace stoker

#include "run/core/core_testing.h"

namespace stoker {
namespace {

// What was acknowledged has to be there after a restart, from records and from a snapshot, and in the same order.
TEST_F(CoreTest, VersionsOfTheConfigurationSurviveARestart) {
    machine();
    ASSERT_EQ(tell(SetConfig{.text = "max_queued: 1\n", .note = "a"})->version, 1U);
    ASSERT_EQ(tell(SetConfig{.text = "max_queued: 2\n", .note = "b", .if_version = 1})->version, 2U);
    const auto same = tell(SetConfig{.text = "max_queued: 2\n", .note = "c"});
    EXPECT_TRUE(same->repeated);
    EXPECT_EQ(same->version, 2U);
    const auto late = tell(SetConfig{.text = "max_queued: 3\n", .note = "", .if_version = 1});
    ASSERT_FALSE(late.ok());
    EXPECT_EQ(late.error().kind(), ErrorKind::conflict);
    const ConfigVersions before = core_->state().config;
    open();
    EXPECT_EQ(core_->state().config, before);
    const auto decoded = decode_state(encode_state(core_->state()));
    ASSERT_TRUE(decoded.ok()) << decoded.error().text();
    EXPECT_EQ(decoded->config, before);
    EXPECT_EQ(core_->state().object_of(ConfigChanged{.version = 3}), "config");
}

// A snapshot of a server that knew no configuration has to be read.
TEST_F(CoreTest, OlderSnapshotsHaveNoConfiguration) {
    machine();
    // And as long as there is none, snapshots are those of before, and so are their digests.
    const std::string text = encode_state(core_->state());
    EXPECT_EQ(text.find("config"), std::string::npos);
    EXPECT_EQ(text.find("former_nodes"), std::string::npos);
    const auto state = decode_state(text);
    ASSERT_TRUE(state.ok()) << state.error().text();
    EXPECT_TRUE(state->config.empty());
    EXPECT_EQ(digest(*state), digest(core_->state()));
}

// A bound that is changed holds from the next submission on, without a restart.
TEST_F(CoreTest, LimitsChangeWhileItRuns) {
    machine(0);
    ASSERT_TRUE(tell(SetLimits{{.max_queued = 1}}));
    ASSERT_TRUE(tell(Submit{.spec = job()}));
    const auto refused = tell(Submit{.spec = job()});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind(), ErrorKind::exhausted);
    ASSERT_TRUE(tell(SetLimits{{.max_queued = 2}}));
    EXPECT_TRUE(tell(Submit{.spec = job()}).ok());
}

// A node that was taken out of the configuration finishes what it has, takes nothing more, and then is gone; what its
// time cost can still be counted.
TEST_F(CoreTest, ANodeThatIsNotOfferedAnyMoreGoesWhenItIsEmpty) {
    machine(2);
    const RunId run = tell(Submit{.spec = job()})->run;
    const OperationId launch = effect(Verb::launch)->operation;
    ASSERT_TRUE(answer(launch, Certainty::confirmed));
    ASSERT_TRUE(tell(SawNodes{{}}));
    ASSERT_TRUE(tell(SawNodes{{}}));
    ASSERT_TRUE(core_->state().nodes.contains("n1"));
    EXPECT_EQ(core_->state().nodes.at("n1").state, NodeState::draining);
    ASSERT_TRUE(tell(SawFact{fact(FactKind::rank_started, launch)}));
    ASSERT_TRUE(tell(SawFact{fact(FactKind::rank_ended, launch, Cause::ok)}));
    ASSERT_TRUE(tell(SawFact{fact(FactKind::gang_ended, launch, Cause::ok)}));
    EXPECT_EQ(state_of(run), RunState::succeeded);
    ASSERT_TRUE(tell(SawNodes{{}}));
    EXPECT_FALSE(core_->state().nodes.contains("n1"));
    ASSERT_NE(core_->state().find_node("n1"), nullptr);
    EXPECT_EQ(core_->state().find_node("n1")->devices.size(), 2U);
    open();
    EXPECT_FALSE(core_->state().nodes.contains("n1"));
    ASSERT_NE(core_->state().find_node("n1"), nullptr);
    machine(2);
    EXPECT_EQ(core_->state().nodes.at("n1").state, NodeState::ready);
}

}  // namespace
}  // namespace stoker

// A replica that fails must cost few requests, and one that is well again must be found soon.
#include "serve/fleet/breaker.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

using enum ReplicaOutcome;

struct World {
    BreakerState state;
    SplitMix random{1};
    void meets(ReplicaOutcome outcome, double now_s, int times = 1) {
        for (int i = 0; i < times; ++i) state = after_outcome(state, outcome, now_s, random);
    }
};

TEST(Breaker, OpensAfterFiveFailuresInARow) {
    World w;
    w.meets(broke, 0, 4);
    w.meets(ok, 0);
    w.meets(silent, 1, 4);
    EXPECT_TRUE(takes_work(w.state, 1));
    w.meets(bad_gateway, 1);
    EXPECT_FALSE(takes_work(w.state, 1));
    EXPECT_FALSE(is_trial_due(w.state, 4.9));
    EXPECT_TRUE(is_trial_due(w.state, 7.1));
}

// Clients that leave, ask for nonsense or set short deadlines must not be able to take a replica out.
TEST(Breaker, ForgivesWhatIsNotTheReplicasFault) {
    World w;
    for (ReplicaOutcome outcome : {request_error, client_left, our_deadline, busy}) w.meets(outcome, 0, 100);
    EXPECT_EQ(w.state.phase, BreakerPhase::closed);
    w.meets(broke, 1, 4);
    w.meets(client_left, 1, 10);
    w.meets(broke, 1);
    EXPECT_EQ(w.state.phase, BreakerPhase::open);
}

// One request at a time finds out; each failure doubles the pause, up to five minutes.
TEST(Breaker, TriesWithOneRequestAndWaitsLongerEachTime) {
    World w;
    w.meets(refused, 0, 5);
    EXPECT_TRUE(w.state.refused);
    double now_s = 0;
    for (double pause : {5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0}) {
        EXPECT_GE(w.state.until_s - now_s, 0.8 * pause);
        EXPECT_LE(w.state.until_s - now_s, 1.2 * pause);
        now_s = w.state.until_s;
        ASSERT_TRUE(is_trial_due(w.state, now_s));
        w.state = with_trial_sent(w.state);
        EXPECT_FALSE(is_trial_due(w.state, now_s));
        EXPECT_FALSE(takes_work(w.state, now_s));
        w.meets(refused, now_s);
    }
    now_s = w.state.until_s;
    w.state = with_trial_sent(w.state);
    w.meets(client_left, now_s);
    EXPECT_TRUE(is_trial_due(w.state, now_s));  // the next one tries
    w.state = with_trial_sent(w.state);
    w.meets(ok, now_s);
    EXPECT_TRUE(takes_work(w.state, now_s));
    EXPECT_FALSE(w.state.refused);
}

// Well for a minute: what was before is forgotten. Ill again at once: it is not.
TEST(Breaker, RemembersAReplicaThatFlaps) {
    for (const bool flaps : {true, false}) {
        World w;
        w.meets(broke, 0, 5);
        w.state = with_trial_sent(w.state);
        w.meets(ok, 10);
        const double again_s = flaps ? 11 : 100;
        w.meets(broke, again_s, 5);
        EXPECT_NEAR(w.state.until_s - again_s, flaps ? 10 : 5, 2.1);
    }
}

// A replica that says when it has room is left alone until then, but not for ever.
TEST(Breaker, KeepsAPauseThatTheReplicaAskedFor) {
    World w;
    w.state = after_outcome(w.state, busy, 0, w.random, 7);
    EXPECT_FALSE(takes_work(w.state, 6.9));
    EXPECT_TRUE(takes_work(w.state, 7));
    w.state = after_outcome(w.state, busy, 10, w.random, 1e9);
    EXPECT_TRUE(takes_work(w.state, 70));
}

TEST(Breaker, GivesANewReplicaAGrowingShare) {
    EXPECT_DOUBLE_EQ(slow_start_weight(0, 0), 0.1);
    EXPECT_DOUBLE_EQ(slow_start_weight(15, 0), 0.55);
    EXPECT_DOUBLE_EQ(slow_start_weight(1, 20), 1);
    EXPECT_DOUBLE_EQ(slow_start_weight(100, 0), 1);
}

}  // namespace
}  // namespace stoker

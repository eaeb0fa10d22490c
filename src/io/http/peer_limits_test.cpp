// One peer that asks too often must not keep the others from asking, nor fill the memory with addresses.
#include "io/http/peer_limits.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

using std::chrono::milliseconds;
const PeerLimits::Time kStart{std::chrono::hours(1)};

TEST(PeerLimits, LetsABurstPassAndThenTheRate) {
    PeerLimits limits(2, 3);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(limits.take("a", kStart), 0);
    EXPECT_DOUBLE_EQ(limits.take("a", kStart), 0.5);
    EXPECT_EQ(limits.take("b", kStart), 0);
    EXPECT_DOUBLE_EQ(limits.take("a", kStart + milliseconds(250)), 0.25);
    EXPECT_EQ(limits.take("a", kStart + milliseconds(500)), 0);
    EXPECT_GT(limits.take("a", kStart + milliseconds(500)), 0);
    // It never saves up more than the burst, and a clock that goes back gives nothing.
    for (int i = 0; i < 3; ++i) EXPECT_EQ(limits.take("a", kStart + std::chrono::hours(9)), 0);
    EXPECT_GT(limits.take("a", kStart), 0);
}

TEST(PeerLimits, NoRateIsNoLimit) {
    PeerLimits limits(0, 0);
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(limits.take("a", kStart), 0);
    EXPECT_EQ(limits.peers(), 0u);
    PeerLimits slow(0.1, 0);  // the burst is at least one
    EXPECT_EQ(slow.take("a", kStart), 0);
    EXPECT_DOUBLE_EQ(slow.take("a", kStart), 10);
}

TEST(PeerLimits, TheTableIsBounded) {
    PeerLimits limits(1, 1, 100);
    EXPECT_EQ(limits.take("busy", kStart), 0);
    for (int i = 0; i < 10'000; ++i) {
        EXPECT_EQ(limits.take("peer" + std::to_string(i), kStart), 0);
        EXPECT_GT(limits.take("busy", kStart), 0) << "the one seen often is not forgotten";
    }
    EXPECT_EQ(limits.peers(), 100u);
}

}  // namespace
}  // namespace stoker

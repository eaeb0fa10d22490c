#include "deploy/node_offer.h"

#include <gmock/gmock.h>

namespace stoker {
namespace {

// A list that is replaced does not change under a launch that is under way.
TEST(NodeOffer, AListThatIsReplacedStaysWithWhoHasIt) {
    NodeOffer offer;
    const auto none = offer.get();
    EXPECT_TRUE(none->empty());
    offer.set({{.name = "a", .cpu_milli = 1000}, {.name = "b", .cpu_milli = 2000, .boot_id = "other"}});
    EXPECT_TRUE(none->empty());
    EXPECT_EQ(offer.get()->size(), 2U);
}

// The cloud takes a machine back: the engine is woken, and an engine that comes late finds what was said.
TEST(NodeOffer, NoticesWakeTheEngineAndStay) {
    NodeOffer offer;
    offer.notice(30, "Preempt", 1'000'000);
    int woken = 0;
    offer.wake_with([&] { ++woken; });
    offer.notice(-1, "it stays", 2'000'000);
    EXPECT_EQ(woken, 1);
    ASSERT_EQ(offer.notices_after(0).size(), 2U);
    EXPECT_EQ(offer.notices_after(0).front().detail, "Preempt");
    ASSERT_EQ(offer.notices_after(1).size(), 1U);
    EXPECT_EQ(offer.notices_after(1).front().seconds, -1);
    offer.wake_with({});
    offer.notice(10, "Terminate", 3'000'000);
    EXPECT_EQ(woken, 1);
}

}  // namespace
}  // namespace stoker

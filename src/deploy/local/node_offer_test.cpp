#include "deploy/local/node_offer.h"

#include <gmock/gmock.h>

#include "io/process.h"

namespace stoker {
namespace {

// A server without a node file offers the machine it is on, and a list that is replaced does not change under a launch
// that is under way.
TEST(NodeOffer, IsThisMachineUntilToldOtherwise) {
    NodeOffer offer;
    const auto machine = offer.get();
    ASSERT_EQ(machine->size(), 1U);
    EXPECT_GT(machine->front().cpu_milli, 0);
    offer.set({{.name = "a", .cpu_milli = 1000}, {.name = "b", .cpu_milli = 2000, .boot_id = "other"}});
    EXPECT_EQ(machine->size(), 1U);
    const auto nodes = offer.get();
    ASSERT_EQ(nodes->size(), 2U);
    EXPECT_EQ(nodes->front().boot_id, boot_id());
    EXPECT_EQ(nodes->back().boot_id, "other");
    offer.set({});
    EXPECT_EQ(offer.get()->front().name, machine->front().name);
}

}  // namespace
}  // namespace stoker

#include "plan/option.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

Option option(double usd, double hours, int year, int nodes, std::string_view name) {
    Option o;
    o.usd = {usd, usd, usd};
    o.hours = {hours, hours, hours};
    o.year = year;
    o.nodes = nodes;
    o.name = name;
    return o;
}

// Equal in cost and time: the newer generation, then fewer nodes, then the name.
TEST(TieBreak, FollowsTheWrittenOrder) {
    EXPECT_TRUE(ranks_before(option(10, 2, 2020, 4, "z"), option(11, 1, 2024, 1, "a"), Minimize::cost));
    EXPECT_TRUE(ranks_before(option(10, 1, 2020, 4, "z"), option(10, 2, 2024, 1, "a"), Minimize::cost));
    EXPECT_TRUE(ranks_before(option(10, 2, 2024, 4, "z"), option(10, 2, 2020, 1, "a"), Minimize::cost));
    EXPECT_TRUE(ranks_before(option(10, 2, 2024, 1, "z"), option(10, 2, 2024, 4, "a"), Minimize::cost));
    EXPECT_TRUE(ranks_before(option(10, 2, 2024, 1, "a"), option(10, 2, 2024, 1, "b"), Minimize::cost));
    EXPECT_TRUE(ranks_before(option(20, 1, 2020, 4, "z"), option(10, 2, 2024, 1, "a"), Minimize::time));
}

// What has no price never ranks before what has one.
TEST(TieBreak, UnpricedIsNotFree) {
    Option unpriced = option(0, 1, 2024, 1, "a");
    unpriced.priced = false;
    EXPECT_FALSE(ranks_before(unpriced, option(1e6, 1, 2020, 1, "b"), Minimize::cost));
}

}  // namespace
}  // namespace stoker

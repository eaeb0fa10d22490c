#include "plan/option.h"

#include <gtest/gtest.h>

#include <algorithm>

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

// Rules of thumb decide within the share and nowhere else; what has more against it comes later, whatever it costs.
TEST(TieBreak, RulesOfThumbDecideTiesOnly) {
    Option cheap = option(100, 2, 2024, 1, "cheap"), ruled = option(102, 2, 2024, 1, "ruled"),
           dear = option(104, 2, 2024, 1, "dear"), doubted = option(1, 2, 2024, 1, "doubted");
    cheap.preference = dear.preference = 10;
    ruled.preference = 4;
    dear.preference = 0;
    doubted.doubts = doubt::unmeasured;
    std::vector<Option> all{dear, doubted, cheap, ruled};
    settle_ties(all, Minimize::cost, {.share = 0.03});
    std::sort(all.begin(), all.end(),
              [](const Option& a, const Option& b) { return ranks_before(a, b, Minimize::cost); });
    EXPECT_EQ(all[0].name, "ruled");
    EXPECT_EQ(all[1].name, "cheap");
    EXPECT_EQ(all[2].name, "dear");
    EXPECT_EQ(all[3].name, "doubted");
}

// A job that is much faster for a few percent more comes first; not for more than the share, and never for more
// machines of what the cheapest is made of.
TEST(TieBreak, TimeIsWorthALittleMoney) {
    constexpr TieRules kRules{.share = 0.03, .most_for_time = 0.10, .time_exponent = 0.2};
    const auto first = [&](std::vector<Option> all, Minimize minimize = Minimize::cost) {
        settle_ties(all, minimize, kRules);
        return std::min_element(all.begin(), all.end(),
                                [=](const Option& a, const Option& b) { return ranks_before(a, b, minimize); })
            ->name;
    };
    const Option cheap = option(100, 16, 2020, 2, "cheap");
    EXPECT_EQ(first({cheap, option(104, 2, 2024, 1, "fast")}), "fast");
    EXPECT_EQ(first({cheap, option(111, 1, 2024, 1, "dear")}), "cheap");
    EXPECT_EQ(first({cheap, option(109, 14, 2024, 1, "little")}), "cheap");
    EXPECT_EQ(first({cheap, option(102, 1, 2024, 32, "fleet")}), "cheap");
    Option doubted = option(90, 1, 2024, 1, "doubted");
    doubted.doubts = doubt::unmeasured;
    EXPECT_EQ(first({cheap, doubted}), "cheap");
}

}  // namespace
}  // namespace stoker

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

// Quota and capacity for 256 GPUs are had by the day: that 32 machines need three hours of it is no reason to ask for
// them where two do the same in the time there is. For days of work time counts as it does for any.
TEST(TieBreak, AFleetIsNotHadByTheHour) {
    constexpr TieRules kRules{.share = 0.01, .most_for_time = 0.10, .time_exponent = 0.2, .nodes_exponent = 0.1};
    const auto first = [&](std::vector<Option> all) {
        settle_ties(all, Minimize::cost, kRules);
        return std::min_element(all.begin(), all.end(),
                                [](const Option& a, const Option& b) { return ranks_before(a, b, Minimize::cost); })
            ->name;
    };
    Option fleet = option(100, 3.3, 2020, 32, "fleet"), long_fleet = option(100, 79, 2020, 32, "fleet");
    EXPECT_EQ(first({fleet, option(102, 65, 2020, 2, "few")}), "fleet");  // replicas come and go one by one
    fleet.gang = long_fleet.gang = true;
    EXPECT_EQ(first({fleet, option(102, 65, 2020, 2, "few")}), "few");
    EXPECT_EQ(first({long_fleet, option(102, 1560, 2020, 2, "few")}), "fleet");
    EXPECT_EQ(first({option(100, 3.3, 2020, 4, "some"), option(102, 65, 2020, 2, "few")}), "some");
    EXPECT_EQ(first({fleet, option(111, 65, 2020, 2, "dear")}), "fleet");
}

// Two machines do for a little more what seven do, and are less to get and to run; not for any price.
TEST(TieBreak, FewerMachinesAreWorthALittleMoney) {
    constexpr TieRules kRules{.share = 0.03, .most_for_time = 0.10, .time_exponent = 0.2, .nodes_exponent = 0.1};
    const auto first = [&](std::vector<Option> all) {
        settle_ties(all, Minimize::cost, kRules);
        return std::min_element(all.begin(), all.end(),
                                [](const Option& a, const Option& b) { return ranks_before(a, b, Minimize::cost); })
            ->name;
    };
    const Option seven = option(0.96, 1, 2024, 7, "seven");
    EXPECT_EQ(first({seven, option(1.05, 1, 2020, 2, "two")}), "two");
    EXPECT_EQ(first({seven, option(1.20, 1, 2020, 1, "dear")}), "seven");
    EXPECT_EQ(first({seven, option(1.05, 1, 2020, 6, "six")}), "seven");
}

// Being far away outweighs some money and not any; what is worse than that outweighs all of it.
TEST(TieBreak, SmallDoubtsYieldToMoney) {
    const auto doubted = [](double usd, int doubts, std::string_view name) {
        Option one = option(usd, 1, 2024, 1, name);
        one.doubts = doubts;
        return one;
    };
    const auto doubts_after = [&](const Option& one, std::vector<Option> others) {
        others.push_back(one);
        forgive_small_doubts(others, Minimize::cost, 2);
        return others.back().doubts;
    };
    const Option near = option(100, 1, 2024, 1, "near");
    EXPECT_EQ(doubts_after(doubted(60, doubt::far, "far"), {near}), static_cast<int>(doubt::far));
    EXPECT_EQ(doubts_after(doubted(40, doubt::far | doubt::scarce, "far"), {near}), 0);
    EXPECT_EQ(doubts_after(doubted(1, doubt::unmeasured, "new"), {near}), static_cast<int>(doubt::unmeasured));
    EXPECT_EQ(doubts_after(doubted(40, doubt::unmeasured | doubt::far, "new"), {near}),
              static_cast<int>(doubt::unmeasured));
    EXPECT_EQ(doubts_after(doubted(40, doubt::far, "alone"), {}), static_cast<int>(doubt::far));
    // A device that is known from other work, and its vendor's others from this, at less than a quarter.
    const auto known = [&](double usd) {
        Option one = doubted(usd, doubt::unmeasured, "known");
        one.known_elsewhere = true;
        return doubts_after(one, {near});
    };
    EXPECT_EQ(known(30), static_cast<int>(doubt::unmeasured));
    EXPECT_EQ(known(20), 0);
}

// Who asks for the fastest does not pay thirty times as much for a few percent, nor for milliseconds that nobody sees;
// and gets nothing that takes much longer.
TEST(TieBreak, MoneyIsWorthALittleTime) {
    constexpr TieRules kRules{.share = 0.03, .most_for_money = 0.25, .money_exponent = 0.2, .unnoticed_s = 0.02};
    const auto first = [&](std::vector<Option> all) {
        settle_ties(all, Minimize::time, kRules);
        return std::min_element(all.begin(), all.end(),
                                [](const Option& a, const Option& b) { return ranks_before(a, b, Minimize::time); })
            ->name;
    };
    EXPECT_EQ(first({option(2460, 1.00, 2024, 128, "fleet"), option(384, 1.20, 2024, 32, "enough")}), "enough");
    EXPECT_EQ(first({option(2460, 1.00, 2024, 128, "fleet"), option(384, 1.30, 2024, 32, "late")}), "fleet");
    EXPECT_EQ(first({option(120, 1.00, 2024, 2, "fast"), option(100, 1.20, 2024, 1, "little")}), "fast");
    const auto service = [](double usd, double answer_s, std::string_view name) {
        Option one = option(usd, 1, 2024, 2, name);
        one.latency_s = answer_s;
        return one;
    };
    EXPECT_EQ(first({service(220, 0.002, "giant"), service(1, 0.018, "plain")}), "plain");
    EXPECT_EQ(first({service(80, 0.5, "fast"), service(7, 1.5, "slow")}), "fast");
}

// A replica that one machine holds comes before a cheaper one over two, up to the share and no further; with nothing of
// the kind near, the cheapest is the first.
TEST(TieBreak, AReplicaOnOneMachineIsWorthALittleMoney) {
    const auto first = [](double whole_usd, int whole_doubts = 0) {
        Option two = option(100, 1, 2020, 4, "two"), whole = option(whole_usd, 1, 2022, 2, "whole");
        two.span = 2;
        whole.doubts = whole_doubts;
        std::vector<Option> all{two, whole};
        settle_ties(all, Minimize::cost, {.share = 0.03, .most_for_whole = 0.30});
        return ranks_before(all[0], all[1], Minimize::cost) ? all[0].name : all[1].name;
    };
    EXPECT_EQ(first(129), "whole");
    EXPECT_EQ(first(131), "two");
    EXPECT_EQ(first(110, doubt::unmeasured), "two");
    EXPECT_EQ(first(90), "whole");
}

// What lies nearer to measured runs comes before what is a little cheaper, not before what is much cheaper, and never
// with more machines.
TEST(TieBreak, MeasuredNearIsWorthALittleMoney) {
    constexpr TieRules kRules{.share = 0.03, .most_for_time = 0.10, .time_exponent = 0.2, .most_for_evidence = 0.05};
    const auto first = [&](double usd, double unease, int nodes) {
        Option cheap = option(100, 10, 2024, 2, "cheap"), near = option(usd, 10, 2020, nodes, "near");
        cheap.choice = 0, near.choice = 1;
        cheap.unease = unease;
        std::vector<Option> all{cheap, near};
        settle_ties(all, Minimize::cost, kRules);
        return std::min_element(all.begin(), all.end(),
                                [](const Option& a, const Option& b) { return ranks_before(a, b, Minimize::cost); })
            ->name;
    };
    EXPECT_EQ(first(104, 1.2, 2), "near");
    EXPECT_EQ(first(106, 1.2, 2), "cheap");   // too dear
    EXPECT_EQ(first(104, 1.2, 3), "cheap");   // more machines
    EXPECT_EQ(first(104, 1.02, 2), "cheap");  // known about as well
}

}  // namespace
}  // namespace stoker

// A node with a slow link makes every gang on it slow, and a healthy one that is kept from work is money for nothing.
#include "run/decide/health.h"

#include <gmock/gmock.h>

#include "base/random.h"
#include "run/decide/testing.h"
#include "run/decide/why.h"

namespace stoker {
namespace {

using run_testing::World;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kMinuteUs = 60 * kSecondUs, kHourUs = 60 * kMinuteUs, kDayUs = 24 * kHourUs;

struct HealthWorld : World {
    void check(const std::string& node, HealthVerdict verdict, HealthLevel level = HealthLevel::quick) {
        const HealthReport report = run_testing::link_report(node, verdict);
        put(checked_record(node, state.nodes.at(node).info.boot_id, level, report));
        settle(node, HealthLevel::quick);
    }
    void settle(const std::string& node, std::optional<HealthLevel> level) {
        const NodeStatus& status = state.nodes.at(node);
        const Standing standing = standing_of(status, level, now_us);
        if (standing != Standing{status.state, status.cause}) put(NodeMoved{node, standing.state, standing.cause});
    }
    void blame(const std::string& node, std::uint64_t run, std::vector<std::string> members) {
        put(NodeBlamed{.node = node, .attempt = {{run}, 1}, .members = std::move(members), .share_milli = 300});
    }
    void reboot(const std::string& node) {
        put(NodeMoved{node, NodeState::lost, Cause::node_lost});
        NodeInfo info = state.nodes.at(node).info;
        info.boot_id += "+";
        put(NodeSeen{info});
        const Standing standing = standing_of(state.nodes.at(node), HealthLevel::quick, now_us);
        put(NodeMoved{node, standing.state, standing.cause});
    }
    NodeTakes takes(const std::string& node, const HealthGate& gate, bool busy = false) const {
        return takes_of(state.nodes.at(node), gate, busy, now_us);
    }
    std::vector<std::string> due(const AskedChecks& asked = {}) const {
        std::vector<std::string> names;
        for (const CheckWanted& want : checks_due(state, HealthLevel::quick, asked, now_us).now)
            names.push_back(want.node);
        return names;
    }
};

const HealthGate kGate{.level = HealthLevel::quick};

SchedulerOptions gated() {
    SchedulerOptions options;
    options.health = kGate;
    return options;
}

// The table at the top of health.h, line by line.
TEST(Health, WhatAReportMeansForANode) {
    HealthWorld world;
    world.node("a", 8);
    EXPECT_EQ(world.takes("a", {}), NodeTakes::gangs) << "without a gate nothing changes";
    EXPECT_EQ(world.takes("a", kGate), NodeTakes::nothing);
    EXPECT_EQ(world.takes("a", kGate, true), NodeTakes::one_rank);
    world.check("a", HealthVerdict::pass);
    EXPECT_EQ(world.takes("a", kGate), NodeTakes::gangs);
    EXPECT_EQ(world.takes("a", {.level = HealthLevel::full}), NodeTakes::nothing) << "that was the quick one";
    for (const HealthVerdict limited : {HealthVerdict::warn, HealthVerdict::skipped}) {
        world.check("a", limited);
        EXPECT_EQ(world.takes("a", kGate), NodeTakes::one_node);
        EXPECT_EQ(world.state.nodes.at("a").state, NodeState::ready);
    }
    world.check("a", HealthVerdict::fail);
    EXPECT_EQ(world.state.nodes.at("a").state, NodeState::quarantined);
    EXPECT_EQ(world.takes("a", kGate), NodeTakes::nothing);
    EXPECT_EQ(world.takes("a", {}), NodeTakes::nothing) << "closing the gate lifts no quarantine";
    EXPECT_EQ(limit_text(world.state.nodes.at("a"), kGate, false, world.now_us),
              "a is quarantined: link-bandwidth to peer 6 MB/s, expected 1.2 GB/s (test)");
    world.put(NodeMoved{"a", NodeState::ready, Cause::node_override});
    EXPECT_EQ(world.takes("a", kGate), NodeTakes::gangs) << "a person vouched for it";
    world.check("a", HealthVerdict::fail);
    EXPECT_EQ(world.state.nodes.at("a").state, NodeState::quarantined) << "until the next check";
    world.reboot("a");
    EXPECT_EQ(world.state.nodes.at("a").state, NodeState::checking) << "it may have been mended";
    world.check("a", HealthVerdict::pass);
    EXPECT_EQ(world.takes("a", kGate), NodeTakes::gangs);
    EXPECT_EQ(world.takes("a", {.level = HealthLevel::quick, .under_check = {"a"}}), NodeTakes::nothing);
}

// A node that is never idle must not stay unchecked for ever, with gangs waiting for it in vain.
TEST(Health, ABusyNodeThatWasNeverCheckedTakesNothingNewAfterAnHour) {
    HealthWorld world;
    world.node("a", 8);
    world.settle("a", HealthLevel::quick);
    world.now_us += kHourUs - kMinuteUs;
    EXPECT_EQ(world.takes("a", kGate, true), NodeTakes::one_rank);
    world.now_us += 2 * kMinuteUs;
    EXPECT_EQ(world.takes("a", kGate, true), NodeTakes::nothing);
}

// A node is checked when it is new, when it failed, and once a day; never while something runs on it, and few at once.
TEST(Health, WhichNodesWantACheck) {
    HealthWorld world;
    for (const char* name : {"a", "b", "c", "d", "e", "f"}) world.node(name, 8);
    EXPECT_THAT(world.due(), ElementsAre("a")) << "two at once would measure each other";
    EXPECT_THAT(world.due({{"f", {.asked_us = 1}}}), ElementsAre("f")) << "those that a person asked for first";
    EXPECT_TRUE(world.due({{"a", {.under_way = true}}, {"f", {.asked_us = 1}}}).empty());
    EXPECT_TRUE(checks_due(world.state, {}, {}, world.now_us).now.empty()) << "without a gate nobody is checked";
    EXPECT_EQ(checks_due(world.state, {}, {{"c", {.level = HealthLevel::full}}}, world.now_us).now.at(0).level,
              HealthLevel::full)
        << "but for those that a person asked for";
    for (const char* name : {"a", "b", "c", "d", "e"}) world.check(name, HealthVerdict::pass);
    world.check("f", HealthVerdict::fail);
    EXPECT_TRUE(world.due().empty());
    EXPECT_EQ(checks_due(world.state, HealthLevel::quick, {}, world.now_us).next_us, world.now_us + kMinuteUs);
    // The back-off doubles, up to an hour.
    std::int64_t waited = 0, last = 0;
    for (int i = 0; i < 12; ++i) {
        const std::int64_t before = world.now_us;
        world.now_us = checks_due(world.state, HealthLevel::quick, {}, world.now_us).next_us;
        last = world.now_us - before;
        waited += last;
        if (waited > kDayUs - kHourUs) break;
        ASSERT_THAT(world.due(), ElementsAre("f"));
        world.check("f", HealthVerdict::fail);
    }
    EXPECT_EQ(last, kHourUs);
    world.check("f", HealthVerdict::pass);
    world.now_us += kDayUs;
    EXPECT_EQ(world.due().size(), 1U);
    // Busy: it would be measured with what runs, and disturb it.
    const RunId run = world.submit(World::spec(1, 8));
    world.pass();
    const std::string busy = world.state.find(run)->attempts.back().places[0].node;
    for (const std::string& name : world.due()) EXPECT_NE(name, busy);
    world.put(NodeMoved{"b", NodeState::lost, Cause::node_lost});
    world.put(NodeMoved{"c", NodeState::draining, Cause::held});
    for (const std::string& name : world.due()) EXPECT_TRUE(name != "b" && name != "c") << name;
    EXPECT_THAT(world.due({{"c", {.asked_us = 1}}}).at(0), "c") << "a drained node can be checked";
}

// The slowest of one gang may be chance, and the slowest of the same gang again and again may be its place in it.
TEST(Health, ALemonIsTheSlowestOfThreeDifferentGangs) {
    HealthWorld world;
    world.node("a", 8);
    world.check("a", HealthVerdict::pass);
    for (std::uint64_t i = 0; i < 5; ++i) world.blame("a", i + 1, {"a", "b"});
    world.settle("a", HealthLevel::quick);
    EXPECT_EQ(world.state.nodes.at("a").state, NodeState::ready) << "always with the same one: it may be b";
    world.blame("a", 7, {"a", "c"});
    world.blame("a", 8, {"a", "b", "c"});
    world.settle("a", HealthLevel::quick);
    EXPECT_EQ(world.state.nodes.at("a").state, NodeState::suspect);
    EXPECT_EQ(world.state.nodes.at("a").cause, Cause::node_lemon);
    EXPECT_EQ(world.takes("a", kGate), NodeTakes::one_node);
    EXPECT_EQ(world.takes("a", {}), NodeTakes::one_node);
    EXPECT_THAT(limit_text(world.state.nodes.at("a"), kGate, false, world.now_us), HasSubstr("slowest of 3 different"));
    world.check("a", HealthVerdict::pass);
    EXPECT_EQ(world.state.nodes.at("a").state, NodeState::suspect) << "its checks had passed before, too";
    world.reboot("a");
    world.check("a", HealthVerdict::pass);
    EXPECT_EQ(world.state.nodes.at("a").state, NodeState::suspect);
    world.now_us += 31 * kDayUs;
    world.check("a", HealthVerdict::pass);
    EXPECT_EQ(world.state.nodes.at("a").state, NodeState::ready) << "30 days without";
}

// Repaired three times in a month and slow again: whoever trusts it loses the next month as well.
TEST(Health, ThreeRepairsInAMonthAreALemonForGood) {
    HealthWorld world;
    world.node("a", 8);
    for (int i = 0; i < 3; ++i) {
        world.check("a", HealthVerdict::fail);
        EXPECT_EQ(world.state.nodes.at("a").cause, Cause::node_unhealthy);
        world.put(NodeMoved{"a", NodeState::checking, Cause::node_repaired});
        if (i < 2) {
            EXPECT_EQ(world.due(), std::vector<std::string>{"a"}) << "repaired: its back-off is over";
        }
    }
    world.settle("a", HealthLevel::quick);
    EXPECT_EQ(world.state.nodes.at("a").state, NodeState::quarantined);
    EXPECT_EQ(world.state.nodes.at("a").cause, Cause::node_lemon);
    EXPECT_TRUE(world.due().empty());
    world.reboot("a");
    EXPECT_EQ(world.state.nodes.at("a").state, NodeState::quarantined) << "turning it off and on is no repair";
    world.put(NodeMoved{"a", NodeState::ready, Cause::node_override});
    world.check("a", HealthVerdict::pass);
    EXPECT_EQ(world.state.nodes.at("a").state, NodeState::ready);
}

// The journey: a slow link, the gang over both waits and is told why and what to do; alone on a good node it starts.
TEST(Health, AGangWaitsForNodesThatPassedAndIsToldWhy) {
    HealthWorld world;
    world.node("a", 8);
    world.node("b", 8);
    world.check("a", HealthVerdict::pass);
    world.check("b", HealthVerdict::fail);
    RunSpec wide = World::spec(2, 8);
    const RunId gang = world.submit(wide), small = world.submit(World::spec(2, 4));
    const SchedulerOptions options = gated();
    const Decisions decisions = schedule(world.state, world.now_us, options);
    EXPECT_EQ(world.waits(decisions, gang), Cause::node_unhealthy);
    EXPECT_TRUE(world.starts(decisions, small)) << "it holds up nobody";
    const Why answer = why(world.state, gang, world.now_us, options);
    EXPECT_EQ(answer.code, Cause::node_unhealthy);
    EXPECT_THAT(answer.text, HasSubstr("b is quarantined: link-bandwidth to peer 6 MB/s, expected 1.2 GB/s (test)"));
    ASSERT_FALSE(answer.unblock.empty());
    EXPECT_THAT(answer.unblock[0], HasSubstr("stoker nodes ready b"));
    EXPECT_THAT(eta(world.state, gang, world.now_us, options).text, HasSubstr("did not pass its health check"));
    // One that no machine is large enough for is not told to mend nodes.
    const RunId huge = world.submit(World::spec(1, 9));
    EXPECT_EQ(why(world.state, huge, world.now_us, options).code, Cause::capacity_none);
    world.check("b", HealthVerdict::pass);
    EXPECT_TRUE(world.starts(schedule(world.state, world.now_us, options), gang));
}

// Warned and unmeasured nodes work for themselves: that is no reason to buy new ones.
TEST(Health, WarnedNodesTakeGangsOfTheirOwnOnly) {
    for (const HealthVerdict verdict : {HealthVerdict::warn, HealthVerdict::skipped}) {
        HealthWorld world;
        world.node("a", 8);
        world.node("b", 8);
        world.check("a", verdict);
        world.check("b", verdict);
        const RunId inside = world.submit(World::spec(8, 1)), over = world.submit(World::spec(2, 5)),
                    one = world.submit(World::spec(1, 8));
        const Decisions decisions = world.pass(gated());
        EXPECT_TRUE(world.starts(decisions, inside));
        EXPECT_EQ(world.waits(decisions, over), Cause::node_unhealthy);
        EXPECT_TRUE(world.starts(decisions, one));
        RunSpec two = World::spec(2, 1);
        two.nodes = 2;
        const RunId both = world.submit(two);
        EXPECT_EQ(world.waits(schedule(world.state, world.now_us, gated()), both), Cause::node_unhealthy);
    }
}

// Over random histories: with the gate on no gang is placed over nodes of which one did not pass, none on a node that
// failed; and whatever fits on the nodes that passed does start in the end.
TEST(Health, NoGangOnNodesThatDidNotPassAndNobodyStarvesForThem) {
    std::size_t waited = 0, placed = 0;
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
        SplitMix random(seed);
        HealthWorld world;
        std::vector<std::string> names;
        for (int i = 0; i < 5; ++i) {
            names.push_back("n" + std::to_string(i));
            world.node(names.back(), 4);
        }
        world.check("n0", HealthVerdict::pass);
        world.check("n1", HealthVerdict::pass);
        SchedulerOptions options = gated();
        const RunId promised = [&] {
            RunSpec spec = World::spec(2, 4);
            spec.nodes = 2;
            return world.submit(spec);
        }();
        for (int round = 0; round < 60; ++round) {
            world.now_us += static_cast<std::int64_t>(random.below(20)) * kMinuteUs;
            const std::string& node = names[2 + random.below(3)];  // n0 and n1 stay well
            const NodeState now = world.state.nodes.at(node).state;
            switch (random.below(7)) {
                case 0: world.check(node, static_cast<HealthVerdict>(random.below(4))); break;
                case 1:
                    world.blame(node, seed * 100 + static_cast<std::uint64_t>(round), {node, names[random.below(5)]});
                    break;
                case 2: world.reboot(node); break;
                case 3:
                    if (now != NodeState::lost) world.put(NodeMoved{node, NodeState::checking, Cause::node_repaired});
                    break;
                case 4: options.health.under_check = {node}; break;
                case 5: options.health.under_check.clear(); break;
                default: break;
            }
            world.settle(node, HealthLevel::quick);
            RunSpec spec = World::spec(static_cast<int>(1 + random.below(6)), static_cast<int>(1 + random.below(4)));
            if (random.below(3) == 0) spec.nodes = spec.ranks;
            world.submit(spec);
            for (const Admission& admission : world.pass(options).admit) {
                std::set<std::string> used;
                for (const RankPlace& place : admission.places) used.insert(place.node);
                for (const std::string& each : used) {
                    const NodeStatus& status = world.state.nodes.at(each);
                    ASSERT_NE(status.state, NodeState::quarantined) << seed;
                    ASSERT_FALSE(options.health.under_check.contains(each)) << seed;
                    if (admission.places.size() > 1) {
                        ASSERT_TRUE(is_checked(status, HealthLevel::quick)) << seed;
                        ASSERT_NE(status.health->last->verdict, HealthVerdict::fail) << seed;
                    }
                    if (used.size() < 2) continue;
                    ASSERT_EQ(status.health->last->verdict, HealthVerdict::pass) << seed;
                    ASSERT_EQ(status.state, NodeState::ready) << seed;
                    ++placed;
                }
            }
            for (const Waiting& each : schedule(world.state, world.now_us, options).waiting)
                waited += each.cause == Cause::node_unhealthy ? 1 : 0;
            while (world.state.live.size() > 2) {
                auto at = world.state.live.begin();
                std::advance(at, static_cast<std::ptrdiff_t>(random.below(world.state.live.size())));
                world.end(*at);
            }
        }
        EXPECT_FALSE(world.state.find(promised)->attempts.empty()) << "two healthy nodes were there, seed " << seed;
    }
    EXPECT_GT(placed, 500U);
    EXPECT_GT(waited, 100U);
}

}  // namespace
}  // namespace stoker

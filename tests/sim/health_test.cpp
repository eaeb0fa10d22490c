// A month with nodes whose links break, nodes that slow every gang down, faults and kills: no gang is ever placed on a
// node that did not pass, and all work ends as it must, since some nodes are always well.
#include <gmock/gmock.h>

#include <fmt/format.h>

#include "scenarios.h"
#include "seeds.h"
#include "simulation.h"

namespace stoker::sim {
namespace {

using testing::IsEmpty;

// What an observer would find of the attempts that have ended: the lemon was the slowest of its gang.
void blame_lemon(Simulation& sim, const std::string& lemon, std::set<AttemptId>& told) {
    std::vector<AttemptId> slow;
    for (const auto& [id, run] : sim.state().runs)
        for (const Attempt& attempt : run.attempts) {
            std::set<std::string> nodes;
            for (const RankPlace& place : attempt.places) nodes.insert(place.node);
            const AttemptId each{id, attempt.number};
            if (!attempt.live() && nodes.size() > 1 && nodes.contains(lemon) && told.insert(each).second)
                slow.push_back(each);
        }
    for (const AttemptId& each : slow)
        (void)sim.command({.what = BlameNode{each, lemon, 0.4}, .actor = Actor::part("observer")});
}

TEST(SimHealth, AMonthWithSlowLinksAndALemon) {
    constexpr double kDay = 86400, kMonth = 30 * kDay;
    std::uint64_t quarantined = 0, suspects = 0, checks = 0, wide = 0, kills = 0, waited = 0;
    for (const std::uint64_t seed : seeds(20)) {
        SplitMix random(seed ^ 0x4ea17);
        SimulationOptions options{.seed = seed, .faults = Faults::common(), .nodes = make_nodes(8, 4)};
        options.faults.node_lost_per_hour = options.faults.notice_per_hour = 0.002;
        options.snapshot_every = 500;
        options.check_each_turn = false;
        options.health_gate = seed % 3 == 0 ? HealthLevel::full : HealthLevel::quick;
        options.discover_every_s = 600;
        for (int i = 0; i < 6; ++i) options.kill_at.insert(2 + random.below(4000));
        Simulation sim(options);
        // The first four nodes stay well; links of the others break for hours to days; the last one is a lemon.
        for (int i = 0; i < 25; ++i) {
            const std::string node = fmt::format("n{:03}", 5 + random.below(3));
            const double at = random.uniform() * kMonth;
            sim.at(at, [node](Simulation& s) { s.driver().make_slow(node, true); });
            sim.at(at + (0.05 + random.uniform()) * kDay, [node](Simulation& s) { s.driver().make_slow(node, false); });
        }
        auto told = std::make_shared<std::set<AttemptId>>();
        for (double at = 3600; at < kMonth; at += 3 * 3600)
            sim.at(at, [told](Simulation& s) { blame_lemon(s, "n008", *told); });
        for (int i = 0; i < 12; ++i)
            sim.at(random.uniform() * kMonth, [node = fmt::format("n{:03}", 5 + random.below(4)),
                                               what = random.below(4)](Simulation& s) {
                if (what == 0)
                    (void)s.command({.what = SetNode{node, NodeState::checking}, .actor = Actor::token("admin")});
                if (what == 1)
                    (void)s.command({.what = CheckNode{node, HealthLevel::full}, .actor = Actor::token("admin")});
                if (what == 2)
                    (void)s.command({.what = SetNode{node, NodeState::draining}, .actor = Actor::token("admin")});
                if (what == 3)
                    (void)s.command({.what = SetNode{node, NodeState::ready}, .actor = Actor::token("admin")});
            });
        std::map<std::string, std::string> expected;
        for (int i = 0; i < 150; ++i) {
            RunSpec spec =
                simple_run(fmt::format("job{:03}", i), static_cast<std::int64_t>(600 + random.below(14'000)));
            spec.ranks = static_cast<int>(1 + random.below(5));
            spec.per_rank.gpus = static_cast<int>(1 + random.below(4));
            if (random.below(2) == 0) spec.nodes = std::min(spec.ranks, 3);
            if (spec.nodes > 0) spec.ranks = spec.nodes;
            spec.checkpoint.folder = "/ck/" + spec.name;
            sim.submit_at(random.uniform() * kMonth * 0.95, spec);
            expected[spec.name] = "succeeded ok";
        }
        ASSERT_TRUE(sim.run_until_done(2 * kMonth)) << sim.replay_command("SimHealth.*") << "\n" << sim.unfinished();
        ASSERT_EQ(sim.outcomes(), expected) << sim.replay_command("SimHealth.*");
        ASSERT_THAT(sim.problems(), IsEmpty()) << sim.replay_command("SimHealth.*");
        checks += sim.checks();
        wide += sim.wide_gangs();
        kills += sim.kills();
        for (const auto& [name, node] : sim.state().nodes) {
            suspects += node.cause == Cause::node_lemon ? 1 : 0;
            if (!node.health) continue;
            quarantined += node.state == NodeState::quarantined ? 1 : 0;
            waited += node.health->blames.size();
        }
    }
    if (!all_seeds()) return;
    EXPECT_GT(checks, 1000U);
    EXPECT_GT(wide, 200U);
    EXPECT_GT(kills, 6U);
    EXPECT_GT(suspects, 4U) << "the lemon is found";
    EXPECT_GT(waited, 10U);
}

// The same seed gives the same month, or a failure could not be looked at.
TEST(SimHealth, AMonthIsReplayedBySeed) {
    std::vector<std::string> digests;
    for (int i = 0; i < 2; ++i) {
        SimulationOptions options{.seed = 5, .faults = Faults::common(), .nodes = make_nodes(4, 4)};
        options.health_gate = HealthLevel::quick;
        Simulation sim(options);
        sim.at(100, [](Simulation& s) { s.driver().make_slow("n002", true); });
        for (const Planned& run : mixed_runs(5, 10, 600, 300)) sim.submit_at(run.at_s, run.spec);
        ASSERT_TRUE(sim.run_until_done(86400)) << sim.unfinished();
        EXPECT_THAT(sim.problems(), IsEmpty());
        digests.push_back(digest(sim.state()));
    }
    EXPECT_EQ(digests[0], digests[1]);
}

}  // namespace
}  // namespace stoker::sim

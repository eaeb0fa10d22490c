// Nothing acknowledged is lost, nothing runs twice, nothing is left behind: through faults, restarts and kill -9.
#include <gmock/gmock.h>

#include "scenarios.h"
#include "seeds.h"
#include "simulation.h"

namespace stoker::sim {
namespace {

using testing::IsEmpty;

std::map<std::string, std::string> expected(const std::vector<Planned>& runs) {
    std::map<std::string, std::string> all;
    for (const Planned& run : runs) all.insert(run.outcomes.begin(), run.outcomes.end());
    return all;
}

// Faults of every kind and a few kills: each run ends as its program decides.
TEST(SimRecovery, RunsEndAsTheyMustUnderFaultsAndKills) {
    std::uint64_t kills = 0, records = 0, launches = 0, attempts = 0;
    std::map<std::string_view, int> causes;
    for (const std::uint64_t seed : seeds(200)) {
        SplitMix random(seed);
        SimulationOptions options{.seed = seed, .faults = Faults::common(), .snapshot_every = 40};
        if (seed % 2 == 0) options.snapshot_piece_bytes = 2000;
        for (int i = 0; i < 4; ++i) options.kill_at.insert(2 + random.below(150));
        Simulation sim(options);
        const auto runs = mixed_runs(seed, 8, 600, 300);
        for (const Planned& run : runs) sim.submit_at(run.at_s, run.spec);
        ASSERT_TRUE(sim.run_until_done(5 * 86400.0)) << sim.replay_command("SimRecovery.RunsEnd*") << "\n"
                                                     << sim.unfinished();
        ASSERT_EQ(sim.outcomes(), expected(runs)) << sim.replay_command("SimRecovery.RunsEnd*");
        ASSERT_THAT(sim.problems(), IsEmpty()) << sim.replay_command("SimRecovery.RunsEnd*");
        kills += sim.kills();
        records += sim.records();
        launches += sim.driver().launches();
        for (const auto& [id, run] : sim.state().runs) {
            attempts += run.attempts.size();
            for (const Attempt& attempt : run.attempts) ++causes[to_string(attempt.cause)];
        }
    }
    // A simulation without faults in it would show nothing.
    if (!all_seeds()) return;
    EXPECT_GT(kills, 200U);
    EXPECT_GT(attempts, launches / 2);
    for (const char* cause : {"device_fault", "evicted", "node_lost", "platform", "user_error", "timeout", "lease"})
        EXPECT_GT(causes[cause], 0) << cause;
}

// An engine that queues and chooses the nodes: accepts and lets wait, loses what it accepted, starts a part of a gang,
// forgets how things ended. With the usual faults and kills on top, each run ends as its program decides; nothing is
// lost, counted while it waited, or left.
TEST(SimRecovery, RunsEndAsTheyMustOnAnEngineThatQueues) {
    FakeDriver::Counts counts;
    std::uint64_t kills = 0;
    for (const std::uint64_t seed : seeds(100)) {
        SplitMix random(seed);
        SimulationOptions options{.seed = seed, .faults = Faults::queueing(), .snapshot_every = 40};
        if (seed % 2 == 0) options.snapshot_piece_bytes = 2000;
        for (int i = 0; i < 4; ++i) options.kill_at.insert(2 + random.below(150));
        Simulation sim(options);
        auto runs = mixed_runs(seed, 8, 600, 300);
        for (const Planned& run : runs) sim.submit_at(run.at_s, run.spec);
        // Somebody who thinks better of it while it waits there, or later; asked until it is acknowledged.
        RunSpec regretted = simple_run("regretted", 100'000'000);
        regretted.ranks = 2;
        sim.submit_at(100, regretted);
        for (int i = 0; i < 20; ++i)
            sim.at(130 + 300 * random.uniform() + 300 * i, [](Simulation& s) {
                if (s.run(8) && !is_terminal(s.state().find(s.run(8))->state))
                    (void)s.command({.what = CancelRun{s.run(8)}});
            });
        // Three attempts that faults took down in a row look like the run's own doing, and wait for somebody who looks.
        for (int i = 1; i <= 48; ++i)
            sim.at(3600.0 * i, [](Simulation& s) {
                std::vector<RunId> held;
                for (const auto& [id, run] : s.state().runs)
                    if (run.held) held.push_back(id);
                for (const RunId id : held) (void)s.command({.what = HoldRun{id, false}});
            });
        auto outcomes = expected(runs);
        outcomes["regretted"] = "cancelled cancelled";
        const char* const test = "SimRecovery.*EngineThatQueues";
        ASSERT_TRUE(sim.run_until_done(10 * 86400.0)) << sim.replay_command(test) << "\n" << sim.unfinished();
        ASSERT_EQ(sim.outcomes(), outcomes) << sim.replay_command(test);
        ASSERT_THAT(sim.problems(), IsEmpty()) << sim.replay_command(test);
        kills += sim.kills();
        counts.waited += sim.driver().counts().waited;
        counts.parts += sim.driver().counts().parts;
        counts.lost += sim.driver().counts().lost;
        counts.forgotten += sim.driver().counts().forgotten;
    }
    if (!all_seeds()) return;
    EXPECT_GT(kills, 100U);
    EXPECT_GT(counts.waited, 1000U);
    for (const std::size_t each : {counts.parts, counts.lost, counts.forgotten}) EXPECT_GT(each, 20U);
}

// What people do meanwhile: evictions, holds, cancellations, drained nodes, and something of ours that nobody knows.
TEST(SimRecovery, PeopleInterfereAndNothingIsLeftBehind) {
    for (const std::uint64_t seed : seeds(100)) {
        SplitMix random(seed);
        SimulationOptions options{.seed = seed, .faults = Faults::common(), .snapshot_every = 25};
        for (int i = 0; i < 3; ++i) options.kill_at.insert(2 + random.below(120));
        Simulation sim(options);
        RunSpec endless = simple_run("endless", 100'000'000);
        endless.ranks = 3;
        endless.per_rank.gpus = 1;
        sim.submit_at(1, endless);
        auto expected_states = expected({});
        for (int i = 0; i < 6; ++i) {
            RunSpec spec = simple_run("r" + std::to_string(i), static_cast<std::int64_t>(60 + random.below(600)));
            spec.ranks = static_cast<int>(1 + random.below(4));
            spec.per_rank.gpus = static_cast<int>(random.below(3));
            spec.checkpoint.folder = "/ck";
            sim.submit_at(random.uniform() * 300, spec);
            expected_states[spec.name] = "succeeded ok";
        }
        expected_states["endless"] = "cancelled cancelled";
        for (int i = 0; i < 4; ++i)
            sim.at(random.uniform() * 900, [i](Simulation& s) {
                const RunId run = s.run(static_cast<std::size_t>(1 + i));
                if (run) (void)s.command({.what = EvictRun{run, 20}});
            });
        sim.at(100, [](Simulation& s) { (void)s.command({.what = SetNode{"n001", NodeState::draining}}); });
        sim.at(400, [](Simulation& s) { (void)s.command({.what = SetNode{"n001", NodeState::ready}}); });
        sim.at(250, [](Simulation& s) { s.driver().give_notice("n002", 60); });
        sim.at(275, [](Simulation& s) { s.driver().take_notice_back("n002"); });
        sim.at(50, [](Simulation& s) { (void)s.command({.what = HoldRun{s.run(3), true}}); });
        sim.at(500, [](Simulation& s) { (void)s.command({.what = HoldRun{s.run(3), false}}); });
        sim.at(30, [](Simulation& s) { s.driver().plant({.site = "sim22", .seq = 7'777'777}); });
        // Somebody who thinks better of it at once: the cancellation may overtake the launch.
        RunSpec regretted = endless;
        regretted.name = "regretted";
        regretted.ranks = 1;
        expected_states["regretted"] = "cancelled cancelled";
        sim.submit_at(700, regretted);
        for (int i = 0; i < 20; ++i)
            sim.at(700.2 + random.uniform() * 2 + i * 60, [](Simulation& s) {
                if (s.run(7) && !is_terminal(s.state().find(s.run(7))->state))
                    (void)s.command({.what = CancelRun{s.run(7)}});
            });
        // Like a person who sees no answer: again until it is acknowledged. Each may meet the server's death.
        for (int i = 0; i < 20; ++i) {
            const double at_s = 3000 + 60 * i;
            sim.at(at_s, [](Simulation& s) {
                if (s.run(0) && !is_terminal(s.state().find(s.run(0))->state))
                    (void)s.command({.what = CancelRun{s.run(0)}});
            });
            sim.at(at_s + 1, [](Simulation& s) {
                if (s.run(3) && s.state().find(s.run(3))->held) (void)s.command({.what = HoldRun{s.run(3), false}});
            });
            sim.at(at_s + 2, [](Simulation& s) {
                if (s.state().nodes.at("n001").state == NodeState::draining)
                    (void)s.command({.what = SetNode{"n001", NodeState::ready}});
            });
        }
        ASSERT_TRUE(sim.run_until_done(5 * 86400.0)) << sim.replay_command("SimRecovery.People*") << "\n"
                                                     << sim.unfinished();
        ASSERT_EQ(sim.outcomes(), expected_states) << sim.replay_command("SimRecovery.People*");
        // The stranger goes after its grace, which a run of an hour leaves time for.
        ASSERT_TRUE(sim.settle_for(3600)) << sim.replay_command("SimRecovery.People*");
        ASSERT_THAT(sim.problems(), IsEmpty()) << sim.replay_command("SimRecovery.People*");
    }
}

// kill -9 at any write of the journal: the same final states as without. bench_kills does a thousand of them.
TEST(SimRecovery, AKillAtAnyWriteChangesNoFinalState) {
    const std::uint64_t seed = seeds(1)[0];
    const auto runs = mixed_runs(seed, 12, 600, 200);
    const auto play = [&](std::set<std::uint64_t> kill_at) {
        auto sim = std::make_unique<Simulation>(SimulationOptions{
            .seed = seed, .faults = Faults::common(), .kill_at = std::move(kill_at), .snapshot_every = 50});
        for (const Planned& run : runs) sim->submit_at(run.at_s, run.spec);
        EXPECT_TRUE(sim->run_until_done(5 * 86400.0));
        return sim;
    };
    const std::uint64_t commits = play({})->commits();
    for (std::uint64_t at = 2; at < commits; at += 2 * seed_share()) {
        const auto sim = play({at});
        ASSERT_EQ(sim->kills(), 1U);
        ASSERT_EQ(sim->outcomes(), expected(runs)) << "killed at commit " << at << ", seed " << seed;
        ASSERT_THAT(sim->problems(), IsEmpty()) << "killed at commit " << at << ", seed " << seed;
    }
}

// Even when it dies again and again, before it has got anywhere.
TEST(SimRecovery, ManyKillsInARow) {
    for (const std::uint64_t seed : seeds(10)) {
        SplitMix random(seed);
        SimulationOptions options{.seed = seed, .faults = Faults::common(), .snapshot_every = 30};
        for (int i = 0; i < 80; ++i) options.kill_at.insert(2 + random.below(200));
        Simulation sim(options);
        const auto runs = mixed_runs(seed, 10, 600, 300);
        for (const Planned& run : runs) sim.submit_at(run.at_s, run.spec);
        ASSERT_TRUE(sim.run_until_done(5 * 86400.0)) << sim.replay_command("SimRecovery.ManyKills*") << "\n"
                                                     << sim.unfinished();
        ASSERT_EQ(sim.outcomes(), expected(runs)) << sim.replay_command("SimRecovery.ManyKills*");
        ASSERT_THAT(sim.problems(), IsEmpty()) << sim.replay_command("SimRecovery.ManyKills*");
        EXPECT_GT(sim.kills(), 20U);
    }
}

}  // namespace
}  // namespace stoker::sim

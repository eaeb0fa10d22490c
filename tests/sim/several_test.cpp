// One queue over two engines: nothing is lost, runs on both or is left behind, through faults, kills of the server and
// engines that are away for a while.
#include <gmock/gmock.h>

#include "scenarios.h"
#include "seeds.h"
#include "simulation.h"
#include "two_rooms.h"

namespace stoker::sim {
namespace {

using testing::IsEmpty;

// Some runs name an engine, most go where they start first.
TEST(SimSeveral, RunsEndAsTheyMustOnTwoEnginesOfWhichEachIsAwayForAWhile) {
    std::size_t near = 0, far = 0, unheard = 0, doubled = 0;
    std::uint64_t kills = 0, chosen = 0;
    const char* const test = "SimSeveral.*";
    for (const std::uint64_t seed : seeds(40)) {
        SplitMix random(seed);
        SimulationOptions options{.seed = seed, .faults = Faults::common(), .snapshot_every = 40};
        options.beside = BesideOptions{.nodes = make_nodes(4, 4)};
        for (int i = 0; i < 4; ++i) options.kill_at.insert(2 + random.below(150));
        Simulation sim(options);
        auto runs = mixed_runs(seed, 10, 600, 300);
        std::map<std::string, std::string> outcomes;
        for (Planned& run : runs) {
            const auto pick = random.below(6);
            if (pick < 2) run.spec.engine = pick == 0 ? kNear : kFar;
            if (pick == 2) run.spec.engine = "any";
            sim.submit_at(run.at_s, run.spec);
            outcomes.insert(run.outcomes.begin(), run.outcomes.end());
        }
        ASSERT_TRUE(sim.run_until_done(10 * 86400.0)) << sim.replay_command(test) << "\n" << sim.unfinished();
        ASSERT_EQ(sim.outcomes(), outcomes) << sim.replay_command(test);
        ASSERT_THAT(sim.problems(), IsEmpty()) << sim.replay_command(test);
        const auto& rooms = static_cast<const TwoRooms&>(sim.driver());
        near += rooms.launched_near();
        far += rooms.launched_far();
        unheard += rooms.calls_unheard();
        doubled += rooms.doubled();
        kills += sim.kills();
        for (const auto& [id, run] : sim.state().runs)
            for (const Attempt& attempt : run.attempts) {
                chosen += attempt.chosen.empty() ? 0 : 1;
                if (run.spec.engine && *run.spec.engine != "any") {
                    EXPECT_EQ(attempt.engine, *run.spec.engine) << id.text();
                }
            }
    }
    // A simulation in which nothing happens would show nothing.
    if (!all_seeds()) return;
    EXPECT_GT(kills, 60U);
    for (const std::size_t each : {near, far}) EXPECT_GT(each, 100U);
    EXPECT_GT(chosen, 100U);
    EXPECT_GT(unheard, 20U);
    EXPECT_GT(doubled, 20U);
}

}  // namespace
}  // namespace stoker::sim

#include "run/decide/schedule.h"

#include <gmock/gmock.h>

#include <bit>

#include "base/random.h"
#include "run/decide/testing.h"

namespace stoker {
namespace {

using run_testing::World;

TEST(Schedule, AGangStartsWholeOrNotAtAll) {
    World world;
    world.node("a", 4);
    world.node("b", 4);
    const RunId first = world.submit(World::spec(3, 2));
    const RunId second = world.submit(World::spec(2, 2));
    const Decisions decisions = world.pass();
    ASSERT_TRUE(world.starts(decisions, first));
    EXPECT_EQ(decisions.admit[0].places.size(), 3U);
    EXPECT_EQ(world.waits(decisions, second), Cause::capacity_busy);
}

TEST(Schedule, RanksAreSpreadEvenlyOverTheNodesAskedFor) {
    World world;
    for (const char* name : {"a", "b", "c"}) world.node(name, 8);
    RunSpec spec = World::spec(6, 1);
    spec.nodes = 3;
    world.submit(spec);
    const Decisions decisions = world.pass();
    ASSERT_EQ(decisions.admit.size(), 1U);
    std::map<std::string, int> count;
    for (const RankPlace& place : decisions.admit[0].places) ++count[place.node];
    EXPECT_EQ(count, (std::map<std::string, int>{{"a", 2}, {"b", 2}, {"c", 2}}));
    // Without that wish they stay together.
    world.submit(World::spec(5, 1));
    const Decisions again = world.pass();
    for (const RankPlace& place : again.admit[0].places) EXPECT_EQ(place.node, again.admit[0].places[0].node);
}

TEST(Schedule, ClassThenPriorityThenTimeThenIdDecide) {
    World world;
    world.node("a", 1);
    RunSpec spot = World::spec(1, 1), low = World::spec(1, 1), high = World::spec(1, 1);
    spot.run_class = RunClass::spot;
    high.priority = 1;
    const RunId s = world.submit(spot), l = world.submit(low), h = world.submit(high);
    std::vector<RunId> order;
    for (int i = 0; i < 3; ++i) {
        const Decisions decisions = world.pass();
        ASSERT_EQ(decisions.admit.size(), 1U);
        order.push_back(decisions.admit[0].run);
        world.end(order.back());
    }
    EXPECT_EQ(order, (std::vector<RunId>{h, l, s}));
    // An hour of waiting outweighs one step of priority, so nobody waits for ever.
    const RunId old = world.submit(low);
    world.now_us += 3601 * kSecondUs;
    world.submit(high);
    EXPECT_EQ(world.pass().admit[0].run, old);
}

// A gang must not be overtaken for ever by what fits beside it; what ends in time may use the gap.
TEST(Schedule, BackfillsOnlyWhatDoesNotDelayTheFirstThatWaits) {
    World world;
    world.node("a", 4);
    world.node("b", 4);
    RunSpec running = World::spec(1, 4);
    running.timeout_s = 1000;
    running.grace_s = 0;
    const RunId runs = world.submit(running);
    ASSERT_TRUE(world.starts(world.pass(), runs));
    const RunId gang = world.submit(World::spec(2, 4));
    RunSpec quick = World::spec(1, 2), slow = quick;
    quick.timeout_s = 900;
    slow.timeout_s = 1100;
    quick.grace_s = slow.grace_s = 0;
    const RunId too_long = world.submit(slow), in_time = world.submit(quick), endless = world.submit(World::spec(1, 1));
    const RunId no_gpu = world.submit(World::spec(1, 0));
    const Decisions decisions = world.pass();
    ASSERT_TRUE(decisions.reservation);
    EXPECT_EQ(decisions.reservation->run, gang);
    EXPECT_EQ(decisions.reservation->at_us, world.now_us + 1000 * kSecondUs);
    EXPECT_EQ(world.waits(decisions, gang), Cause::capacity_busy);
    EXPECT_EQ(world.waits(decisions, too_long), Cause::order_behind);
    EXPECT_EQ(world.waits(decisions, endless), Cause::order_behind);
    EXPECT_TRUE(world.starts(decisions, in_time));
    EXPECT_TRUE(world.starts(decisions, no_gpu));
}

// A run that nothing can hold must not stop all others.
TEST(Schedule, WhatIsLargerThanTheFleetBlocksNobody) {
    World world;
    world.node("a", 2);
    const RunId huge = world.submit(World::spec(1, 4));
    RunSpec other = World::spec(1, 1);
    other.per_rank.gpu_model = "A100";
    const RunId elsewhere = world.submit(other);
    const RunId small = world.submit(World::spec(1, 1));
    const Decisions decisions = world.pass();
    EXPECT_EQ(world.waits(decisions, huge), Cause::capacity_none);
    EXPECT_EQ(world.waits(decisions, elsewhere), Cause::capacity_none);
    EXPECT_TRUE(world.starts(decisions, small));
}

TEST(Schedule, NothingStartsOnADrainedOrLostNodeOrWhileHeld) {
    World world;
    world.node("a", 2);
    const RunId run = world.submit(World::spec(1, 1));
    world.put(RunHeld{run, true});
    EXPECT_EQ(world.waits(schedule(world.state, world.now_us), run), Cause::held);
    world.put(RunHeld{run, false});
    world.put(NodeMoved{"a", NodeState::draining, Cause::held});
    EXPECT_EQ(world.waits(schedule(world.state, world.now_us), run), Cause::capacity_none);
    world.put(NodeMoved{"a", NodeState::ready, Cause::none});
    EXPECT_TRUE(world.starts(schedule(world.state, world.now_us), run));
}

// Whatever mix arrives: no device, core or byte is given twice, and the same state gives the same decisions.
TEST(Schedule, NeverGivesMoreThanThereIs) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        World world;
        SplitMix random(seed);
        for (int i = 0; i < 4; ++i) world.node("n" + std::to_string(i), static_cast<int>(random.below(9)), 16'000, 64);
        for (int round = 0; round < 30; ++round) {
            world.now_us += kSecondUs;
            for (int i = 0; i < 3; ++i) {
                const bool share = random.below(2) == 0;
                RunSpec spec =
                    World::spec(static_cast<int>(1 + random.below(5)), share ? 1 : static_cast<int>(random.below(5)),
                                share ? static_cast<int>(1 + random.below(1000)) : 1000);
                spec.per_rank.cpu_milli = static_cast<std::int64_t>(random.below(6000));
                spec.per_rank.memory_bytes = static_cast<std::int64_t>(random.below(20)) << 30;
                if (random.below(2) == 0) spec.timeout_s = static_cast<std::int64_t>(1 + random.below(20));
                if (random.below(4) == 0) spec.nodes = spec.ranks;
                world.submit(spec);
            }
            const Decisions twice = schedule(world.state, world.now_us);
            const Decisions decisions = world.pass();
            ASSERT_EQ(twice.admit.size(), decisions.admit.size());
            for (std::size_t i = 0; i < twice.admit.size(); ++i)
                ASSERT_EQ(twice.admit[i].places, decisions.admit[i].places);
            std::map<std::string, std::int64_t> used;
            for (const RunId id : world.state.live) {
                const stoker::Run& run = *world.state.find(id);
                const RankNeeds& needs = run.spec.per_rank;
                for (const RankPlace& place : run.attempts.back().places) {
                    used[place.node + " cpu"] += needs.cpu_milli;
                    used[place.node + " memory"] += needs.memory_bytes;
                    ASSERT_EQ(std::popcount(place.devices), needs.gpus);
                    for (int g = 0; g < 16; ++g)
                        if ((place.devices >> g & 1) != 0)
                            used[place.node + " g" + std::to_string(g)] += needs.gpu_milli;
                }
            }
            for (const auto& [what, amount] : used) {
                const bool cpu = what.ends_with("cpu"), memory = what.ends_with("memory");
                ASSERT_LE(amount, cpu ? 16'000 : memory ? std::int64_t{64} << 30 : 1000) << what << " seed " << seed;
            }
            while (world.state.live.size() > 4) {
                auto at = world.state.live.begin();
                std::advance(at, static_cast<std::ptrdiff_t>(random.below(world.state.live.size())));
                world.end(*at);
            }
        }
    }
}

// However many small runs arrive behind it, the gang that waits first starts when its reservation says, or earlier.
TEST(Schedule, AReservationIsKept) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        World world;
        SplitMix random(seed);
        world.node("a", 4);
        world.node("b", 4);
        std::map<RunId, std::int64_t> promised, ends;
        for (int second = 0; second < 400; ++second) {
            world.now_us += kSecondUs;
            for (auto at = ends.begin(); at != ends.end();) {
                if (at->second > world.now_us) {
                    ++at;
                    continue;
                }
                world.end(at->first);
                at = ends.erase(at);
            }
            if (random.below(2) == 0) {
                RunSpec spec = World::spec(1, static_cast<int>(1 + random.below(3)));
                if (random.below(8) == 0) spec = World::spec(2, static_cast<int>(3 + random.below(2)));
                spec.timeout_s = static_cast<std::int64_t>(2 + random.below(30));
                spec.grace_s = 0;
                world.submit(spec);
            }
            const Decisions decisions = world.pass();
            for (const Admission& admission : decisions.admit) {
                const stoker::Run& run = *world.state.find(admission.run);
                // Some end early; none runs longer than it may.
                ends[run.id] = world.now_us + static_cast<std::int64_t>(
                                                  1 + random.below(static_cast<std::uint64_t>(run.spec.timeout_s))) *
                                                  kSecondUs;
                if (const auto at = promised.find(run.id); at != promised.end()) {
                    ASSERT_LE(world.now_us, at->second) << run.id.text() << " seed " << seed;
                }
            }
            if (decisions.reservation) {
                ASSERT_GT(decisions.reservation->at_us, 0);
                promised.emplace(decisions.reservation->run, decisions.reservation->at_us + kSecondUs);
            }
        }
        ASSERT_GT(promised.size(), 2U);
    }
}

// Also when nothing that runs has an end that is known: the oldest work must free the places in the end.
TEST(Schedule, NoGangStarvesBehindEndlessSmallRuns) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        World world;
        SplitMix random(seed);
        world.node("a", 4);
        world.node("b", 4);
        std::map<RunId, std::int64_t> ends;
        RunId gang;
        std::int64_t asked = 0, began = 0;
        for (int second = 0; second < 600 && began == 0; ++second) {
            world.now_us += kSecondUs;
            for (auto at = ends.begin(); at != ends.end();) {
                if (at->second > world.now_us) {
                    ++at;
                    continue;
                }
                world.end(at->first);
                at = ends.erase(at);
            }
            world.submit(World::spec(1, static_cast<int>(1 + random.below(2))));
            if (second == 50) {
                gang = world.submit(World::spec(2, 4));
                asked = world.now_us;
            }
            for (const Admission& admission : world.pass().admit) {
                if (admission.run == gang) began = world.now_us;
                ends[admission.run] = world.now_us + static_cast<std::int64_t>(5 + random.below(20)) * kSecondUs;
            }
        }
        ASSERT_NE(began, 0) << seed;
        // Those before it in the queue, at most 50 of up to 25 s on 8 GPUs, and then what runs.
        EXPECT_LE(began - asked, 400 * kSecondUs) << seed;
    }
}

// What is offered to start a run is asked of a shorter way through the same pass; it may never answer otherwise.
TEST(Schedule, ATrialAnswersLikeAPass) {
    int yes = 0, no = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        World world;
        SplitMix random(seed);
        for (const char* name : {"a", "b", "c"}) world.node(name, 4);
        std::vector<RunId> runs;
        for (int i = 0; i < 20; ++i) {
            RunSpec spec = World::spec(static_cast<int>(1 + random.below(4)), static_cast<int>(1 + random.below(4)));
            if (random.below(2) == 0) spec.timeout_s = static_cast<std::int64_t>(60 + random.below(600));
            runs.push_back(world.submit(spec));
            if (i == 6) world.pass();
        }
        for (const RunId run : runs) {
            if (world.state.find(run)->state != RunState::queued) continue;
            const auto starts_with = start_trial(world.state, run, world.now_us);
            for (int i = 0; i < 5; ++i) {
                const WhatIf what_if{.run = run,
                                     .ranks = static_cast<int>(1 + random.below(4)),
                                     .nodes = static_cast<int>(random.below(3)),
                                     .needs = World::spec(1, static_cast<int>(1 + random.below(4))).per_rank};
                const bool starts = world.starts(schedule(world.state, world.now_us, {}, &what_if), run);
                ASSERT_EQ(starts_with(what_if), starts) << run.text() << " seed " << seed;
                ++(starts ? yes : no);
            }
        }
    }
    EXPECT_GT(yes, 50);
    EXPECT_GT(no, 50);
}

}  // namespace
}  // namespace stoker

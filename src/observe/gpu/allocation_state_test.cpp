#include "observe/gpu/allocation_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "observe/gpu/allocation_generator.h"

namespace stoker {
namespace {

// Sixteen kinds of phases: idle and stalled are said where they are, and nowhere else.
TEST(AllocationState, TellsIdleAndStalledFromAllElse) {
    std::map<AllocationState, DetectorScore> scores;
    for (const Phase& phase : allocation_phases())
        for (std::uint64_t seed = 1; seed <= 10; ++seed) {
            PhaseGenerator generator(phase.name, seed);
            AllocationWatch watch({}, generator.floor_w());
            AllocationVerdict last;
            for (int second = 0; second <= 310; second += 2) last = watch.look(generator.at(second));
            ++scores[last.state].said;
            ++scores[phase.label].of;
            if (last.state == phase.label) ++scores[phase.label].right;
            EXPECT_FALSE(last.evidence.empty());
        }
    for (const AllocationState state : {AllocationState::allocated_idle, AllocationState::stalled}) {
        EXPECT_GE(scores[state].precision(), 0.98) << to_string(state);
        EXPECT_GE(scores[state].recall(), 0.95) << to_string(state);
    }
}

// A missing signal is no idleness: the same board without its power, or before it is known what an idle one draws.
TEST(AllocationState, IsUnknownWhereASignalIsMissing) {
    for (const bool power : {false, true}) {
        PhaseGenerator generator("idle", 3);
        AllocationWatch watch({}, power ? std::nullopt : std::optional(generator.floor_w()));
        AllocationVerdict last;
        for (int second = 0; second <= 310; ++second) {
            AllocationSample sample = generator.at(second);
            if (!power && second == 100) sample.power_w.reset();
            last = watch.look(sample);
        }
        EXPECT_EQ(last.state, AllocationState::unknown);
    }
}

// A board that was just taken is told from the first figures on; a gap later makes a minute unknown.
TEST(AllocationState, IsToldFromItsFirstFiguresOn) {
    AllocationWatch watch({}, 70.0);
    const auto at = [&](double second, bool told) {
        AllocationSample sample{.at_s = second};
        sample.held = true;
        if (told) sample.utilization = 0.98, sample.sm_active = 0.85, sample.tensor_active = 0.3, sample.power_w = 500;
        return watch.look(sample).state;
    };
    for (int second = 0; second < 4; ++second) EXPECT_EQ(at(second, false), AllocationState::unknown);
    EXPECT_EQ(at(4, true), AllocationState::busy);
    for (int second = 5; second < 30; ++second) at(second, true);
    EXPECT_EQ(at(30, false), AllocationState::unknown);
    EXPECT_EQ(at(31, true), AllocationState::unknown);
}

// The power of an idle board is learned while nobody holds it, from ten minutes of it.
TEST(AllocationState, LearnsTheFloorWhileNobodyHoldsIt) {
    AllocationWatch watch;
    for (int second = 0; second < 590; second += 5) watch.look({.at_s = static_cast<double>(second), .power_w = 70.0});
    EXPECT_FALSE(watch.idle_floor_w());
    for (int second = 590; second < 700; second += 5)
        watch.look({.at_s = static_cast<double>(second), .power_w = 70.0});
    EXPECT_EQ(watch.idle_floor_w(), 70.0);
}

// A heartbeat overrides what looks like a hung collective.
TEST(AllocationState, BelievesAHeartbeat) {
    PhaseGenerator generator("hung_collective", 5);
    AllocationWatch watch({}, generator.floor_w());
    AllocationVerdict last;
    for (int second = 0; second <= 310; ++second) {
        AllocationSample sample = generator.at(second);
        sample.progress = second % 100 == 0;
        last = watch.look(sample);
    }
    EXPECT_NE(last.state, AllocationState::stalled);
}

}  // namespace
}  // namespace stoker

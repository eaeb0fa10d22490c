#include "run/gang.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "run/testing.h"

namespace stoker {
namespace {

// "It does not fit" is told to people: it may not be an accident of the order in which nodes were tried.
TEST(Gang, FitsExactlyWhenTheNodesTogetherHaveRoom) {
    SplitMix random(3);
    for (int i = 0; i < 2000; ++i) {
        run_testing::World world;
        const int nodes = static_cast<int>(1 + random.below(5));
        for (int n = 0; n < nodes; ++n)
            world.node("n" + std::to_string(n), static_cast<int>(random.below(9)),
                       static_cast<std::int64_t>(random.below(16)) * 1000, 64);
        const FleetView view = view_of(world.state);
        Placer placer(view.fleet, PlacementPolicy::best_fit, {}, 0);
        const bool share = random.below(2) == 0;
        Gang gang{.shape = {.cpu_milli = static_cast<std::int64_t>(random.below(4)) * 500,
                            .memory_mib = 1,
                            .gpus = share ? 1 : static_cast<int>(random.below(4)),
                            .gpu_milli = share ? static_cast<int>(100 + random.below(900)) : 1000},
                  .ranks = static_cast<int>(1 + random.below(12))};
        if (gang.shape.gpus == 0) gang.shape.gpu_milli = 0;
        if (random.below(3) == 0) {
            gang.nodes = static_cast<int>(1 + random.below(3));
            gang.ranks = gang.nodes * static_cast<int>(1 + random.below(3));
        }
        const int per_node = gang.nodes > 0 ? gang.ranks / gang.nodes : gang.ranks;
        int room = 0, wide = 0;
        for (int n = 0; n < nodes; ++n) {
            const int takes = how_many(placer.room(n), gang.shape, per_node);
            room += takes;
            wide += takes >= per_node ? 1 : 0;
        }
        const bool fits = gang.nodes > 0 ? wide >= gang.nodes : room >= gang.ranks;
        const auto before = placer.room(0);
        const auto placements = place_gang(placer, static_cast<std::size_t>(nodes), gang);
        ASSERT_EQ(!placements.empty(), fits);
        ASSERT_EQ(placements.size(), fits ? static_cast<std::size_t>(gang.ranks) : 0);
        for (int n = 0; n < nodes; ++n) {
            ASSERT_GE(placer.room(n).cpu_milli, 0);
            for (const std::int16_t milli : placer.room(n).gpu_milli) ASSERT_GE(milli, 0);
        }
        release_gang(placer, placements, gang.shape);
        ASSERT_EQ(placer.room(0).gpu_milli, before.gpu_milli);
        ASSERT_EQ(placer.room(0).cpu_milli, before.cpu_milli);
    }
}

// A byte more than a MiB needs the next MiB: rounding down would over-commit.
TEST(Gang, RoundsNeedsUpAndNodesDown) {
    run_testing::World world;
    world.node("n", 1);
    const FleetView view = view_of(world.state);
    EXPECT_EQ(view.shape_of({.memory_bytes = (1 << 20) + 1})->memory_mib, 2);
    EXPECT_FALSE(view.shape_of({.gpus = 1, .gpu_model = "B200"}));
}

}  // namespace
}  // namespace stoker

#include "run/decide/gang.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <set>

#include "base/random.h"
#include "run/decide/testing.h"

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

// A gang that needs fast links between its nodes: with `require` it is never spread over two switches, and what is
// preferred is the best that there is, which a search over all sets of switches confirms.
TEST(Gang, IsPlacedOnTheFewestSwitches) {
    SplitMix random(11);
    int spread = 0, refused = 0;
    for (int i = 0; i < 3000; ++i) {
        run_testing::World world;
        const int nodes = static_cast<int>(1 + random.below(8)), switches = static_cast<int>(1 + random.below(4));
        std::vector<int> hangs_on;
        for (int n = 0; n < nodes; ++n) {
            world.node("n" + std::to_string(n), static_cast<int>(random.below(5)), 64'000, 64);
            // One in eight of which nothing is known: alone.
            const bool unknown = random.below(8) == 0;
            hangs_on.push_back(unknown ? 100 + n
                                       : static_cast<int>(random.below(static_cast<std::uint64_t>(switches))));
            const std::string leaf = std::to_string(hangs_on.back());
            if (!unknown) world.state.nodes.at("n" + std::to_string(n)).info.topology = "row/leaf-" + leaf;
        }
        const FleetView view = view_of(world.state);
        Placer placer(view.fleet, PlacementPolicy::best_fit, {}, 0);
        Gang gang{.shape = {.cpu_milli = 100, .memory_mib = 1, .gpus = 1, .gpu_milli = 1000},
                  .ranks = static_cast<int>(2 + random.below(8)),
                  .one_switch = random.below(3) == 0,
                  .topology = &view.topology};
        if (random.below(2) == 0) {
            gang.nodes = static_cast<int>(1 + random.below(4));
            gang.ranks = gang.nodes * static_cast<int>(1 + random.below(3));
        }
        if (gang.ranks == 1) continue;
        // The fewest switches whose nodes together have room, by trying all sets of them.
        std::map<int, int> room_of;
        for (int n = 0; n < nodes; ++n) {
            const int takes =
                how_many(placer.room(n), gang.shape, gang.nodes > 0 ? gang.ranks / gang.nodes : gang.ranks);
            room_of[hangs_on[static_cast<std::size_t>(n)]] += gang.nodes == 0                    ? takes
                                                              : takes >= gang.ranks / gang.nodes ? 1
                                                                                                 : 0;
        }
        const std::vector<std::pair<int, int>> rooms(room_of.begin(), room_of.end());
        int best = 1000;
        for (unsigned set = 1; set < 1U << rooms.size(); ++set) {
            int room = 0;
            for (std::size_t s = 0; s < rooms.size(); ++s)
                if ((set >> s & 1) != 0) room += rooms[s].second;
            if (room >= (gang.nodes > 0 ? gang.nodes : gang.ranks)) best = std::min(best, std::popcount(set));
        }
        // A node without a known switch is near itself.
        const bool known = !view.topology.levels.empty();
        const bool fits = best < 1000 && (!gang.one_switch || best == 1);
        const auto placements = place_gang(placer, static_cast<std::size_t>(nodes), gang);
        std::set<int> used;
        for (const Placement& each : placements) used.insert(hangs_on[static_cast<std::size_t>(each.node)]);
        ASSERT_EQ(!placements.empty(), fits) << "case " << i;
        if (!fits) {
            ++refused;
            continue;
        }
        ASSERT_EQ(placements.size(), static_cast<std::size_t>(gang.ranks));
        if (gang.one_switch) {
            ASSERT_EQ(used.size(), 1U);
        }
        if (known) {
            ASSERT_EQ(used.size(), static_cast<std::size_t>(best)) << "case " << i;
        }
        spread += used.size() > 1;
        for (int n = 0; n < nodes; ++n)
            for (const std::int16_t milli : placer.room(n).gpu_milli) ASSERT_GE(milli, 0);
    }
    EXPECT_GT(spread, 100);
    EXPECT_GT(refused, 100);
}

// Two switches of one row are nearer to each other than two of different rows.
TEST(Gang, OuterLevelsCountWhenNoSwitchHasRoom) {
    run_testing::World world;
    for (const char* path : {"row-1/leaf-1", "row-2/leaf-2", "row-2/leaf-3", "row-1/leaf-4", "row-1/leaf-5"}) {
        const std::string name = std::string("n-") + path[4] + path[11];
        world.node(name, path[4] == '1' ? 1 : 2);
        world.state.nodes.at(name).info.topology = path;
    }
    const FleetView view = view_of(world.state);
    Placer placer(view.fleet, PlacementPolicy::best_fit, {}, 0);
    Gang gang{.shape = {.gpus = 1, .gpu_milli = 1000}, .ranks = 3, .topology = &view.topology};
    std::set<std::string> rows;
    const auto first = place_gang(placer, 5, gang);
    for (const Placement& each : first) rows.insert(view.place_of(each).node.substr(0, 3));
    EXPECT_EQ(rows, std::set<std::string>{"n-2"});  // two switches, where row 1 would need three
    gang.one_switch = true;
    release_gang(placer, first, gang.shape);
    EXPECT_TRUE(place_gang(placer, 5, gang).empty());
    gang.ranks = 2;
    EXPECT_EQ(place_gang(placer, 5, gang).size(), 2U);
}

// A byte more than a MiB needs the next MiB: rounding down would over-commit.
TEST(Gang, RoundsNeedsUpAndNodesDown) {
    run_testing::World world;
    world.node("n", 1);
    const FleetView view = view_of(world.state);
    EXPECT_EQ(view.shape_of({.memory_bytes = (1 << 20) + 1})->memory_mib, 2);
    EXPECT_FALSE(view.shape_of({.gpus = 1, .gpu_model = "B200"}));
}

// A plan says A100-SXM-80GB, a script a100, and the driver NVIDIA A100-SXM4-80GB: the node that has it takes them all.
TEST(Gang, AGpuIsMeantByAnyOfItsNames) {
    run_testing::World world;
    for (const char* name : {"a", "b"}) world.node(name, 1);
    world.state.nodes.at("a").info.devices[0].model = "NVIDIA A100-SXM4-80GB";
    world.state.nodes.at("b").info.devices[0].model = "NVIDIA H100 80GB HBM3";
    const FleetView view = view_of(world.state);
    const auto models = [&](const char* asked) { return view.shape_of({.gpus = 1, .gpu_model = asked})->models; };
    for (const char* asked : {"a100", "A100-SXM-80GB", "A100-SXM4-80GB"})
        EXPECT_EQ(models(asked), models("NVIDIA A100-SXM4-80GB")) << asked;
    EXPECT_NE(models("H100-SXM"), models("a100"));
    EXPECT_FALSE(view.shape_of({.gpus = 1, .gpu_model = "A100-SXM-40GB"}));
}

}  // namespace
}  // namespace stoker

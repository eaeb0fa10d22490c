#include "run/decide/place.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

Fleet fleet_of(int nodes, int gpus) {
    Fleet fleet;
    fleet.models = {"A100"};
    for (int i = 0; i < nodes; ++i)
        fleet.nodes.push_back({.name = "node-" + std::to_string(i),
                               .cpu_milli = 96000,
                               .memory_mib = 786432,
                               .gpus = gpus,
                               .model = gpus > 0 ? 0 : -1});
    return fleet;
}

std::vector<TaskShape> mixed_tasks(std::uint64_t seed, int count) {
    SplitMix random(seed);
    std::vector<TaskShape> tasks;
    for (int i = 0; i < count; ++i) {
        TaskShape task{.cpu_milli = static_cast<std::int64_t>(1000 + random.below(16000)),
                       .memory_mib = static_cast<std::int64_t>(1024 + random.below(65536))};
        task.gpus = static_cast<int>(random.below(4));
        task.gpu_milli = task.gpus == 0 ? 0 : task.gpus == 1 ? 100 * static_cast<int>(1 + random.below(10)) : kWholeGpu;
        tasks.push_back(task);
    }
    return tasks;
}

// No policy may sell a device twice or send a task where it does not fit, in any mix of arrivals and ends; and after
// all have left, every node is as it was.
TEST(Placer, NeverOverbooksUnderAnyPolicy) {
    const Fleet fleet = fleet_of(20, 8);
    const std::vector<TaskShape> tasks = mixed_tasks(1, 3000);
    for (const PlacementPolicy policy : all_placement_policies()) {
        Placer placer(fleet, policy, typical_tasks(tasks, 0.95), 7);
        SplitMix random(9);
        std::vector<std::pair<TaskShape, Placement>> held;
        for (const TaskShape& task : tasks) {
            std::vector<NodeRoom> before;
            for (int i = 0; i < 20; ++i) before.push_back(placer.room(i));
            const Placement placement = placer.place(task);
            bool any = false;
            for (const NodeRoom& room : before) any = any || room.fits(task);
            ASSERT_EQ(static_cast<bool>(placement), any) << to_string(policy) << ": refused though a node had room";
            if (placement) {
                ASSERT_TRUE(before[static_cast<std::size_t>(placement.node)].fits(task)) << to_string(policy);
                ASSERT_EQ(__builtin_popcount(placement.devices), task.gpus);
                for (int i = 0; i < 8; ++i)
                    ASSERT_GE(placer.room(placement.node).gpu_milli[static_cast<std::size_t>(i)], 0);
                held.emplace_back(task, placement);
            }
            while (!held.empty() && random.below(3) == 0) {
                const std::size_t i = random.below(held.size());
                placer.release(held[i].second, held[i].first);
                held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
            }
        }
        for (const auto& [task, placement] : held) placer.release(placement, task);
        for (int i = 0; i < 20; ++i) {
            EXPECT_EQ(placer.room(i).gpu_left, 8000) << to_string(policy);
            EXPECT_EQ(placer.room(i).cpu_milli, 96000);
        }
    }
}

// The same snapshot, tasks and seed must give the same answer, or no decision could be replayed from the journal.
TEST(Placer, IsDeterministic) {
    const Fleet fleet = fleet_of(30, 4);
    const std::vector<TaskShape> tasks = mixed_tasks(2, 200);
    for (const PlacementPolicy policy : all_placement_policies()) {
        Placer a(fleet, policy, typical_tasks(tasks, 0.95), 5), b(fleet, policy, typical_tasks(tasks, 0.95), 5);
        for (const TaskShape& task : tasks) ASSERT_EQ(a.place(task), b.place(task)) << to_string(policy);
    }
}

// Remembered scores must be those that a fresh computation gives; a stale one would send a task to a full node.
TEST(Placer, RemembersNoStaleScore) {
    const Fleet fleet = fleet_of(6, 2);
    const std::vector<TaskShape> tasks = mixed_tasks(4, 60);
    for (const PlacementPolicy policy : all_placement_policies()) {
        if (policy == PlacementPolicy::random) continue;  // draws depend on how many came before
        Placer live(fleet, policy, typical_tasks(tasks, 0.95), 5);
        std::vector<TaskShape> placed;
        for (const TaskShape& task : tasks) {
            Placer fresh(fleet, policy, typical_tasks(tasks, 0.95), 5);
            for (const TaskShape& earlier : placed) fresh.place(earlier);
            ASSERT_EQ(live.place(task), fresh.place(task)) << to_string(policy);
            placed.push_back(task);
        }
    }
}

// What each policy is chosen for, on two nodes: one in use, one idle.
TEST(Placer, PoliciesDoWhatTheirNamesSay) {
    const Fleet fleet = fleet_of(2, 2);
    const TaskShape half{.cpu_milli = 4000, .gpus = 1, .gpu_milli = 500};
    const std::vector<TypicalTask> typical = {{.shape = {.cpu_milli = 4000, .gpus = 2, .gpu_milli = 1000}, .share = 1}};
    for (const PlacementPolicy policy : {PlacementPolicy::gpu_packing, PlacementPolicy::best_fit,
                                         PlacementPolicy::gpu_clustering, PlacementPolicy::fragmentation}) {
        Placer placer(fleet, policy, typical, 1);
        const Placement first = placer.place(half), second = placer.place(half);
        EXPECT_EQ(first, second) << to_string(policy) << ": the second half belongs on the same device";
    }
}

// A machine with more processors or memory than those of the published study, and all of it idle: work that fits must
// start there under every policy, not wait for ever.
TEST(Placer, LargeIdleNodesTakeWork) {
    for (const PlacementPolicy policy : all_placement_policies()) {
        Fleet fleet = fleet_of(1, 8);
        fleet.nodes[0].cpu_milli = 768'000;
        fleet.nodes[0].memory_mib = 6 << 20;
        for (const TaskShape& task : {TaskShape{.cpu_milli = 100}, TaskShape{.cpu_milli = 100, .gpus = 1},
                                      TaskShape{.cpu_milli = 768'000, .gpus = 8}}) {
            Placer placer(fleet, policy, {}, 1);
            EXPECT_TRUE(placer.place(task)) << to_string(policy);
        }
    }
}

TEST(Placer, NamesRoundTrip) {
    for (const PlacementPolicy policy : all_placement_policies())
        EXPECT_EQ(placement_policy(to_string(policy)), policy);
    EXPECT_FALSE(placement_policy("worst-fit"));
}

}  // namespace
}  // namespace stoker

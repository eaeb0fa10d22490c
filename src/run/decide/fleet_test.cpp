#include "run/decide/fleet.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace stoker {
namespace {

FleetNode node_with(int gpus) {
    return {.name = "n", .cpu_milli = 64000, .memory_mib = 262144, .gpus = gpus, .model = gpus > 0 ? 0 : -1};
}

// A GPU sold in thousandths must never be sold twice: whatever is taken and given back, no device goes below nothing or
// above whole, and the sum over devices is the node's.
TEST(NodeRoom, KeepsItsBooksUnderAnyOrderOfTasks) {
    SplitMix random(3);
    NodeRoom room = room_of(node_with(8));
    std::vector<std::pair<TaskShape, std::uint32_t>> held;
    for (int step = 0; step < 20000; ++step) {
        if (!held.empty() && random.below(2) == 0) {
            const std::size_t i = random.below(held.size());
            give_back(room, held[i].first, held[i].second);
            held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
        } else {
            TaskShape task{.cpu_milli = static_cast<std::int64_t>(random.below(16000)),
                           .memory_mib = static_cast<std::int64_t>(random.below(65536))};
            task.gpus = static_cast<int>(random.below(5));
            task.gpu_milli = task.gpus == 1 ? 1 + static_cast<int>(random.below(1000)) : kWholeGpu;
            if (!room.fits(task)) continue;
            const std::uint32_t devices = task.gpus == 0      ? 0
                                          : task.shares_gpu() ? 1U << tightest_device(room, task.gpu_milli)
                                                              : whole_devices(room, task.gpus);
            ASSERT_EQ(__builtin_popcount(devices), task.gpus);
            take(room, task, devices);
            held.emplace_back(task, devices);
        }
        int sum = 0;
        for (int i = 0; i < room.gpus; ++i) {
            ASSERT_GE(room.gpu_milli[static_cast<std::size_t>(i)], 0);
            ASSERT_LE(room.gpu_milli[static_cast<std::size_t>(i)], kWholeGpu);
            sum += room.gpu_milli[static_cast<std::size_t>(i)];
        }
        ASSERT_EQ(sum, room.gpu_left);
        ASSERT_GE(room.cpu_milli, 0);
        ASSERT_GE(room.memory_mib, 0);
    }
}

// Two halves on two devices are not a whole GPU: a task that needs one whole must not be told there is room.
TEST(NodeRoom, PartsDoNotAddUpToAWholeDevice) {
    NodeRoom room = room_of(node_with(2));
    const TaskShape half{.gpus = 1, .gpu_milli = 500};
    take(room, half, 1);
    take(room, half, 2);
    EXPECT_EQ(room.gpu_left, 1000);
    EXPECT_FALSE(room.fits({.gpus = 1, .gpu_milli = 1000}));
    EXPECT_TRUE(room.fits(half));
    EXPECT_FALSE(room.fits({.gpus = 1, .gpu_milli = 501}));
}

// A task that names GPU models runs on those only; one without a GPU runs anywhere.
TEST(NodeRoom, HonoursTheModelsAskedFor) {
    const NodeRoom gpu = room_of(node_with(1)), cpu = room_of(node_with(0));
    EXPECT_TRUE(gpu.fits({.gpus = 1, .gpu_milli = 1000, .models = 0b01}));
    EXPECT_FALSE(gpu.fits({.gpus = 1, .gpu_milli = 1000, .models = 0b10}));
    EXPECT_FALSE(cpu.fits({.gpus = 1, .gpu_milli = 10}));
    EXPECT_TRUE(cpu.fits({.cpu_milli = 64000}));
    EXPECT_FALSE(cpu.fits({.cpu_milli = 64001}));
}

TEST(TypicalTasks, TakesTheMostFrequentShapesUpToTheShare) {
    std::vector<TaskShape> tasks(90, TaskShape{.cpu_milli = 1000, .memory_mib = 5});
    tasks.insert(tasks.end(), 8, TaskShape{.gpus = 1, .gpu_milli = 1000});
    tasks.insert(tasks.end(), 2, TaskShape{.gpus = 2, .gpu_milli = 1000});
    const auto typical = typical_tasks(tasks, 0.95);
    ASSERT_EQ(typical.size(), 2U);
    EXPECT_DOUBLE_EQ(typical[0].share, 0.9);
    EXPECT_EQ(typical[1].shape.gpus, 1);
    EXPECT_TRUE(typical_tasks({}, 0.95).empty());
}

}  // namespace
}  // namespace stoker

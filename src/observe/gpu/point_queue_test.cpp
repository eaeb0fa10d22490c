#include "observe/gpu/point_queue.h"

#include <gmock/gmock.h>

namespace stoker {
namespace {

std::vector<GpuReading> boards(double util) {
    return {{.uuid = "GPU-0", .index = 0, .holders_told = true, .holders = {}, .values = {{"gpu_util", util}}},
            {.uuid = "MIG-1", .index = 0, .holders_told = true, .holders = {}, .values = {{"gpu_util", 1}}}};
}

// A server that is asked for a chart has means: a last value every ten seconds would miss what lies between.
TEST(GpuPointQueueTest, APointIsTheMeanSinceTheOneBefore) {
    GpuPointQueue queue(10);
    for (int second = 0; second <= 20; ++second) queue.add(boards(second < 5 ? 1.0 : 0.0), second);
    const auto points = queue.oldest(10, 25);
    ASSERT_EQ(points.size(), 2u);
    EXPECT_NEAR(points[0].boards[0].values.at("gpu_util"), 5.0 / 11, 1e-6) << "of the board, without its instance";
    EXPECT_EQ(points[0].ago_s, 15);
    EXPECT_EQ(points[1].boards[0].values.at("gpu_util"), 0);
    EXPECT_FALSE(points[1].boards[0].values.contains("gpu_power")) << "not told is not 0";
}

// While the server is away, memory stays bounded and the newest stay.
TEST(GpuPointQueueTest, WhatWasNotHeardWaitsUpToABound) {
    GpuPointQueue queue(1, 3);
    for (int second = 0; second <= 5; ++second) queue.add(boards(1), second);
    EXPECT_EQ(queue.waiting(), 3u);
    EXPECT_EQ(queue.lost(), 2);
    EXPECT_EQ(queue.oldest(1, 9)[0].number, 3);
    queue.kept_through(4);
    EXPECT_EQ(queue.oldest(9, 9).size(), 1u);
    queue.kept_through(9);
    EXPECT_EQ(queue.waiting(), 0u);
}

}  // namespace
}  // namespace stoker

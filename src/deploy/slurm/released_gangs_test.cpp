// A job that Slurm takes for running though it has ended holds GPUs that nobody uses.
#include "deploy/slurm/released_gangs.h"

#include <gtest/gtest.h>

namespace stoker::slurm {
namespace {

using std::chrono::seconds;

constexpr ReleasedGangs::Clock::time_point kStart{};
const OperationId kOne{.site = "abcde", .seq = 1}, kTwo{.site = "abcde", .seq = 2};

Queue queue(int second, std::initializer_list<OperationId> live, std::initializer_list<OperationId> over = {}) {
    Queue found{.asked_at = kStart + seconds(second)};
    for (const OperationId& each : live) found.jobs.push_back({.operation = each, .phase = JobPhase::running});
    for (const OperationId& each : over) found.jobs.push_back({.operation = each, .phase = JobPhase::over});
    return found;
}

TEST(ReleasedGangs, WhatLingersIsToldAfterTenSecondsAndAgain) {
    ReleasedGangs gangs;
    gangs.add(kOne, kStart);
    gangs.add(kTwo, kStart);
    EXPECT_TRUE(gangs.lingering(queue(5, {kOne, kTwo})).empty()) << "its last processes have until then";
    EXPECT_EQ(gangs.lingering(queue(11, {kOne}, {kTwo})), std::vector{kOne});
    EXPECT_TRUE(gangs.lingering(queue(12, {kOne})).empty()) << "it was told just now";
    EXPECT_EQ(gangs.lingering(queue(22, {kOne})), std::vector{kOne}) << "it did not help";
    EXPECT_FALSE(gangs.none());
    EXPECT_TRUE(gangs.lingering(queue(40, {})).empty());
    EXPECT_TRUE(gangs.none());
}

// A look at the queue from before its release says nothing of how it ended.
TEST(ReleasedGangs, AnOlderListingForgetsNothing) {
    ReleasedGangs gangs;
    gangs.add(kOne, kStart + seconds(5));
    EXPECT_EQ(gangs.still_there(queue(4, {})), std::set{kOne});
    EXPECT_TRUE(gangs.still_there(queue(6, {})).empty());
}

}  // namespace
}  // namespace stoker::slurm

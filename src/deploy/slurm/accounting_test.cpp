#include "deploy/slurm/accounting.h"

#include <gmock/gmock.h>

#include <cmath>

namespace stoker::slurm {
namespace {

using testing::HasSubstr;

constexpr const char* kTable =
    "JobIDRaw|JobName|State|ElapsedRaw|AllocTRES\n"
    "11|stoker-k3x7q-222222|COMPLETED|3602|billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=16G,node=2\n"
    "12|stoker-k3x7q-222223|CANCELLED by 1000|140|cpu=4,gres/gpu:a100=2,node=1\n"
    "13|somebody else's | with a bar|COMPLETED|9|cpu=1\n"
    "14|stoker-k3x7q-222224|RUNNING|60|cpu=4,node=1\n"
    "15|stoker-k3x7q-222225|NODE_FAIL|0|\n"
    "16|stoker-k3x7q-222225|COMPLETED|30|cpu=2,node=1\n"
    "17|stoker-zzzzz-22222b|COMPLETED|30|cpu=2,node=1\n";

TryHere try_of(std::uint64_t seq, double seconds, double cpus, double gpus, double nodes, bool ended = true) {
    return {.run = "r-" + std::to_string(seq),
            .engine = "slurm-b",
            .number = 1,
            .operation = *OperationId::parse("k3x7q-22222" + std::to_string(seq)),
            .held = {.seconds = seconds, .nodes = nodes, .cpus = cpus, .gpus = gpus},
            .whole_cpus = std::ceil(cpus),
            .ended = ended};
}

// Whoever pays both bills has to see where they part, and why.
TEST(SlurmAccounting, SaysWhereTheTwoPart) {
    const auto jobs = read_accounting(kTable);
    ASSERT_TRUE(jobs.ok()) << jobs.error().text();
    ASSERT_EQ(jobs->size(), 6U);
    EXPECT_EQ(jobs->front().held.gpus, 4);
    EXPECT_DOUBLE_EQ(jobs->front().held.gpu_hours(), 4 * 3602 / 3600.0);
    const auto compared = compare_accounting({try_of(2, 3600, 7.5, 4, 2),
                                              try_of(3, 20, 4, 1, 1),
                                              try_of(4, 50, 4, 0, 1, false),
                                              try_of(5, 29, 2, 0, 1),
                                              try_of(6, 10, 1, 0, 1),
                                              try_of(7, 0, 1, 0, 1),
                                              {.run = "r-7",
                                               .engine = "local",
                                               .operation = *OperationId::parse("k3x7q-22222a"),
                                               .held = {.seconds = 9},
                                               .ended = true}},
                                             *jobs);
    ASSERT_EQ(compared.size(), 6U);
    EXPECT_EQ(compared[0].agreement, Agreement::agrees) << compared[0].why;
    EXPECT_EQ(compared[1].agreement, Agreement::differs);
    EXPECT_EQ(compared[1].why, "its nodes were held 120 s longer than its ranks ran; 1 GPU asked for, 2 given");
    EXPECT_EQ(compared[2].agreement, Agreement::goes_on);
    EXPECT_EQ(compared[3].agreement, Agreement::agrees)
        << "a job that was lost and submitted again: " << compared[3].why;
    EXPECT_EQ(compared[3].jobs.size(), 2U);
    EXPECT_EQ(compared[4].agreement, Agreement::only_here);
    EXPECT_EQ(compared[5].agreement, Agreement::only_there);
    EXPECT_EQ(compared[5].jobs[0].number, "17");
}

// Slurm's own default counts no GPUs: then they are no difference.
TEST(SlurmAccounting, GpusThatAreNotCountedAreNotHeldAgainstIt) {
    const auto jobs = read_accounting(
        "JobIDRaw|JobName|State|ElapsedRaw|AllocTRES\n11|stoker-k3x7q-222222|COMPLETED|60|cpu=8,node=2\n");
    ASSERT_TRUE(jobs.ok());
    const auto compared = compare_accounting({try_of(2, 60, 8, 4, 2)}, *jobs);
    EXPECT_EQ(compared[0].agreement, Agreement::agrees) << compared[0].why;
}

TEST(SlurmAccounting, WhatIsNoTableSaysHowToGetOne) {
    for (const char* text :
         {"", "\n", "JobName|State\nx|y\n", "sacct: error: Slurm accounting storage is disabled\n"}) {
        const auto jobs = read_accounting(text);
        ASSERT_FALSE(jobs.ok());
        EXPECT_THAT(jobs.error().text(), HasSubstr("sacct -X -P"));
    }
}

}  // namespace
}  // namespace stoker::slurm

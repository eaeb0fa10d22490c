#include "deploy/slurm/room.h"

#include <gtest/gtest.h>

namespace stoker::slurm {
namespace {

// Lines of scontrol -d show node -o of Slurm 22.05.8, shortened; the states and numbers are changed.
constexpr const char* kLines =
    "NodeName=n1 CPUAlloc=4 CPUEfctv=16 CPUTot=16 Gres=gpu:a100:8 GresDrain=N/A GresUsed=gpu:a100:3(IDX:0-2) "
    "RealMemory=16000 State=MIXED Partitions=main,urgent\n"
    "NodeName=n2 CPUAlloc=0 CPUEfctv=16 CPUTot=16 Gres=gpu:a100:8 GresUsed=gpu:a100:0(IDX:N/A) RealMemory=16000 "
    "State=IDLE Partitions=main\n"
    "NodeName=n3 CPUAlloc=0 CPUEfctv=16 CPUTot=16 Gres=gpu:a100:8 GresUsed=gpu:a100:0(IDX:N/A) RealMemory=16000 "
    "State=IDLE+DRAIN Partitions=main Reason=bad cable\n"
    "NodeName=n4 CPUAlloc=0 CPUTot=16 RealMemory=16000 State=IDLE Partitions=other\n";

// Whoever waits for 16 GPUs sees that 13 are free, and that a node is drained.
TEST(SlurmRoom, CountsWhatIsFreeWhereTheJobMayRun) {
    const Room room = room_of(read_nodes(kLines, {}), {"main"});
    Job job{.number = "12", .operation = {}, .reason = "Resources"};
    EXPECT_EQ(numbers_of(job, room), "13 of 24 GPUs, 28 of 48 cores and 1 of 3 nodes are free");
    EXPECT_EQ(numbers_of(job, room_of(read_nodes(kLines, {}), {"other"})), "16 of 16 cores and 1 of 1 nodes are free");
    EXPECT_EQ(room_of(read_nodes(kLines, {}), {}).nodes, 4);
    EXPECT_EQ(numbers_of(job, room_of(read_nodes("", {}), {})), "");
    job.reason = "JobHeldUser";
    EXPECT_EQ(numbers_of(job, room), "");
}

TEST(SlurmRoom, CountsWhoComesBefore) {
    Room room = room_of(read_nodes(kLines, {}), {"main"});
    room.waiting = read_waiting("4294901747\n  100\n\n99\n");
    EXPECT_EQ(numbers_of({.number = "1", .operation = {}, .reason = "Priority", .priority = 100}, room),
              "1 job that waits there comes before it");
    EXPECT_EQ(numbers_of({.number = "1", .operation = {}, .reason = "Priority", .priority = 99}, room),
              "2 jobs that wait there come before it");
    EXPECT_EQ(numbers_of({.number = "1", .operation = {}, .reason = "Priority", .priority = 4294901747}, room), "");
}

}  // namespace
}  // namespace stoker::slurm

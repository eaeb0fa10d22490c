// A job that fell back to TCP runs ten times slower and says nothing; its log does.
#include "readings/tool_test_help.h"

namespace stoker {
namespace {

using samples::of_size;
using samples::read;
using samples::replaced;
using samples::verdict_of;
using samples::worst;

TEST(NcclLog, SocketsOnAnInfiniBandNodeFail) {
    const ToolReading reading = read(samples::kNcclSocket, of_size("Standard_ND96isr_H100_v5"));
    EXPECT_EQ(verdict_of(reading, "nccl-transport"), HealthVerdict::fail);
    const HealthCheck& check = *worst(reading, "nccl-transport");
    EXPECT_EQ(check.layer, HealthLayer::network);
    EXPECT_NE(check.detail.find("NET/IB found no device"), std::string::npos) << check.detail;
    EXPECT_NE(check.fix.find("rdma/ib"), std::string::npos);
    EXPECT_EQ(reading.fact("nccl")->value, "2.21.5+cuda12.4");
    EXPECT_EQ(reading.fact("interface")->value, "eth0");
    EXPECT_EQ(reading.conclusion, "NCCL 2.21.5+cuda12.4 on 2 nodes over TCP sockets");
}

// The same log is right on a size that has no InfiniBand, and open when nobody said.
TEST(NcclLog, SocketsElsewhereAreNoFault) {
    EXPECT_EQ(verdict_of(read(samples::kNcclSocket), "nccl-transport"), HealthVerdict::warn);
    EXPECT_EQ(verdict_of(read(samples::kNcclSocket, of_size("Standard_NC4as_T4_v3")), "nccl-transport"),
              HealthVerdict::warn);
    EXPECT_EQ(verdict_of(read("a:1:2 [0] NCCL INFO Using network Socket\na:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> "
                              "1[1] via P2P/IPC\n"),
                         "nccl-transport"),
              HealthVerdict::skipped);
}

// The log of one node of two: the other is known from the communicator alone.
TEST(NcclLog, NodesAreCountedByTheCommunicatorToo) {
    const std::string alone = "a:1:2 [0] NCCL INFO Using network Socket\n";
    const std::string two =
        alone + "a:1:2 [0] NCCL INFO comm 0x5 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0\n";
    EXPECT_EQ(verdict_of(read(alone, of_size("Standard_ND96isr_H100_v5")), "nccl-transport"), HealthVerdict::warn);
    EXPECT_EQ(verdict_of(read(two, of_size("Standard_ND96isr_H100_v5")), "nccl-transport"), HealthVerdict::fail);
}

TEST(NcclLog, AWholeInfiniBandLogPasses) {
    const ToolReading reading = read(samples::kNcclGood, of_size("Standard_ND96isr_H100_v5"));
    for (const HealthCheck& check : reading.checks)
        EXPECT_EQ(check.verdict, HealthVerdict::pass) << check.name << ": " << check.detail;
    EXPECT_EQ(worst(reading, "ib-ports")->measured, 8);
}

TEST(NcclLog, LostPortsAndGpuDirectAreFound) {
    const std::string fewer = replaced(samples::kNcclGood, " [7]mlx5_7:1/IB", "");
    EXPECT_EQ(verdict_of(read(fewer, of_size("Standard_ND96isr_H100_v5")), "ib-ports"), HealthVerdict::fail);
    const std::string staged = replaced(samples::kNcclGood, "NET/IB/0/GDRDMA", "NET/IB/0");
    EXPECT_EQ(verdict_of(read(staged, of_size("Standard_ND96isr_H100_v5")), "nccl-gpu-direct"), HealthVerdict::fail);
    EXPECT_EQ(verdict_of(read(staged), "nccl-gpu-direct"), HealthVerdict::warn);
}

TEST(NcclLog, SettingsThatSwitchPathsOffAreNamed) {
    for (const char* name : {"NCCL_IB_DISABLE", "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE"}) {
        const std::string log = std::string("a:1:2 [0] NCCL INFO ") + name + " set by environment to 1.\n";
        const ToolReading reading = read(log);
        EXPECT_EQ(verdict_of(reading, "nccl-settings"), HealthVerdict::warn) << name;
        EXPECT_NE(worst(reading, "nccl-settings")->fix.find(name), std::string::npos);
        EXPECT_EQ(
            worst(read(std::string("a:1:2 [0] NCCL INFO ") + name + " set by environment to 0.\n"), "nccl-settings"),
            nullptr);
    }
    EXPECT_EQ(verdict_of(read("a:1:2 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.\n",
                              of_size("Standard_ND96isr_H100_v5")),
                         "nccl-settings"),
              HealthVerdict::fail);
    EXPECT_EQ(verdict_of(read("a:1:2 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct\n",
                              of_size("Standard_ND96isr_H100_v5")),
                         "nccl-shared-memory"),
              HealthVerdict::fail);
}

TEST(NcclLog, VersionsThatDifferFail) {
    EXPECT_EQ(
        verdict_of(
            read(
                "a:1:2 [0] NCCL INFO NCCL version 2.18.3+cuda12.2\nb:1:2 [0] NCCL INFO NCCL version 2.21.5+cuda12.4\n"),
            "nccl-versions"),
        HealthVerdict::fail);
    EXPECT_EQ(verdict_of(read("a:1:2 [0] init.cc:980 NCCL WARN Mismatched NCCL version detected : rank 0 version 21805 "
                              "rank 9 version 22105\n"),
                         "nccl-versions"),
              HealthVerdict::fail);
}

// Who waited is known; who did not come is the one to look at.
TEST(NcclLog, TheRankThatDidNotComeIsNamed) {
    std::string log = "a:1:2 [0] NCCL INFO comm 0x5 rank 0 nranks 4 cudaDev 0 busId 1000 commId 0x9 - Init COMPLETE\n";
    for (const char* rank : {"0", "1", "3"})
        log += std::string("[E ProcessGroupNCCL.cpp:616] [Rank ") + rank +
               "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, "
               "Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n";
    const ToolReading reading = read(log);
    const HealthCheck* late = worst(reading, "nccl-timeout");
    ASSERT_NE(late, nullptr);
    EXPECT_EQ(late->layer, HealthLayer::model);
    EXPECT_NE(late->detail.find("rank 2 did not wait"), std::string::npos) << late->detail;
}

// A thousand equal lines are one note with a number.
TEST(NcclLog, EqualLinesAreToldOnce) {
    std::string log;
    for (int i = 0; i < 1000; ++i)
        log += "[1,0]<stdout>:gpu-a:10:20 [0] NCCL WARN Call to ibv_modify_qp failed with error Invalid argument\n";
    const ToolReading reading = read(log);
    EXPECT_EQ(reading.notes.size(), 1U);
    EXPECT_NE(reading.notes[0].message.find("and 999 lines more like it"), std::string::npos)
        << reading.notes[0].message;
    EXPECT_EQ(reading.fact("host")->value, "gpu-a");
}

}  // namespace
}  // namespace stoker

// doctor --read ends with what a script can act on: 0, 1, 2 or 3.
#include "app/doctor_read.h"

#include <gtest/gtest.h>

#include "io/files.h"

namespace stoker {
namespace {

TEST(DoctorRead, ExitSaysWhatWasFound) {
    auto folder = ScratchFolder::make("doctor-read");
    ASSERT_TRUE(folder.ok());
    const std::string path = folder->path() + "/ib.txt";
    const auto ended = [&](const char* text, const char* size) {
        EXPECT_TRUE(write_file_atomic(path, text).ok());
        Session session;
        Args args;
        args.add("read", path);
        if (size != nullptr) args.add("size", size);
        const auto done = read_tools(session, args);
        return done.ok() ? done->exit : exit_code(done.error().kind());
    };
    const char* slow =
        "RDMA_Write BW Test\n Device : mlx5_0\n #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n "
        "65536 5000 94.2 94.1 0.17\n";
    EXPECT_EQ(ended(slow, "Standard_ND96isr_H100_v5"), 1);
    EXPECT_EQ(ended(slow, nullptr), 3);
    EXPECT_EQ(ended("hello\n", nullptr), 2);
    EXPECT_EQ(ended(slow, "Standard_NoSuch"), 2);
    EXPECT_EQ(ended("RDMA_Write BW Test\n Device : mlx5_0\n #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] "
                    "MsgRate[Mpps]\n 65536 5000 394.2 394.1 0.17\n",
                    "Standard_ND96isr_H100_v5"),
              0);
}

// On call: the log says that sockets are used, the script says why, and what it costs is one answer.
TEST(DoctorRead, TheLogTheLineTheBandwidthAndTheMoneyAreOneAnswer) {
    auto folder = ScratchFolder::make("doctor-join");
    ASSERT_TRUE(folder.ok());
    const std::string log = folder->path() + "/nccl.log", script = folder->path() + "/train.sh";
    ASSERT_TRUE(write_file_atomic(log,
                                  "n1:1:1 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.\n"
                                  "n1:1:9 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.4<0>\n"
                                  "n1:1:9 [0] NCCL INFO Using network Socket\n")
                    .ok());
    ASSERT_TRUE(write_file_atomic(script,
                                  "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gpus-per-node=8\n"
                                  "export NCCL_IB_DISABLE=1\nsrun torchrun --nnodes=4 --nproc_per_node=8 train.py\n")
                    .ok());
    const auto told = [&](bool with_script) {
        Session session;
        Args args;
        args.add("read", log);
        if (with_script) args.add("read", script);
        args.add("size", "Standard_ND96isr_H100_v5");
        const auto done = read_tools(session, args);
        EXPECT_TRUE(done.ok());
        EXPECT_EQ(done->exit, 1);
        return done->out;
    };
    const std::string both = told(true);
    for (const char* part : {"NCCL_IB_DISABLE of the log", "train.sh:4", "3200 Gbit/s", "4 nodes of the script"})
        EXPECT_NE(both.find(part), std::string::npos) << part << "\n" << both;
    const std::string alone = told(false);
    EXPECT_EQ(alone.find("nodes of the script"), std::string::npos) << alone;
    EXPECT_NE(alone.find("where NCCL_IB_DISABLE is set"), std::string::npos) << alone;
}

TEST(DoctorRead, MissingFilesAndMeasuringOptionsAreRefused) {
    Session session;
    Args args;
    args.add("read", "/nowhere/a.txt");
    args.add("read", "/nowhere/b.txt");
    const auto missing = read_tools(session, args);
    ASSERT_FALSE(missing.ok());
    EXPECT_EQ(missing.error().problems().size(), 2U);
    EXPECT_EQ(exit_code(missing.error().kind()), 2);
    args.add("full", "");
    EXPECT_FALSE(read_tools(session, args).ok());
}

}  // namespace
}  // namespace stoker

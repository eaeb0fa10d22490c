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

#include "doctor/measure/disk_speed.h"

#include <gtest/gtest.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

namespace stoker {
namespace {

namespace fs = std::filesystem;

const auto in_a_minute = [] { return std::chrono::steady_clock::now() + std::chrono::minutes(1); };

class DiskSpeedTest : public testing::Test {
protected:
    DiskSpeedTest() {
        std::string name = (fs::temp_directory_path() / "disk_speed_XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) std::abort();
        folder_ = name;
    }
    ~DiskSpeedTest() override { fs::remove_all(folder_); }
    fs::path folder_;
};

// All three rates are measured, within the bytes that were allowed, and the folder is as it was.
TEST_F(DiskSpeedTest, MeasuresAndLeavesNothing) {
    const auto speed =
        measure_disk({.folder = folder_.string(), .bytes = 4 << 20, .seconds = 3, .small_files = 50}, in_a_minute());
    ASSERT_TRUE(speed.ok()) << speed.error().text();
    EXPECT_GT(speed->write_bytes_per_s, 0);
    EXPECT_GT(speed->read_bytes_per_s, 0);
    EXPECT_GT(speed->small_files_per_s, 0);
    EXPECT_GT(speed->written, 0);
    EXPECT_LE(speed->written, 4 << 20);
    EXPECT_LE(speed->small_files, 50);
    EXPECT_FALSE(speed->file_system.empty());
    EXPECT_TRUE(fs::is_empty(folder_));
}

// Memory is not sold as a disk.
TEST_F(DiskSpeedTest, TmpfsIsSaidToBeMemory) {
    struct statfs system {};
    if (::statfs("/dev/shm", &system) != 0 || system.f_type != 0x01021994 || ::access("/dev/shm", W_OK) != 0)
        GTEST_SKIP() << "no tmpfs at /dev/shm";
    const auto speed =
        measure_disk({.folder = "/dev/shm", .bytes = 2 << 20, .seconds = 1, .small_files = 10}, in_a_minute());
    ASSERT_TRUE(speed.ok()) << speed.error().text();
    EXPECT_EQ(speed->file_system, "tmpfs");
    EXPECT_TRUE(speed->in_memory);
    EXPECT_NE(speed->note.find("memory"), std::string::npos);
}

// A folder that is not there, or a file in its place, is an error that names it.
TEST_F(DiskSpeedTest, MissingFoldersAreTold) {
    const auto missing = measure_disk({.folder = (folder_ / "none").string()}, in_a_minute());
    ASSERT_FALSE(missing.ok());
    EXPECT_EQ(missing.error().kind(), ErrorKind::not_found);
    EXPECT_NE(missing.error().text().find("none"), std::string::npos);
    EXPECT_FALSE(room_of_disk((folder_ / "none").string()).ok());
    const auto room = room_of_disk(folder_.string());
    ASSERT_TRUE(room.ok());
    EXPECT_GT(room->total_bytes, 0);
    EXPECT_LE(room->free_bytes, room->total_bytes);
}

// Whoever waits is told at the deadline, however long the disk takes; later tests work again once it has answered.
TEST_F(DiskSpeedTest, TheDeadlineHolds) {
    const auto late = measure_disk({.folder = folder_.string(), .bytes = 8 << 20, .seconds = 30, .small_files = 1},
                                   std::chrono::steady_clock::now());
    if (!late) {
        EXPECT_EQ(late.error().kind(), ErrorKind::timed_out);
    }
    for (int tries = 0; tries < 6000; ++tries) {
        if (measure_disk({.folder = folder_.string(), .bytes = 1 << 20, .seconds = 1, .small_files = 1}, in_a_minute()))
            return;
        ::usleep(10'000);
    }
    FAIL() << "still refused after a minute";
}

}  // namespace
}  // namespace stoker

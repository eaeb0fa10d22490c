#include "deploy/local/log_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "io/files.h"

namespace stoker {
namespace {

// A writer that appends keeps writing to the right place after a rotation; old and new together are bounded and end
// with the newest line.
TEST(BoundedLog, KeepsTheNewestHalf) {
    std::string folder = std::filesystem::temp_directory_path() / "stoker-log-XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    const std::string path = folder + "/rank-0.out";
    BoundedLog log(path, 1000);
    EXPECT_GT(log.check(), 0);  // no file yet
    std::ofstream writer(path, std::ios::app);
    std::string all;
    for (int i = 0; i < 500; ++i) {
        const std::string line = "line " + std::to_string(i) + "\n";
        writer << line << std::flush;
        all += line;
        log.check();
    }
    const auto old = read_file(path + ".1", 1 << 20), fresh = read_file(path, 1 << 20);
    ASSERT_TRUE(old.ok() && fresh.ok());
    EXPECT_LE(old->size(), 500u);
    EXPECT_LE(fresh->size(), 520u);
    EXPECT_GE(old->size() + fresh->size(), 500u);
    EXPECT_TRUE(all.ends_with(*old + *fresh));
    std::filesystem::remove_all(folder);
}

// A flood that is written as fast as it is copied does not make the old part longer than the bound.
TEST(BoundedLog, BoundHoldsInAFlood) {
    std::string folder = std::filesystem::temp_directory_path() / "stoker-log-XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    const std::string path = folder + "/rank-0.out";
    constexpr std::int64_t kMost = 1 << 20;
    std::atomic<bool> stop = false;
    std::thread flood([&] {
        std::ofstream writer(path, std::ios::app);
        const std::string block(1 << 16, 'x');
        while (!stop) writer << block << std::flush;
    });
    BoundedLog log(path, kMost);
    std::uintmax_t largest = 0;
    std::error_code none;
    for (int i = 0; i < 20; ++i) {
        while (!std::filesystem::exists(path, none) || std::filesystem::file_size(path, none) < 4 * kMost)
            std::this_thread::yield();
        log.check();
        if (const auto size = std::filesystem::file_size(path + ".1", none); !none) largest = std::max(largest, size);
    }
    stop = true;
    flood.join();
    EXPECT_LE(largest, static_cast<std::uintmax_t>(kMost / 2));
    EXPECT_GT(largest, 0u);
    std::filesystem::remove_all(folder);
}

// Where the old part cannot be kept, the bound holds all the same.
TEST(BoundedLog, BoundHoldsWithoutRoomForTheOldPart) {
    std::string folder = std::filesystem::temp_directory_path() / "stoker-log-XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    const std::string path = folder + "/rank-0.out";
    std::filesystem::create_directories(path + ".1.tmp");  // in the way
    ASSERT_TRUE(write_file_atomic(path, std::string(5000, 'x')));
    BoundedLog log(path, 1000);
    log.check();
    EXPECT_EQ(std::filesystem::file_size(path), 0u);
    BoundedLog unbounded(path, 0);
    ASSERT_TRUE(write_file_atomic(path, std::string(5000, 'x')));
    unbounded.check();
    EXPECT_EQ(std::filesystem::file_size(path), 5000u);
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace stoker

#include "deploy/local/log_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
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

// "line 7 of a flood" after "line 6 of a flood", from the first whole line to the last; next: one more than that.
void follow_each_other(const std::string& text, int& next) {
    std::istringstream lines(text.substr(text.find('\n') + 1));
    next = -1;
    for (std::string line; std::getline(lines, line);) {
        if (line.empty() || (lines.eof() && !text.ends_with('\n'))) continue;
        const int number = std::stoi(line.substr(5));
        if (next >= 0) {
            ASSERT_EQ(number, next);
        }
        next = number + 1;
    }
}

// Nothing is lost between the two parts, however the writer and the rotation fall: what there is at the end is one
// piece of what was written, up to its last line. Where the file system cannot cut, this is not promised.
TEST(BoundedLog, LosesNoLineOfAFlood) {
    std::string folder = std::filesystem::temp_directory_path() / "stoker-log-XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    const std::string path = folder + "/rank-0.out";
    ASSERT_TRUE(write_file_atomic(path, std::string(16384, '\n')));
    const int probe = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    const bool cuts = ::fallocate(probe, FALLOC_FL_COLLAPSE_RANGE, 0, 8192) == 0;
    ::close(probe);
    if (!cuts) GTEST_SKIP() << "this file system cuts no file at its front";
    constexpr int kLines = 60000;
    std::atomic<bool> done = false;
    std::thread flood([&] {
        std::ofstream writer(path, std::ios::app);
        for (int i = 0; i < kLines; ++i) writer << "line " << i << " of a flood\n" << std::flush;
        done = true;
    });
    BoundedLog log(path, 256 << 10);
    int last_rotated = 0;
    while (!done) {
        log.check();
        // After every rotation: each line follows the one before.
        const auto old = read_file(path + ".1", 1 << 22);
        if (!old || old->empty()) continue;
        follow_each_other(*old, last_rotated);
        if (HasFatalFailure()) break;
    }
    flood.join();
    EXPECT_GT(last_rotated, 0);
    const auto old = read_file(path + ".1", 1 << 22), fresh = read_file(path, 1 << 22);
    ASSERT_TRUE(old.ok() && fresh.ok());
    const std::string all = *old + *fresh;
    EXPECT_TRUE(all.ends_with("line 59999 of a flood\n"));
    int next = -1;
    follow_each_other(all, next);
    EXPECT_EQ(next, kLines);
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

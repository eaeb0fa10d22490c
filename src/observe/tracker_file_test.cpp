// A program that logs to a tracker needs nothing else to have its steps seen, and whatever lies in such a file is read
// without harm.
#include "observe/tracker_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "io/process.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

std::string fixed(std::uint64_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
    return out;
}
std::string varint(std::uint64_t value) {
    std::string out;
    for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
    return out + static_cast<char>(value);
}
std::string number(int id, std::uint64_t value) {
    return varint(static_cast<std::uint64_t>(id) << 3) + varint(value);
}
std::string bytes(int id, const std::string& value) {
    return varint(static_cast<std::uint64_t>(id) << 3 | 2) + varint(value.size()) + value;
}
std::string float_field(int id, float value) {
    return varint(static_cast<std::uint64_t>(id) << 3 | 5) + fixed(std::bit_cast<std::uint32_t>(value), 4);
}
std::string double_field(int id, double value) {
    return varint(static_cast<std::uint64_t>(id) << 3 | 1) + fixed(std::bit_cast<std::uint64_t>(value), 8);
}
std::string event(double time_s, int step, const std::string& value) {
    const std::string message =
        double_field(1, time_s) + number(2, static_cast<std::uint64_t>(step)) + bytes(5, bytes(1, value));
    return fixed(message.size(), 8) + "crc." + message + "crc.";
}
std::string scalar(const std::string& tag, float value) {
    return bytes(1, tag) + float_field(2, value);
}
std::string history(int step, double time_s, const std::string& loss) {
    const auto item = [](const std::string& name, const std::string& json) {
        return bytes(1, bytes(2, name) + bytes(16, json));
    };
    char time[32];
    std::snprintf(time, sizeof time, "%.3f", time_s);
    return bytes(2, item("_step", std::to_string(step)) + item("_timestamp", time) + item("train/loss", loss));
}
std::string leveldb(const std::string& record, int kind = 1) {
    return "crc." + fixed(record.size(), 2) + static_cast<char>(kind) + record;
}

struct TrackerFileTest : testing::Test {
    std::string folder = testing::TempDir() + "tracker-" + std::to_string(::getpid());
    TrackerFileTest() { fs::create_directories(folder); }
    ~TrackerFileTest() override { fs::remove_all(folder); }
    std::string write(const std::string& name, const std::string& text) const {
        const std::string path = folder + "/" + name;
        fs::create_directories(fs::path(path).parent_path());
        std::ofstream(path, std::ios::app | std::ios::binary) << text;
        return path;
    }
};

double loss_of(const StepLine& line) {
    for (const auto& [name, value] : line.values)
        if (name == "loss") return value;
    return -1;
}

TEST_F(TrackerFileTest, TensorBoardTellsStepsWithTheirTimes) {
    const std::string tensor =
        bytes(1, "train/loss") + bytes(8, number(1, 1) + bytes(4, fixed(std::bit_cast<std::uint32_t>(0.25F), 4)));
    const std::string path =
        write("events.out.tfevents.1.host", event(100, 0, "") + event(100.5, 1, scalar("lr", 0.1F)) +
                                                event(100.6, 1, scalar("train/loss", 2.5F)) + event(101, 2, tensor));
    const auto file = TrackerFile::open(path);
    ASSERT_NE(file, nullptr);
    auto lines = file->poll();
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[0].step, 1);
    EXPECT_EQ(lines[0].time_s, 100.5);
    EXPECT_EQ(loss_of(lines[0]), 2.5);
    EXPECT_EQ(loss_of(lines[1]), 0.25);
    EXPECT_TRUE(file->poll().empty());
    const std::string next = event(102, 3, scalar("loss", std::nanf("")));
    write("events.out.tfevents.1.host", next.substr(0, 20));
    EXPECT_TRUE(file->poll().empty());  // half a record
    write("events.out.tfevents.1.host", next.substr(20) + fixed(5 << 20, 8) + "crc." + std::string((5 << 20) + 4, 'x') +
                                            event(103, 4, scalar("loss", 1)));
    lines = file->poll();
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_TRUE(lines[0].lost);
    lines = file->poll();  // behind an image
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].step, 4);
}

TEST_F(TrackerFileTest, AFileOfWandbTellsItsHistory) {
    const std::string head = std::string(":W&B") + "\xe1\xbe\x01", second = history(1, 1000.75, "NaN");
    std::string text = head + leveldb(history(0, 1000.25, "2.5")) + leveldb(second.substr(0, 9), 2) +
                       leveldb(second.substr(9), 4) + leveldb(bytes(7, "statistics"));
    const std::string path = write("run-1.wandb", text);
    const auto file = TrackerFile::open(path);
    ASSERT_NE(file, nullptr);
    auto lines = file->poll();
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[0].step, 0);
    EXPECT_EQ(lines[0].time_s, 1000.25);
    EXPECT_EQ(loss_of(lines[0]), 2.5);
    EXPECT_TRUE(lines[1].lost);
    // Blocks of 32 KiB: what is left of one below a head is filled up.
    std::string more;
    int step = 2;
    for (; (text.size() + more.size()) % 32768 < 32768 - 200; ++step) more += leveldb(history(step, 1000 + step, "1"));
    const std::size_t left = 32768 - (text.size() + more.size()) % 32768;
    more += leveldb(std::string(left - 7 - 3, '\0')) + std::string(3, '\0');
    write("run-1.wandb", more + leveldb(history(step, 1000 + step, "1")));
    lines = file->poll();
    ASSERT_FALSE(lines.empty());
    EXPECT_EQ(lines.back().step, step);
}

TEST_F(TrackerFileTest, MlflowTellsAMetric) {
    const auto file = TrackerFile::open(write("mlruns/0/abc/metrics/loss", "1000500 2.5 1\n1001000 nan 2\nwhat\n"));
    ASSERT_NE(file, nullptr);
    const auto lines = file->poll();
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[0].step, 1);
    EXPECT_EQ(lines[0].time_s, 1000.5);
    EXPECT_TRUE(lines[1].lost);
}

TEST_F(TrackerFileTest, NoFileDoesHarm) {
    for (const char* name : {"events.out.tfevents.1", "run-2.wandb", "mlruns/0/a/metrics/loss"})
        for (std::uint32_t seed = 1; seed < 60; ++seed) {
            std::string noise = seed % 2 == 0 ? ":W&B\xe1\xbe\x01" : fixed(seed * 7, 8) + "crc.";
            std::uint32_t value = seed;
            for (int i = 0; i < 600; ++i) noise += static_cast<char>((value = value * 1664525 + 1013904223) >> 24);
            fs::remove(folder + "/" + name);
            const auto file = TrackerFile::open(write(name, noise));
            ASSERT_NE(file, nullptr);
            for (int i = 0; i < 3; ++i) (void)file->poll();
        }
    EXPECT_EQ(TrackerFile::open(folder + "/loss.csv"), nullptr);
    const auto missing = TrackerFile::open(folder + "/events.out.tfevents.none");
    EXPECT_TRUE(missing->poll().empty());
}

// What a process has open is its own, and what lies in its folder is where it was written since.
TEST_F(TrackerFileTest, IsFoundByTheProcessThatWritesIt) {
    const std::string path = write("logs/events.out.tfevents.9", event(100, 1, scalar("loss", 1)));
    {
        std::ofstream held(path, std::ios::app);
        EXPECT_EQ(find_tracker_file("/proc", {::getpid()}, 0), fs::canonical(path).string());
        EXPECT_FALSE(find_tracker_file("/proc", {::getpid()}, static_cast<double>(wall_clock_us()) / 1e6 + 60));
    }
    const std::string proc = folder + "/proc";
    fs::create_directories(proc + "/12");
    fs::create_directory_symlink(folder, proc + "/12/cwd");
    EXPECT_FALSE(find_tracker_file(proc, {12}, 0));
    write("mlruns/0/abc/metrics/train_loss", "1 2 3\n");
    write("mlruns/0/abc/metrics/lr", "1 2 3\n");
    ASSERT_TRUE(find_tracker_file(proc, {12}, 0));
    EXPECT_TRUE(find_tracker_file(proc, {12}, 0)->ends_with("/metrics/train_loss"));
    const std::string run = write("wandb/offline-run-1/run-1.wandb", ":W&B");
    EXPECT_EQ(find_tracker_file(proc, {12}, 0), run);
    EXPECT_FALSE(find_tracker_file(proc, {13}, 0));
}

}  // namespace
}  // namespace stoker

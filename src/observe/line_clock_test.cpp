// When a line was written is known although it is read much later.
#include "observe/line_clock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>

#include "io/process.h"

namespace stoker {
namespace {

double wall() {
    return static_cast<double>(wall_clock_us()) / 1e6;
}

struct LineClockTest : testing::Test {
    std::string path = testing::TempDir() + "line-clock-" + std::to_string(::getpid()) + ".out";
    ~LineClockTest() override { std::remove(path.c_str()); }
    void append(const std::string& text) const { std::ofstream(path, std::ios::app) << text << std::flush; }
    static std::optional<double> eventually(LineClock& clock, const std::string& path, std::int64_t size) {
        for (int i = 0; i < 3000; ++i) {
            if (const auto at = clock.when(path, size)) return at;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return std::nullopt;
    }
};

TEST_F(LineClockTest, KnowsWhenAFileGrew) {
    const auto clock = LineClock::start();
    ASSERT_NE(clock, nullptr);
    EXPECT_EQ(clock->watch(path), nullptr);  // not there yet
    append("before\n");
    const auto held = clock->watch(path);
    ASSERT_NE(held, nullptr);
    EXPECT_FALSE(clock->when(path, 7));  // it was there already
    const double first = wall();
    append("one\n");
    const auto one = eventually(*clock, path, 11);
    ASSERT_TRUE(one);
    const double second = wall();
    append("two\n");
    const auto two = eventually(*clock, path, 15);
    ASSERT_TRUE(two);
    EXPECT_GE(*one, first - 0.001);
    EXPECT_LE(*one, second + 0.001);
    EXPECT_GE(*two, second - 0.001);
    EXPECT_LE(*two, wall() + 0.001);
    EXPECT_FALSE(clock->when(path, 99));  // not so long yet
    EXPECT_FALSE(clock->when("/nowhere", 1));
}

TEST_F(LineClockTest, ForgetsAFileThatNobodyReads) {
    const auto clock = LineClock::shared();
    ASSERT_NE(clock, nullptr);
    EXPECT_EQ(clock, LineClock::shared());
    append("a");
    auto held = clock->watch(path);
    auto again = clock->watch(path);
    append("b");
    ASSERT_TRUE(eventually(*clock, path, 2));
    held.reset();
    append("c");
    EXPECT_TRUE(eventually(*clock, path, 3));
    again.reset();
    EXPECT_FALSE(clock->when(path, 3));
}

}  // namespace
}  // namespace stoker

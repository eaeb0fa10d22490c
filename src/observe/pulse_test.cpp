// The rhythm of a program that tells nothing is seen at a twentieth of a second.
#include "observe/pulse.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

namespace stoker {
namespace {

bool eventually_over(const Pulse& pulse) {
    for (int i = 0; i < 3000 && !pulse.over(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return pulse.over();
}

TEST(Pulse, EndsWithTheProcessAndWithoutARhythm) {
    const std::string proc = testing::TempDir() + "pulse-" + std::to_string(::getpid());
    std::filesystem::create_directories(proc + "/7");
    std::ofstream(proc + "/7/schedstat") << "1000000 1 1\n";
    std::ofstream(proc + "/7/io") << "rchar: 1\nwchar: 1\nsyscr: 1\nsyscw: 5\n";
    const Pulse still(7, {.proc = proc, .every_s = 0.001, .looks = 60});
    EXPECT_TRUE(eventually_over(still));
    EXPECT_FALSE(still.rhythm());
    const Pulse gone(8, {.proc = proc, .every_s = 0.001, .looks = 1'000'000});
    EXPECT_TRUE(eventually_over(gone));
    { const Pulse stopped(7, {.proc = proc, .every_s = 10, .looks = 1'000'000}); }  // does not wait for the next look
    std::filesystem::remove_all(proc);
}

// Computes for four looks of eight, whatever the clock does between them.
TEST(Pulse, SeesAProcessThatBeats) {
    int look = 0;
    const Pulse pulse(1, {.every_s = 0.002, .looks = 120, .look = [&] {
                              const int turn = look++;
                              return std::optional(std::pair(0.01 * (4 * (turn / 8) + std::min(turn % 8, 4)), 0.0));
                          }});
    ASSERT_TRUE(eventually_over(pulse));
    const auto found = pulse.rhythm();
    ASSERT_TRUE(found);
    EXPECT_NEAR(found->period_s, 8 * 0.002, 0.001);
    EXPECT_EQ(found->measure, "processor time");
}

}  // namespace
}  // namespace stoker

#include "run/engine_lane.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace stoker {
namespace {

// A cancel that waits out its grace must not keep the next one from being told, and the bound must hold: a thousand
// cancels may not become a thousand threads.
TEST(EngineLaneTest, RunsUpToItsBoundAtATime) {
    Lane lane("test", 3);
    std::promise<void> gate;
    const std::shared_future<void> open = gate.get_future().share();
    std::atomic<int> running = 0, done = 0;
    std::promise<void> three;
    for (int i = 0; i < 10; ++i)
        lane.add([&] {
            if (++running == 3) three.set_value();
            open.wait();
            ++done;
        });
    three.get_future().wait();
    EXPECT_EQ(lane.running(), 3u);
    EXPECT_EQ(lane.waiting(), 7u);
    std::promise<void> last;
    gate.set_value();
    lane.add([&] { last.set_value(); });
    last.get_future().wait();
    EXPECT_GE(done, 8);  // the other two threads may still be at their last one
    lane.stop();
    EXPECT_EQ(done, 10);
}

// Stopping a server waits for the call that is under way and starts no other.
TEST(EngineLaneTest, StopDropsWhatWaits) {
    Lane lane("test", 1);
    std::promise<void> begun, gate;
    std::atomic<int> done = 0;
    lane.add([&] {
        begun.set_value();
        gate.get_future().wait();
        ++done;
    });
    lane.add([&] { ++done; });
    begun.get_future().wait();
    std::thread stopper([&] { lane.stop(); });
    while (lane.waiting() != 0) std::this_thread::yield();
    gate.set_value();
    stopper.join();
    EXPECT_EQ(done, 1);
    lane.add([&] { ++done; });
    EXPECT_EQ(lane.waiting(), 0u);
}

}  // namespace
}  // namespace stoker

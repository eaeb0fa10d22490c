#include "deploy/shared_look.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

namespace stoker {
namespace {

using Clock = std::chrono::steady_clock;

class SharedLookTest : public ::testing::Test {
protected:
    Result<std::shared_ptr<const int>> get(Clock::time_point since) {
        return look_.get(since, Clock::now() + std::chrono::minutes(1), "the number", [this]() -> Result<int> {
            ++asked_;
            if (fails_) return Error(ErrorKind::unavailable, "nobody answers");
            return asked_.load();
        });
    }
    SharedLook<int> look_;
    std::atomic<int> asked_ = 0;
    bool fails_ = false;
};

// Twenty gangs that start at once are not to read a list of a thousand nodes twenty times; who wants it as it is now
// gets it so.
TEST_F(SharedLookTest, IsTakenOnceForAllWhoAreContentWithIt) {
    const auto before = Clock::now();
    EXPECT_EQ(**get(before), 1);
    EXPECT_EQ(**get(before), 1);
    EXPECT_EQ(**get(Clock::now()), 2);
    EXPECT_EQ(asked_, 2);
}

// An answer that did not come is nobody's answer, and does not hide the one before.
TEST_F(SharedLookTest, AnErrorIsToldAndNotKept) {
    const auto before = Clock::now();
    ASSERT_TRUE(get(before).ok());
    fails_ = true;
    EXPECT_EQ(get(Clock::now()).error().kind(), ErrorKind::unavailable);
    EXPECT_EQ(**get(before), 1);
}

TEST_F(SharedLookTest, WhoAsksMeanwhileWaitsForIt) {
    const auto before = Clock::now(), limit = before + std::chrono::minutes(1);
    std::promise<void> begun, go;
    std::atomic<int> looks = 0;
    std::thread first([&] {
        const auto found = look_.get(before, limit, "the number", [&]() -> Result<int> {
            ++looks;
            begun.set_value();
            go.get_future().wait();
            return 7;
        });
        EXPECT_EQ(**found, 7);
    });
    begun.get_future().wait();
    std::thread second([&] {
        const auto found = look_.get(before, limit, "the number", [&]() -> Result<int> { return ++looks; });
        EXPECT_EQ(**found, 7);
    });
    go.set_value();
    first.join();
    second.join();
    EXPECT_EQ(looks, 1);
}

TEST_F(SharedLookTest, WhoWaitsInVainIsToldForWhat) {
    const auto before = Clock::now();
    std::promise<void> begun, go;
    std::thread first([&] {
        (void)look_.get(before, before + std::chrono::minutes(1), "the number", [&]() -> Result<int> {
            begun.set_value();
            go.get_future().wait();
            return 7;
        });
    });
    begun.get_future().wait();
    const auto late = look_.get(before, before, "the number", []() -> Result<int> { return 8; });
    go.set_value();
    first.join();
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().kind(), ErrorKind::timed_out);
    EXPECT_EQ(late.error().message(), "the number was not told in time");
}

}  // namespace
}  // namespace stoker

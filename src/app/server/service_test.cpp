#include "app/server/service.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>

namespace stoker::api {
namespace {

// Requests that nobody has a thread for are refused rather than piled up.
TEST(PoolTest, IsBounded) {
    Pool pool(1, 2);
    std::latch begun(1), go(1);
    std::atomic<int> done = 0;
    ASSERT_TRUE(pool.post([&] {
        begun.count_down();
        go.wait();
        ++done;
    }));
    begun.wait();
    EXPECT_TRUE(pool.post([&] { ++done; }));
    std::latch last(1);
    EXPECT_TRUE(pool.post([&] {
        ++done;
        last.count_down();
    }));
    EXPECT_FALSE(pool.post([] {})) << "two wait already";
    go.count_down();
    last.wait();
    EXPECT_EQ(done, 3);
    pool.stop();
    EXPECT_FALSE(pool.post([] {}));
    pool.stop();
}

}  // namespace
}  // namespace stoker::api

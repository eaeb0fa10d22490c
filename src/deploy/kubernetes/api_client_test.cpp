#include "deploy/kubernetes/api_client.h"

#include <gtest/gtest.h>

namespace stoker::kubernetes {
namespace {

// What ranks did has its time by the cluster's clocks: where this one is an hour off, runs would be charged for nothing
// or for an hour too much.
TEST(KubernetesClock, IsAheadOfWhatTheServerSays) {
    constexpr std::int64_t kSecond = 1'000'000, kThen = 1795794261 * kSecond;
    const char* date = "Fri, 27 Nov 2026 15:44:21 GMT";
    EXPECT_EQ(ahead_of_date_us(date, kThen + 3600 * kSecond), 3600 * kSecond);
    EXPECT_EQ(ahead_of_date_us(date, kThen - 3600 * kSecond), -3600 * kSecond);
    EXPECT_EQ(ahead_of_date_us(date, kThen + 2 * kSecond), 0) << "the way took as long";
    for (const char* none : {"", "yesterday", "2026-11-27T15:44:21Z"}) EXPECT_EQ(ahead_of_date_us(none, kThen), 0);
}

}  // namespace
}  // namespace stoker::kubernetes

// A resolver that does not answer may not hold a command for the half minute that the system waits for it.
#include "io/http/resolve.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <future>

namespace stoker {
namespace {

using Clock = std::chrono::steady_clock;

TEST(Resolve, AddressesAndNames) {
    const auto soon = Clock::now() + std::chrono::seconds(20);
    const auto never = [](const char*, const char*, const addrinfo*, addrinfo**) { return EAI_FAIL; };
    for (const char* address : {"127.0.0.1", "::1"}) {
        const auto found = resolve(address, 80, soon, never);
        ASSERT_TRUE(found.ok()) << address;
        EXPECT_NE(found->get(), nullptr);
    }
    const auto local = resolve("localhost", 8042, soon);
    ASSERT_TRUE(local.ok());
    const auto* in = reinterpret_cast<const sockaddr_in*>((*local)->ai_addr);
    EXPECT_EQ(ntohs(in->sin_port), 8042);
    const auto none = resolve("no-such-name", 80, soon, never);
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().kind(), ErrorKind::unavailable);
}

TEST(Resolve, SilenceEndsAtTheDeadlineAndIsBounded) {
    const auto open = std::make_shared<std::promise<void>>();
    const std::shared_future<void> gate = open->get_future().share();
    const auto hangs = [gate](const char*, const char*, const addrinfo*, addrinfo**) {
        gate.wait();
        return EAI_AGAIN;
    };
    const auto first = resolve("slow", 80, Clock::now() + std::chrono::milliseconds(20), hangs);
    ASSERT_FALSE(first.ok());
    EXPECT_EQ(first.error().kind(), ErrorKind::timed_out);
    ErrorKind last = ErrorKind::timed_out;
    for (int i = 0; i < 100 && last == ErrorKind::timed_out; ++i)
        last = resolve("slow", 80, Clock::now(), hangs).error().kind();
    EXPECT_EQ(last, ErrorKind::exhausted);
    open->set_value();
    // Those that were left behind end, and names are looked up again.
    const auto until = Clock::now() + std::chrono::seconds(20);
    bool again = false;
    while (!again && Clock::now() < until) again = resolve("localhost", 80, until).ok();
    EXPECT_TRUE(again);
}

}  // namespace
}  // namespace stoker

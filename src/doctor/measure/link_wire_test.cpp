#include "doctor/measure/link_wire.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <thread>

namespace stoker::link_wire {
namespace {

const std::string kNonce(kNonceBytes, 'n');

// A request that was changed on its way, or signed with another token, is not taken: whoever fills a network must have
// been let in.
TEST(LinkWire, OnlyTheTokenOfTheServerSigns) {
    const std::string request = request_text({.want = Want::upload, .warm_up_s = 0.25, .seconds = 2}, kNonce, "secret");
    ASSERT_EQ(request.size(), kRequestBytes);
    EXPECT_TRUE(is_signed(request, kNonce, "secret"));
    EXPECT_FALSE(is_signed(request, kNonce, "Secret"));
    EXPECT_FALSE(is_signed(request, std::string(kNonceBytes, 'm'), "secret"));
    for (std::size_t i = 0; i < request.size(); ++i) {
        std::string changed = request;
        changed[i] = static_cast<char>(changed[i] ^ 1);
        EXPECT_FALSE(is_signed(changed, kNonce, "secret")) << i;
    }
    const auto ask = read_ask(request);
    ASSERT_TRUE(ask.has_value());
    EXPECT_EQ(ask->want, Want::upload);
    EXPECT_DOUBLE_EQ(ask->warm_up_s, 0.25);
    EXPECT_DOUBLE_EQ(ask->seconds, 2);
}

// Longer than a minute, nothing at all, or an unknown wish is refused before anything is done for it.
TEST(LinkWire, AbsurdRequestsAreRefused) {
    EXPECT_FALSE(read_ask(request_text({.want = Want::echo, .warm_up_s = 0, .seconds = 61}, kNonce, "")));
    EXPECT_FALSE(read_ask(request_text({.want = Want::echo, .warm_up_s = 0, .seconds = 0}, kNonce, "")));
    EXPECT_FALSE(read_ask(request_text({.want = static_cast<Want>('?'), .warm_up_s = 0, .seconds = 1}, kNonce, "")));
    EXPECT_FALSE(read_ask("STKLINK1"));
    EXPECT_FALSE(read_ask(std::string(kRequestBytes, 'x')));
}

// What arrived comes back as it was; a cut report is nothing.
TEST(LinkWire, ReportsComeBack) {
    const Arrived arrived = read_report(report_text({.bytes = 123'456'789'012, .seconds = 1.5}));
    EXPECT_EQ(arrived.bytes, 123'456'789'012U);
    EXPECT_DOUBLE_EQ(arrived.seconds, 1.5);
    EXPECT_EQ(read_report("short").bytes, 0U);
    EXPECT_EQ(Arrived{}.rate(), 0);
}

// A rate is what arrived in the window; the sender stops when the receiver leaves.
TEST(LinkWire, WindowsCountWhatArrives) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    UniqueFd sender(ends[0]), receiver(ends[1]);
    const Ask ask{.want = Want::download, .warm_up_s = 0.05, .seconds = 0.2};
    std::jthread sends([&] { send_window(sender.get(), ask, after(30)); });
    const Arrived arrived = receive_window(receiver.get(), ask, after(30));
    receiver.reset();
    EXPECT_GT(arrived.bytes, 0U);
    EXPECT_GE(arrived.seconds, 0.15);
    EXPECT_GT(arrived.rate(), 1e6);
}

// Nobody sends: it ends, with nothing.
TEST(LinkWire, SilenceEnds) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    UniqueFd sender(ends[0]), receiver(ends[1]);
    EXPECT_EQ(
        receive_window(receiver.get(), {.want = Want::download, .warm_up_s = 0, .seconds = 0.01}, after(0.05)).bytes,
        0U);
}

}  // namespace
}  // namespace stoker::link_wire

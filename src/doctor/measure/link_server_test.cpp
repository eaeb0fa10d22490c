#include "doctor/measure/link_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <thread>

#include "doctor/measure/link_speed.h"
#include "doctor/measure/link_wire.h"
#include "io/process.h"

namespace stoker {
namespace {

UniqueFd connected_to(std::uint16_t port) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
}

// Seconds until the other end closes.
bool is_closed_within(int fd, double seconds) {
    std::array<char, 256> bytes{};
    const auto until = link_wire::after(seconds);
    while (link_wire::wait_for(fd, POLLIN, until)) {
        if (::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT) <= 0) return true;
    }
    return false;
}

LinkTest short_test(const LinkServer& server, std::string token) {
    return {.address = host_and_port("127.0.0.1", server.port()),
            .token = std::move(token),
            .seconds = 0.1,
            .warm_up_s = 0.02,
            .streams = 2,
            .messages = 50};
}

// Without a token nobody outside of this machine may fill its network.
TEST(LinkServer, ListensElsewhereOnlyWithAToken) {
    const auto open = LinkServer::start({.address = "0.0.0.0"});
    ASSERT_FALSE(open.ok());
    EXPECT_EQ(open.error().kind(), ErrorKind::denied);
    EXPECT_TRUE(LinkServer::start({.address = "0.0.0.0", .token = "t"}).ok());
    EXPECT_TRUE(LinkServer::start({.address = "127.0.0.2"}).ok());
    EXPECT_EQ(LinkServer::start({.address = "localhost"}).error().kind(), ErrorKind::invalid);
    EXPECT_TRUE(is_loopback_address("::1"));
    EXPECT_FALSE(is_loopback_address("10.0.0.1"));
    EXPECT_FALSE(is_loopback_address("::"));
}

// A port in use is told with what to do.
TEST(LinkServer, PortInUseIsTold) {
    const auto first = LinkServer::start({});
    ASSERT_TRUE(first.ok());
    const auto second = LinkServer::start({.port = (*first)->port()});
    ASSERT_FALSE(second.ok());
    EXPECT_NE(second.error().text().find("in use"), std::string::npos);
}

// A client that says nothing, or nonsense, is gone after a moment, and others are served meanwhile.
TEST(LinkServer, SilentAndStrangeClientsCostNothing) {
    const auto server = LinkServer::start({.token = "t", .hello_s = 0.3});
    ASSERT_TRUE(server.ok());
    const UniqueFd silent = connected_to((*server)->port()), strange = connected_to((*server)->port());
    ASSERT_EQ(::send(strange.get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
    EXPECT_TRUE(is_closed_within(strange.get(), 30));
    EXPECT_TRUE(measure_link(short_test(**server, "t"), link_wire::after(60)).ok());
    EXPECT_TRUE(is_closed_within(silent.get(), 30));
    EXPECT_EQ((*server)->counts().refused, 1U);
}

// However many connect and wait, the newest is heard: the oldest make room.
TEST(LinkServer, TheOldestGuestsMakeRoom) {
    const auto server = LinkServer::start({.token = "t", .max_waiting = 4, .hello_s = 600});
    ASSERT_TRUE(server.ok());
    std::vector<UniqueFd> crowd;
    for (int i = 0; i < 12; ++i) crowd.push_back(connected_to((*server)->port()));
    EXPECT_TRUE(is_closed_within(crowd.front().get(), 30));
    EXPECT_TRUE(measure_link(short_test(**server, "t"), link_wire::after(60)).ok());
}

// More sessions than allowed are told to come later, and an ended server leaves nobody waiting.
TEST(LinkServer, SessionsAreBoundedAndEndWithIt) {
    auto server = LinkServer::start({.max_sessions = 1});
    ASSERT_TRUE(server.ok());
    UniqueFd first = connected_to((*server)->port());
    std::array<char, link_wire::kHelloBytes> hello{};
    ASSERT_TRUE(link_wire::receive_all(first.get(), hello.data(), hello.size(), link_wire::after(30)));
    const std::string_view nonce(hello.data() + 8, link_wire::kNonceBytes);
    const std::string request =
        link_wire::request_text({.want = link_wire::Want::echo, .warm_up_s = 0, .seconds = 50}, nonce, "");
    ASSERT_TRUE(link_wire::send_all(first.get(), request, link_wire::after(30)));
    char answer = 0;
    ASSERT_TRUE(link_wire::receive_all(first.get(), &answer, 1, link_wire::after(30)));
    EXPECT_EQ(answer, 'K');
    const auto second = measure_link(short_test(**server, ""), link_wire::after(30));
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().kind(), ErrorKind::exhausted);
    server->reset();
    EXPECT_TRUE(is_closed_within(first.get(), 30));
}

}  // namespace
}  // namespace stoker

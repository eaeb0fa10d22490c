#include "doctor/measure/link_speed.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>

#include "doctor/measure/link_server.h"
#include "doctor/measure/link_wire.h"

namespace stoker {
namespace {

// Over loopback both ways are measured, with one stream and with several, and what carried them is told.
TEST(LinkSpeed, MeasuresLoopbackBothWays) {
    const auto server = LinkServer::start({.token = "t"});
    ASSERT_TRUE(server.ok());
    const auto speed = measure_link({.address = host_and_port("127.0.0.1", (*server)->port()),
                                     .token = "t",
                                     .seconds = 0.2,
                                     .warm_up_s = 0.05,
                                     .streams = 2,
                                     .messages = 200,
                                     .latency_s = 1},
                                    link_wire::after(120));
    ASSERT_TRUE(speed.ok()) << speed.error().text();
    EXPECT_EQ(speed->one.streams, 1);
    EXPECT_EQ(speed->many.streams, 2);
    for (const double rate : {speed->one.to_peer, speed->one.from_peer, speed->many.to_peer, speed->many.from_peer})
        EXPECT_GT(rate, 1e6);
    EXPECT_GT(speed->messages, 0);
    EXPECT_GT(speed->rtt_p50_s, 0);
    EXPECT_GE(speed->rtt_p99_s, speed->rtt_p50_s);
    EXPECT_EQ(speed->path.interface, "lo");
    EXPECT_EQ(speed->path.interface_mtu, 65536);
    EXPECT_GT(speed->path.path_mtu, 1000);
    EXPECT_FALSE(speed->path.hardware);
    EXPECT_GT(speed->segments, 0U);
}

// The gentle form sends messages alone.
TEST(LinkSpeed, WithoutBandwidthOnlyMessagesPass) {
    const auto server = LinkServer::start({});
    ASSERT_TRUE(server.ok());
    const auto speed = measure_link(
        {.address = host_and_port("127.0.0.1", (*server)->port()), .token = {}, .messages = 20, .bandwidth = false},
        link_wire::after(60));
    ASSERT_TRUE(speed.ok()) << speed.error().text();
    EXPECT_EQ(speed->one.streams, 0);
    EXPECT_EQ(speed->messages, 20);
    EXPECT_EQ(speed->path.interface, "lo");
}

// What is wrong is told apart, with what to do: a closed port, a wrong token, a stranger, an address that is none.
TEST(LinkSpeed, ErrorsSayWhatToDo) {
    std::string closed;
    {
        const auto gone = LinkServer::start({});
        ASSERT_TRUE(gone.ok());
        closed = host_and_port("127.0.0.1", (*gone)->port());
    }
    const auto nobody = measure_link({.address = closed, .token = {}}, link_wire::after(30));
    ASSERT_FALSE(nobody.ok());
    EXPECT_EQ(nobody.error().kind(), ErrorKind::unavailable);
    EXPECT_NE(nobody.error().text().find("stoker doctor serve --listen " + closed), std::string::npos);

    const auto server = LinkServer::start({.token = "right"});
    ASSERT_TRUE(server.ok());
    const auto wrong = measure_link({.address = host_and_port("127.0.0.1", (*server)->port()), .token = "wrong"},
                                    link_wire::after(30));
    ASSERT_FALSE(wrong.ok());
    EXPECT_EQ(wrong.error().kind(), ErrorKind::denied);
    EXPECT_EQ((*server)->counts().denied, 1U);

    for (const char* bad : {"", "host", "host:", ":1", "host:0", "host:65536", "::1:7411", "a b:1", "host:1x"})
        EXPECT_EQ(measure_link({.address = bad, .token = {}}, link_wire::after(5)).error().kind(), ErrorKind::invalid)
            << bad;
    const auto place = parse_host_port("[fd00::5]:7411");
    ASSERT_TRUE(place.ok());
    EXPECT_EQ(place->host, "fd00::5");
    EXPECT_EQ(place->port, 7411);
}

// A listener that takes the connection and says nothing does not hold us.
TEST(LinkSpeed, AMuteListenerDoesNotHoldUs) {
    UniqueFd mute(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::bind(mute.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(mute.get(), 4), 0);
    socklen_t size = sizeof address;
    ASSERT_EQ(::getsockname(mute.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    const auto speed = measure_link({.address = host_and_port("127.0.0.1", ntohs(address.sin_port)), .token = {}},
                                    link_wire::after(0.3));
    ASSERT_FALSE(speed.ok());
    EXPECT_EQ(speed.error().kind(), ErrorKind::unsupported);
}

}  // namespace
}  // namespace stoker

// How fast the network to another node is: bandwidth each way, round trips, path MTU, and what carried it. Nothing but
// TCP, against a LinkServer (link_server.h) at the other node.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace stoker {

struct LinkTest {
    std::string address;  // HOST:PORT
    std::string token;    // of the server
    // Of each measurement; the warm-up comes before and does not count: connections begin slowly.
    double seconds = 2, warm_up_s = 0.3;
    int streams = 4;         // of the second bandwidth measurement, each way; 1: only one stream is tried
    bool one_stream = true;  // false: only `streams` together are tried
    int messages = 2000;     // round trips, but no longer than latency_s
    double latency_s = 0.5;
    bool bandwidth = true;  // false: a few messages, which no work beside notices
};

struct LinkRate {
    int streams = 0;                    // 0: not measured
    double to_peer = 0, from_peer = 0;  // bytes/s that arrived, of the payload
};
struct LinkPath {
    std::string local, peer;           // addresses
    std::string interface;             // that carries it; empty: not found out
    std::string gateway;               // of the route; empty: direct, or not known
    int interface_mtu = 0;             // bytes; 0: not known
    int path_mtu = 0;                  // what a packet to the peer may have
    double interface_bytes_per_s = 0;  // what its driver says; 0: it says nothing
    bool hardware = false;             // a device, and not one that the kernel makes: the speed above is a fact
};
struct LinkSpeed {
    LinkRate one, many;
    double rtt_p50_s = 0, rtt_p99_s = 0;
    int messages = 0;  // that the two come from
    LinkPath path;
    std::uint64_t segments = 0, retransmits = 0;  // that we sent, over all connections
    double best_to_peer() const { return one.to_peer > many.to_peer ? one.to_peer : many.to_peer; }
    double best_from_peer() const { return one.from_peer > many.from_peer ? one.from_peer : many.from_peer; }
};

// The kind says what is wrong: unavailable: the host answers and nothing listens there; timed_out: it does not answer,
// or there is no route; denied: wrong token; exhausted: too many measure at once; unsupported: something else listens.
Result<LinkSpeed> measure_link(const LinkTest& test, std::chrono::steady_clock::time_point deadline);

// The interface, its MTU and the gateway towards a connected socket's peer. `root`: of /proc and /sys, for tests.
LinkPath path_of_socket(int fd, const std::string& root = "/");

struct HostPort {
    std::string host;
    std::uint16_t port = 0;
};
Result<HostPort> parse_host_port(std::string_view text);  // HOST:PORT, [::1]:7411

}  // namespace stoker

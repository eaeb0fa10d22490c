#include "doctor/measure/link_speed.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

#include "base/text.h"
#include "doctor/measure/link_server.h"
#include "doctor/measure/link_wire.h"
#include "io/http/resolve.h"

namespace stoker::link_wire {
namespace {

constexpr double kConnectS = 3, kGreetS = 3;

struct Peer {
    Addresses addresses;
    std::string text, host, token;
    std::uint16_t port = 0;
};

Error no_connection(const Peer& peer, int code) {
    if (code == ECONNREFUSED)
        return Error(ErrorKind::unavailable, fmt::format("nothing listens at {}", peer.text), {},
                     fmt::format("start it there: stoker doctor serve --listen {} --link-token FILE", peer.text));
    if (code == ETIMEDOUT)
        return Error(ErrorKind::timed_out, fmt::format("{} does not answer", peer.text), {},
                     fmt::format("is the host up, and does a firewall or a network security group let TCP port {} "
                                 "through?",
                                 peer.port));
    if (code == EHOSTUNREACH || code == ENETUNREACH)
        return Error(ErrorKind::timed_out, fmt::format("there is no way to {}: {}", peer.text, std::strerror(code)), {},
                     fmt::format("ip route get {}", peer.host));
    return Error(code == EMFILE || code == ENFILE ? ErrorKind::exhausted : ErrorKind::timed_out,
                 fmt::format("cannot connect to {}: {}", peer.text, std::strerror(code)));
}

Result<UniqueFd> connect_to(const Peer& peer, Deadline given) {
    const Deadline deadline = std::min(given, after(kConnectS));
    int code = EHOSTUNREACH;
    for (const addrinfo* each = peer.addresses.get(); each != nullptr; each = each->ai_next) {
        UniqueFd fd(::socket(each->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        if (!fd) {
            code = errno;
            continue;
        }
        if (::connect(fd.get(), each->ai_addr, each->ai_addrlen) != 0 && errno != EINPROGRESS) {
            code = errno;
            continue;
        }
        if (!wait_for(fd.get(), POLLOUT, deadline)) {
            code = ETIMEDOUT;
            continue;
        }
        socklen_t size = sizeof code;
        if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &code, &size) == 0 && code == 0) return fd;
    }
    return no_connection(peer, code);
}

// A connection on which the server has agreed to what is asked.
Result<UniqueFd> open_session(const Peer& peer, const Ask& ask, Deadline given) {
    TRY(UniqueFd fd, connect_to(peer, given));
    const Deadline deadline = std::min(given, after(kGreetS));
    const auto stranger = [&] {
        return Error(ErrorKind::unsupported,
                     fmt::format("what listens at {} is no `stoker doctor serve`, or it has no time", peer.text), {},
                     "its port is printed when it starts");
    };
    std::array<char, kHelloBytes> hello{};
    if (!receive_all(fd.get(), hello.data(), hello.size(), deadline)) return stranger();
    const std::string_view text(hello.data(), hello.size());
    if (!text.starts_with(kMagic)) return stranger();
    char answer = 0;
    if (!send_all(fd.get(), request_text(ask, text.substr(kMagic.size()), peer.token), deadline) ||
        !receive_all(fd.get(), &answer, 1, deadline))
        return stranger();
    switch (static_cast<LinkAnswer>(answer)) {
        case LinkAnswer::yes: return fd;
        case LinkAnswer::denied:
            return Error(
                ErrorKind::denied,
                fmt::format("{} does not take {}", peer.text, peer.token.empty() ? "us without a token" : "this token"),
                {}, "--link-token FILE, with the file that `stoker doctor serve` has there");
        case LinkAnswer::busy:
            return Error(ErrorKind::exhausted, peer.text + " is measured by too many others now", {},
                         "try again later");
        case LinkAnswer::wrong: break;
    }
    return Error(ErrorKind::unsupported, peer.text + " does not understand what is asked", {},
                 "is it the same version of stoker?");
}

// As the kernel fills it (linux/tcp.h, whose names clash with those of netinet/tcp.h); that of glibc 2.36 ends early.
struct KernelTcpInfo {
    tcp_info known;
    std::uint64_t pacing_rate, max_pacing_rate, bytes_acked, bytes_received;
    std::uint32_t segs_out, segs_in;
};
static_assert(offsetof(KernelTcpInfo, segs_out) == 136);

std::optional<KernelTcpInfo> tcp_info_of(int fd) {
    KernelTcpInfo info{};
    socklen_t size = sizeof info;
    if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
    return info;
}

// How often each connection sent, and sent again.
class SegmentCount {
public:
    void add(int fd) {
        const auto info = tcp_info_of(fd);
        if (!info) return;
        const std::lock_guard guard(mutex_);
        segments_ += info->segs_out;
        again_ += info->known.tcpi_total_retrans;
    }
    void into(LinkSpeed& speed) const {
        speed.segments = segments_;
        speed.retransmits = again_;
    }

private:
    std::mutex mutex_;  // guards both below
    std::uint64_t segments_ = 0, again_ = 0;
};

Status measure_messages(const Peer& peer, const LinkTest& test, Deadline deadline, LinkSpeed& speed,
                        SegmentCount& segments) {
    constexpr int kWarmUp = 10;  // the first ones wake the other end up
    const Ask ask{.want = Want::echo, .warm_up_s = 0, .seconds = std::min(test.latency_s + 1, kMostSeconds)};
    TRY(UniqueFd fd, open_session(peer, ask, deadline));
    const int on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    std::array<char, kMessageBytes> message{};
    std::vector<double> took;
    const Deadline end = std::min(deadline, after(test.latency_s));
    for (int i = 0; i < test.messages + kWarmUp; ++i) {
        const Deadline begin = std::chrono::steady_clock::now();
        if (begin >= end && !took.empty()) break;
        // One answer is waited for longer than all together may take: a slow network is told, not cut off.
        const Deadline latest = std::min(deadline, after(std::max(test.latency_s, 1.0)));
        if (!send_all(fd.get(), {message.data(), message.size()}, latest) ||
            !receive_all(fd.get(), message.data(), message.size(), latest)) {
            if (!took.empty()) break;
            return Error(ErrorKind::timed_out, fmt::format("{} took the connection and answers no message", peer.text));
        }
        if (i >= kWarmUp)
            took.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    segments.add(fd.get());
    discard_on_close(fd.get());
    if (took.empty())
        return Error(ErrorKind::timed_out, fmt::format("no round trip to {} within {:g} s", peer.text, test.latency_s));
    std::sort(took.begin(), took.end());
    speed.messages = static_cast<int>(took.size());
    speed.rtt_p50_s = took[took.size() / 2];
    speed.rtt_p99_s = took[std::min(took.size() - 1, took.size() * 99 / 100)];
    return done();
}

// The payload that arrived a second, over all streams.
Result<double> measure_rate(const Peer& peer, const LinkTest& test, Want want, int streams, Deadline deadline,
                            LinkPath& path, SegmentCount& segments) {
    const Ask ask{.want = want, .warm_up_s = test.warm_up_s, .seconds = test.seconds};
    std::vector<UniqueFd> sockets;
    for (int i = 0; i < streams; ++i) {
        TRY(UniqueFd fd, open_session(peer, ask, deadline));
        sockets.push_back(std::move(fd));
    }
    std::vector<Arrived> arrived(sockets.size());
    std::vector<int> told(sockets.size(), 0);
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < sockets.size(); ++i)
            threads.emplace_back([&, i, fd = sockets[i].get()] {
                if (want == Want::download) {
                    arrived[i] = receive_window(fd, ask, deadline);
                    told[i] = 1;
                } else {
                    send_window(fd, ask, deadline);
                    std::array<char, kReportBytes> report{};
                    told[i] = receive_all(fd, report.data(), report.size(), std::min(deadline, after(5))) ? 1 : 0;
                    if (told[i] != 0) arrived[i] = read_report({report.data(), report.size()});
                }
                segments.add(fd);
            });
    }
    path = path_of_socket(sockets.front().get());
    double rate = 0;
    for (std::size_t i = 0; i < sockets.size(); ++i) {
        discard_on_close(sockets[i].get());
        if (told[i] == 0)
            return Error(ErrorKind::timed_out,
                         fmt::format("{} did not say what arrived: the connection broke while data passed", peer.text));
        rate += arrived[i].rate();
    }
    return rate;
}

std::string address_text(const sockaddr_storage& storage) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (storage.ss_family == AF_INET)
        ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(storage).sin_addr, text.data(), text.size());
    if (storage.ss_family == AF_INET6) {
        const in6_addr& address = reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr;
        if (IN6_IS_ADDR_V4MAPPED(&address))
            ::inet_ntop(AF_INET, &address.s6_addr[12], text.data(), text.size());
        else
            ::inet_ntop(AF_INET6, &address, text.data(), text.size());
    }
    return text.data();
}

std::string sockaddr_host(const sockaddr* address) {
    if (address == nullptr || (address->sa_family != AF_INET && address->sa_family != AF_INET6)) return {};
    sockaddr_storage storage{};
    std::memcpy(&storage, address, address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    return address_text(storage);
}

// The interface with this address, and the loopback interface.
std::string interface_with(const std::string& address, std::string* loopback) {
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return {};
    std::string found;
    for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
        if ((each->ifa_flags & IFF_LOOPBACK) != 0) *loopback = each->ifa_name;
        if (found.empty() && sockaddr_host(each->ifa_addr) == address) found = each->ifa_name;
    }
    ::freeifaddrs(list);
    return found;
}

struct RouteLine {
    std::string interface, gateway;
};
// The longest prefix of /proc/net/route that holds the address; IPv4 alone.
std::optional<RouteLine> route_to(const std::string& address, const std::string& root) {
    in_addr wanted{};
    if (::inet_pton(AF_INET, address.c_str(), &wanted) != 1) return std::nullopt;
    std::ifstream file(root + "proc/net/route");
    std::string line;
    std::getline(file, line);
    std::optional<RouteLine> best;
    std::uint32_t best_mask = 0;
    for (int lines = 0; std::getline(file, line) && lines < 100'000; ++lines) {
        const auto words = split_words(line);
        if (words.size() < 8) continue;
        const auto hexadecimal = [&](std::size_t at) {
            std::uint32_t value = 0;
            std::from_chars(words[at].data(), words[at].data() + words[at].size(), value, 16);
            return value;  // in network order, as the kernel prints the bytes in memory
        };
        const std::uint32_t to = hexadecimal(1), gateway = hexadecimal(2), mask = hexadecimal(7);
        if ((wanted.s_addr & mask) != to || (best && ntohl(mask) < best_mask)) continue;
        best_mask = ntohl(mask);
        best = RouteLine{.interface = std::string(words[0]), .gateway = {}};
        if (gateway != 0) {
            sockaddr_storage storage{};
            storage.ss_family = AF_INET;
            reinterpret_cast<sockaddr_in&>(storage).sin_addr.s_addr = gateway;
            best->gateway = address_text(storage);
        }
    }
    return best;
}

double number_in_file(const std::string& path) {
    std::ifstream file(path);
    double value = 0;
    file >> value;
    return file ? value : 0;
}

// What a packet to the peer may have: what the kernel has learnt of the path, and what the peer has said that it takes.
int path_mtu_of(int fd) {
    const auto info = tcp_info_of(fd);
    if (!info) return 0;
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size);
    const int headers =
        (peer.ss_family == AF_INET6 ? 40 : 20) + 20 + ((info->known.tcpi_options & TCPI_OPT_TIMESTAMPS) != 0 ? 12 : 0);
    const int from_segments = static_cast<int>(info->known.tcpi_snd_mss) + headers,
              known = static_cast<int>(info->known.tcpi_pmtu);
    // Segments of 16 KiB and more (loopback) are cut by the window, not by the path.
    return from_segments < 16384 ? std::min(known, from_segments) : known;
}

}  // namespace
}  // namespace stoker::link_wire

namespace stoker {

LinkPath path_of_socket(int fd, const std::string& root) {
    namespace wire = link_wire;
    LinkPath path;
    sockaddr_storage local{}, peer{};
    socklen_t size = sizeof local;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&local), &size) != 0) return path;
    size = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return path;
    path.local = wire::address_text(local);
    path.peer = wire::address_text(peer);
    path.path_mtu = wire::path_mtu_of(fd);
    std::string loopback, mine = wire::interface_with(path.local, &loopback), unused;
    if (!wire::interface_with(path.peer, &unused).empty()) {
        path.interface = loopback;  // between addresses of one machine nothing else is used
    } else if (const auto route = wire::route_to(path.peer, root)) {
        path.interface = route->interface;
        path.gateway = route->gateway;
    } else {
        path.interface = mine;
    }
    if (path.interface.empty() || path.interface.find('/') != std::string::npos) return path;
    const std::string folder = root + "sys/class/net/" + path.interface + "/";
    ifreq request{};
    std::strncpy(request.ifr_name, path.interface.c_str(), IFNAMSIZ - 1);
    // Of the socket's own network namespace; /sys may be mounted from another.
    if (::ioctl(fd, SIOCGIFMTU, &request) == 0) path.interface_mtu = request.ifr_mtu;
    path.interface_bytes_per_s = std::max(0.0, wire::number_in_file(folder + "speed")) * 1e6 / 8;
    std::error_code code;
    path.hardware = std::filesystem::exists(folder + "device", code);
    return path;
}

Result<HostPort> parse_host_port(std::string_view text) {
    const auto wrong = [&](std::string_view what) {
        return Error(ErrorKind::invalid, fmt::format("{} in '{}'", what, printable(text, 80)), {},
                     "expected HOST:PORT, such as 10.0.0.5:7411, node-3:7411 or [fd00::5]:7411");
    };
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return wrong("no port");
    std::string_view host = text.substr(0, colon);
    const std::string_view port = text.substr(colon + 1);
    if (host.starts_with('[') && host.ends_with(']'))
        host = host.substr(1, host.size() - 2);
    else if (host.find(':') != std::string_view::npos)
        return wrong("an IPv6 address without brackets");
    if (host.empty() || host.size() > 253 || host.find_first_of(" \t/\n") != std::string_view::npos)
        return wrong("no host");
    unsigned number = 0;
    const auto [end, failed] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (failed != std::errc() || end != port.data() + port.size() || number == 0 || number > 65535)
        return wrong("no port from 1 to 65535");
    return HostPort{std::string(host), static_cast<std::uint16_t>(number)};
}

Result<LinkSpeed> measure_link(const LinkTest& test, std::chrono::steady_clock::time_point deadline) {
    namespace wire = link_wire;
    TRY(const HostPort place, parse_host_port(test.address));
    wire::Peer peer{.addresses = nullptr,
                    .text = host_and_port(place.host, place.port),
                    .host = place.host,
                    .token = test.token,
                    .port = place.port};
    TRY(peer.addresses, resolve(place.host, place.port, std::min(deadline, wire::after(wire::kConnectS))));
    LinkSpeed speed;
    wire::SegmentCount segments;
    TRY_VOID(wire::measure_messages(peer, test, deadline, speed, segments));
    if (!test.bandwidth) {
        TRY(const UniqueFd fd,
            wire::open_session(peer, {.want = wire::Want::echo, .warm_up_s = 0, .seconds = 1}, deadline));
        speed.path = path_of_socket(fd.get());
        segments.into(speed);
        return speed;
    }
    const auto both_ways = [&](int streams, LinkRate& rate) -> Status {
        TRY(rate.to_peer, wire::measure_rate(peer, test, wire::Want::upload, streams, deadline, speed.path, segments));
        LinkPath ignored;
        TRY(rate.from_peer, wire::measure_rate(peer, test, wire::Want::download, streams, deadline, ignored, segments));
        rate.streams = streams;
        return done();
    };
    if (test.one_stream || test.streams < 2) TRY_VOID(both_ways(1, speed.one));
    if (test.streams > 1) TRY_VOID(both_ways(test.streams, speed.many));
    segments.into(speed);
    return speed;
}

}  // namespace stoker

#include "deploy/slurm/wire.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>

namespace stoker::slurm {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMostLine = 16u << 20;  // an order with a large environment
// A node that is gone says nothing: after so long it is asked, and after two questions without an answer it is lost.
constexpr int kHeartbeatS = 10, kMissed = 2;

}  // namespace

Wire::Wire(UniqueFd socket) : socket_(std::move(socket)) {
    const int on = 1;
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_KEEPIDLE, &kHeartbeatS, sizeof kHeartbeatS);
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_KEEPINTVL, &kHeartbeatS, sizeof kHeartbeatS);
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_KEEPCNT, &kMissed, sizeof kMissed);
    // The same for what was sent and is not taken.
    constexpr int kUntakenMs = 1000 * kHeartbeatS * (1 + kMissed);
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &kUntakenMs, sizeof kUntakenMs);
    ::fcntl(socket_.get(), F_SETFL, O_NONBLOCK);
    ::fcntl(socket_.get(), F_SETFD, FD_CLOEXEC);
}

Result<Wire> Wire::connect(const std::string& host, double limit_s) {
    const std::size_t colon = host.rfind(':');
    if (colon == std::string::npos) return Error(ErrorKind::invalid, "no ADDRESS:PORT: " + host);
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const std::string address = host.substr(0, colon), port = host.substr(colon + 1);
    if (const int code = ::getaddrinfo(address.c_str(), port.c_str(), &wanted, &found); code != 0)
        return Error(ErrorKind::unavailable, "cannot find " + address + ": " + ::gai_strerror(code));
    UniqueFd socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int begun = ::connect(socket.get(), found->ai_addr, found->ai_addrlen);
    int code = begun == 0 ? 0 : errno;
    ::freeaddrinfo(found);
    if (code == EINPROGRESS) {
        pollfd wait{.fd = socket.get(), .events = POLLOUT, .revents = 0};
        socklen_t size = sizeof code;
        code = ETIMEDOUT;
        if (::poll(&wait, 1, static_cast<int>(limit_s * 1000)) > 0)
            ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &code, &size);
    }
    if (code != 0) return Error(ErrorKind::unavailable, "cannot reach " + host + ": " + std::strerror(code));
    return Wire(std::move(socket));
}

void Wire::say(const Json& message) {
    out_ += message.dump(0) + "\n";
    write_some();
}

void Wire::write_some() {
    while (socket_ && !out_.empty()) {
        const ssize_t put = ::send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0 && errno == EAGAIN) return;
        if (put < 0) return close();
        out_.erase(0, static_cast<std::size_t>(put));
    }
}

bool Wire::turn() {
    write_some();
    std::array<char, 65536> block{};
    while (socket_) {
        const ssize_t got = ::recv(socket_.get(), block.data(), block.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) return true;
        if (got <= 0 || in_.size() > kMostLine) {
            close();
            break;
        }
        in_.append(block.data(), static_cast<std::size_t>(got));
    }
    return false;
}

std::optional<Document> Wire::next() {
    const std::size_t end = in_.find('\n');
    if (end == std::string::npos) return std::nullopt;
    auto message = Document::parse_json(in_.substr(0, end), "message");
    in_.erase(0, end + 1);
    if (message && message->root().is_mapping()) return std::move(*message);
    in_.clear();
    close();
    return std::nullopt;
}

void Wire::flush(double limit_s) {
    const auto until = Clock::now() + duration_of(limit_s);
    for (write_some(); socket_ && !out_.empty(); write_some()) {
        pollfd wait{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
        const int left = milliseconds_until(until);
        if (left == 0) return;
        ::poll(&wait, 1, left);
    }
}

Clock::duration duration_of(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::clamp(seconds, 0.0, 3e7)));
}

Result<UniqueFd> listen_anywhere(int& port, int backlog) {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (backlog > 0 ? SOCK_NONBLOCK : 0), 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    socklen_t size = sizeof address;
    if (!socket || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
        (backlog > 0 && ::listen(socket.get(), backlog) != 0))
        return Error(ErrorKind::unavailable, std::string("no TCP port is free: ") + std::strerror(errno));
    port = ntohs(address.sin_port);
    return socket;
}

std::string text_of(const Node& message, std::string_view key) {
    const Node* found = message.find(key);
    return found == nullptr || !found->is_scalar() ? std::string() : found->text;
}

std::int64_t number_of(const Node& message, std::string_view key) {
    const Node* found = message.find(key);
    if (found == nullptr || found->kind != NodeKind::number) return 0;
    std::int64_t value = 0;
    std::from_chars(found->text.data(), found->text.data() + found->text.size(), value);
    return value;
}

}  // namespace stoker::slurm

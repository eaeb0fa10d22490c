#include "serve/gateway/upstream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "serve/gateway/exchange.h"
#include "serve/gateway/loop.h"

namespace stoker::gateway {
namespace {

constexpr std::size_t kMostIdle = 1024;
constexpr int kReadsOfATurn = 4;

}  // namespace

UpstreamConnection::~UpstreamConnection() = default;

std::uint64_t UpstreamConnection::replica_id() const {
    return replica_.id;
}

UpstreamConnection* UpstreamConnection::obtain(Loop& loop, Replica& replica, const UpstreamSetup& upstream,
                                               bool fresh) {
    if (!fresh && !replica.idle.empty()) {
        UpstreamConnection* known = replica.idle.back();
        replica.idle.pop_back();
        known->idle_ = false;
        return known;
    }
    auto made = std::make_unique<UpstreamConnection>(loop, replica);
    made->socket_.reset(::socket(upstream.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!made->socket_) return nullptr;
    const int on = 1;
    ::setsockopt(made->socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const int code =
        ::connect(made->socket_.get(), reinterpret_cast<const sockaddr*>(&upstream.address), upstream.address_size);
    made->connecting_ = code != 0;
    if (code != 0 && errno != EINPROGRESS) return nullptr;
    made->watched_ = EPOLLIN | (made->connecting_ ? EPOLLOUT : 0u);
    if (!loop.poller().add(made->socket_.get(), made.get(), made->watched_)) return nullptr;
    ++replica.connections;
    UpstreamConnection* connection = made.get();
    loop.keep(std::move(made));
    return connection;
}

void UpstreamConnection::begin(Exchange* exchange, std::string_view request) {
    exchange_ = exchange;
    request_ = request;
    ++uses_;
    if (!connecting_) write();
}

void UpstreamConnection::watch(std::uint32_t events) {
    if (events == watched_) return;
    watched_ = events;
    loop_.poller().change(socket_.get(), this, events);
}

void UpstreamConnection::on_ready(std::uint32_t events) {
    if (!socket_) return;
    if (exchange_ == nullptr) return drop();  // idle, and it closed or speaks without being asked
    if (connecting_) {
        int error = 0;
        socklen_t size = sizeof error;
        ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
        if (error != 0)
            return exchange_->upstream_failed(error == ECONNREFUSED ? ReplicaOutcome::refused
                                                                    : ReplicaOutcome::unreachable);
        connecting_ = false;
    }
    if ((events & EPOLLOUT) != 0 && !request_.empty()) write();
    // Paused, an error is not looked at either: what was received before it is read first.
    if (socket_ && exchange_ != nullptr && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !paused_) read();
}

void UpstreamConnection::write() {
    while (!request_.empty()) {
        const ssize_t size = ::send(socket_.get(), request_.data(), request_.size(), MSG_NOSIGNAL);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0 && errno != EAGAIN) {
            request_ = {};  // an answer may be there all the same: reading tells
            break;
        }
        if (size < 0) break;
        request_.remove_prefix(static_cast<std::size_t>(size));
    }
    watch((paused_ ? 0u : static_cast<std::uint32_t>(EPOLLIN)) | (request_.empty() ? 0u : EPOLLOUT));
}

void UpstreamConnection::read() {
    for (int i = 0; i < kReadsOfATurn; ++i) {
        const ssize_t size = ::recv(socket_.get(), loop_.scratch(), loop_.scratch_size(), 0);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0 && errno == EAGAIN) return;
        if (size <= 0) return exchange_->upstream_closed();
        const auto got = static_cast<std::size_t>(size);
        exchange_->upstream_sent({loop_.scratch(), got});
        // It may have ended, or gone on to another one.
        if (!socket_ || exchange_ == nullptr || paused_ || got < loop_.scratch_size()) return;
    }
}

void UpstreamConnection::pause(bool paused) {
    if (paused_ == paused || !socket_) return;
    paused_ = paused;
    watch((paused ? 0u : static_cast<std::uint32_t>(EPOLLIN)) | (request_.empty() && !connecting_ ? 0u : EPOLLOUT));
}

void UpstreamConnection::release() {
    if (!request_.empty() || replica_.idle.size() >= kMostIdle) return drop();
    exchange_ = nullptr;
    pause(false);
    idle_ = true;
    replica_.idle.push_back(this);
}

void UpstreamConnection::drop() {
    if (!socket_) return;
    if (idle_) std::erase(replica_.idle, this);
    --replica_.connections;
    idle_ = false;
    exchange_ = nullptr;
    loop_.poller().remove(socket_.get());
    socket_.reset();
    loop_.connection_ended(this);
}

}  // namespace stoker::gateway

#include "serve/gateway/upstream.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "serve/gateway/exchange.h"
#include "serve/gateway/loop.h"

namespace stoker::gateway {
namespace {

constexpr std::size_t kMostIdle = 1024;
constexpr int kReadsOfATurn = 4, kTlsReadsOfATurn = 64;

void free_tls(ssl_st* tls) {
    SSL_free(tls);
}

}  // namespace

UpstreamConnection::UpstreamConnection(Loop& loop, Replica& replica)
    : loop_(loop), replica_(replica), tls_(nullptr, free_tls) {}

UpstreamConnection::~UpstreamConnection() = default;

bool UpstreamConnection::connecting() const {
    return connecting_ || (tls_ && SSL_is_init_finished(tls_.get()) == 0);
}

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
    if (upstream.tls && !made->begin_tls(upstream)) {
        loop.poller().remove(made->socket_.get());
        return nullptr;
    }
    ++replica.connections;
    UpstreamConnection* connection = made.get();
    loop.keep(std::move(made));
    return connection;
}

// Its certificate has to be for the host that the file names, by authorities that the model trusts.
bool UpstreamConnection::begin_tls(const UpstreamSetup& upstream) {
    tls_.reset(SSL_new(upstream.tls.get()));
    if (!tls_ || SSL_set_fd(tls_.get(), socket_.get()) != 1) return false;
    in6_addr address;
    const bool is_address = ::inet_pton(AF_INET, upstream.host.c_str(), &address) == 1 ||
                            ::inet_pton(AF_INET6, upstream.host.c_str(), &address) == 1;
    const bool named = is_address
                           ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls_.get()), upstream.host.c_str()) == 1
                           : SSL_set1_host(tls_.get(), upstream.host.c_str()) == 1 &&
                                 SSL_set_tlsext_host_name(tls_.get(), upstream.host.c_str()) == 1;
    SSL_set_connect_state(tls_.get());
    return named;
}

ssize_t UpstreamConnection::receive(char* buffer, std::size_t size) {
    if (!tls_) return ::recv(socket_.get(), buffer, size, 0);
    ERR_clear_error();
    const int got = SSL_read(tls_.get(), buffer, static_cast<int>(size));
    if (got > 0) return got;
    const int why = SSL_get_error(tls_.get(), got);
    tls_wants_write_ = why == SSL_ERROR_WANT_WRITE;
    if (why == SSL_ERROR_ZERO_RETURN) return 0;
    errno = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? EAGAIN : ECONNRESET;
    return -1;
}

ssize_t UpstreamConnection::transmit(std::string_view bytes) {
    if (!tls_) return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ERR_clear_error();
    const int sent =
        SSL_write(tls_.get(), bytes.data(), static_cast<int>(std::min<std::size_t>(bytes.size(), 1u << 20)));
    if (sent > 0) return sent;
    const int why = SSL_get_error(tls_.get(), sent);
    // While the handshake waits for the other side there is nothing to write.
    tls_wants_write_ = why == SSL_ERROR_WANT_WRITE;
    errno = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? EAGAIN : ECONNRESET;
    return -1;
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
    if (exchange_ == nullptr) {
        // Idle, and it closed or speaks without being asked. Inside TLS that may be a ticket, which is nothing.
        if (tls_ && receive(loop_.scratch(), loop_.scratch_size()) < 0 && errno == EAGAIN) return;
        return drop();
    }
    if (connecting_) {
        int error = 0;
        socklen_t size = sizeof error;
        ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
        if (error != 0)
            return exchange_->upstream_failed(
                this, error == ECONNREFUSED ? ReplicaOutcome::refused : ReplicaOutcome::unreachable);
        connecting_ = false;
    }
    // Inside TLS what has to be written may wait for something to be read.
    if (((events & EPOLLOUT) != 0 || tls_) && !request_.empty()) write();
    // Paused, an error is not looked at either: what was received before it is read first.
    if (socket_ && exchange_ != nullptr && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !paused_) read();
}

void UpstreamConnection::write() {
    while (!request_.empty()) {
        const ssize_t size = transmit(request_);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0 && errno != EAGAIN) {
            request_ = {};  // an answer may be there all the same: reading tells
            break;
        }
        if (size < 0) break;
        request_.remove_prefix(static_cast<std::size_t>(size));
    }
    const bool waits_for_room = tls_ ? tls_wants_write_ : !request_.empty();
    watch((paused_ ? 0u : static_cast<std::uint32_t>(EPOLLIN)) | (waits_for_room ? EPOLLOUT : 0u));
}

void UpstreamConnection::read() {
    for (int i = 0; i < (tls_ ? kTlsReadsOfATurn : kReadsOfATurn); ++i) {
        const ssize_t size = receive(loop_.scratch(), loop_.scratch_size());
        if (size < 0 && errno == EINTR) continue;
        if (size < 0 && errno == EAGAIN) return;
        if (size <= 0) return exchange_->upstream_closed(this);
        const auto got = static_cast<std::size_t>(size);
        exchange_->upstream_sent(this, {loop_.scratch(), got});
        // It may have ended, or gone on to another one.
        if (!socket_ || exchange_ == nullptr || paused_ || (got < loop_.scratch_size() && !tls_)) return;
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
    tls_.reset();
    socket_.reset();
    loop_.connection_ended(this);
}

}  // namespace stoker::gateway

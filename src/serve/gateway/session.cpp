#include "serve/gateway/session.h"

#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "io/http/http2.h"
#include "serve/gateway/exchange.h"
#include "serve/gateway/http2_session.h"
#include "serve/gateway/loop.h"

namespace stoker::gateway {
namespace {

constexpr std::size_t kMostBehind = 64 * 1024;  // pipelined, while a request is under way
constexpr std::size_t kKeptCapacity = 2048;     // of a session that waits

void free_ssl(ssl_st* tls) {
    SSL_free(tls);
}

// The address of the other end, without its port.
std::string peer_of(int socket) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    char host[NI_MAXHOST] = {};
    if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
    if (::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0)
        return {};
    return host;
}

}  // namespace

Session::Session(Loop& loop, UniqueFd socket, bool own)
    : GatewayClient(loop, own),
      socket_(std::move(socket)),
      tls_(nullptr, free_ssl),
      parser_(limits_of_requests(*setup_)),
      own_(own),
      since_us_(monotonic_clock_us()) {
    ++loop_.shared().counters.open_sessions;
    if (loop_.shared().tls && !own) {
        tls_.reset(SSL_new(loop_.shared().tls.get()));
        if (tls_ && SSL_set_fd(tls_.get(), socket_.get()) == 1) SSL_set_accept_state(tls_.get());
    }
    if (loop_.shared().access) known_as(peer_of(socket_.get()));
    watched_ = EPOLLIN;
    if (!loop_.poller().add(socket_.get(), this, watched_)) dead_ = true;
}

Session::~Session() {
    --loop_.shared().counters.open_sessions;
}

ssize_t Session::receive(char* buffer, std::size_t size) {
    if (!tls_) return ::recv(socket_.get(), buffer, size, 0);
    ERR_clear_error();  // of another session, which would be taken for ours
    const int got = SSL_read(tls_.get(), buffer, static_cast<int>(size));
    if (got > 0) return got;
    const int why = SSL_get_error(tls_.get(), got);
    tls_wants_write_ = why == SSL_ERROR_WANT_WRITE;
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
        errno = EAGAIN;
        return -1;
    }
    if (why == SSL_ERROR_ZERO_RETURN) return 0;
    errno = ECONNRESET;
    return -1;
}

ssize_t Session::transmit(std::string_view bytes) {
    if (!tls_) return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ERR_clear_error();
    const int sent =
        SSL_write(tls_.get(), bytes.data(), static_cast<int>(std::min<std::size_t>(bytes.size(), 1u << 20)));
    if (sent > 0) return sent;
    const int why = SSL_get_error(tls_.get(), sent);
    errno = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? EAGAIN : ECONNRESET;
    return -1;
}

void Session::watch() {
    const std::size_t most = kMostBehind;
    std::uint32_t events = eof_ || rest_.size() >= most ? 0u : static_cast<std::uint32_t>(EPOLLIN);
    if (backlog() > 0 || tls_wants_write_) events |= EPOLLOUT;
    if (events == watched_ || !socket_) return;
    watched_ = events;
    loop_.poller().change(socket_.get(), this, events);
}

void Session::on_ready(std::uint32_t events) {
    if (dead_) return;
    if ((events & EPOLLERR) != 0 || ((events & EPOLLHUP) != 0 && (events & EPOLLIN) == 0)) return close();
    if ((events & EPOLLOUT) != 0) flush();
    if (!dead_ && ((events & EPOLLIN) != 0 || tls_wants_write_)) read();
    if (!dead_) watch();
}

void Session::read() {
    while (!dead_) {
        const ssize_t size = receive(loop_.scratch(), loop_.scratch_size());
        if (size < 0 && errno == EINTR) continue;
        if (size < 0 && errno == EAGAIN) return;
        if (size < 0) return close();
        if (size == 0) {
            eof_ = true;
            // Inside TLS nobody half-closes, and HTTP/2 ends by saying so.
            if (tls_ || http2_ || (!exchange_ && aside_ == 0 && backlog() == 0)) return close();
            if (!exchange_ && aside_ == 0) closing_ = true;
            return probe();
        }
        const auto got = static_cast<std::size_t>(size);
        take({loop_.scratch(), got});
        if (got < loop_.scratch_size() && !tls_) return;
        if (rest_.size() >= kMostBehind) return;
    }
}

// The client sends no more. Has it left, or does it only wait for its answer? A byte that means nothing brings a reset
// in the first case.
void Session::probe() {
    if (!exchange_ || http_1_0_ || backlog() > 0) return;
    if (exchange_->head_shown()) {
        if (!exchange_->streaming()) return;
        append_chunk(out_, ":\n\n");
    } else {
        out_ += "HTTP/1.1 100 Continue\r\n\r\n";
    }
    flush();
}

void Session::take(std::string_view bytes) {
    if (fresh_) return begin(bytes);
    if (http2_) return http2_->feed(bytes);
    window_bytes_ += bytes.size();
    if (exchange_ || aside_ != 0 || closing_) {
        if (!closing_) rest_ += bytes;
        return;
    }
    while (!bytes.empty() && !dead_ && !closing_) {
        if (exchange_ || aside_ != 0) {
            rest_ += bytes;
            return;
        }
        if (!parser_.begun()) since_us_ = monotonic_clock_us();
        bytes.remove_prefix(parser_.feed(bytes));
        process();
    }
}

// The first bytes say which of both is spoken, whatever was agreed on before.
void Session::begin(std::string_view bytes) {
    if (rest_.empty()) since_us_ = monotonic_clock_us();
    rest_ += bytes;
    if (rest_.size() < kHttp2Preface.size() && kHttp2Preface.starts_with(rest_)) return;
    fresh_ = false;
    const std::string first = std::exchange(rest_, {});
    if (first.starts_with(kHttp2Preface)) http2_ = std::make_unique<Http2Session>(loop_, *this, own_);
    take(first);
}

void Session::process() {
    using State = HttpRequestParser::State;
    if (parser_.state() == State::refused) {
        const int status = parser_.refusal_status();
        keep_alive_ = false;
        hear(parser_.request());  // as far as it was read
        return refuse({.status = status,
                       .type = "invalid_request_error",
                       .code = status == 413 ? "request_too_large" : "bad_request",
                       .message = parser_.refusal()});
    }
    if (parser_.state() == State::head) return;
    keep_alive_ = parser_.keep_alive() && !draining_;
    http_1_0_ = parser_.http_1_0();
    if (!authenticated_) {
        // Before the body is read: who may not ask has nothing to send.
        window_us_ = monotonic_clock_us();
        window_bytes_ = 0;
        const bool asks = asks_what_may_be(parser_.request());
        if (asks) hear(parser_.request());
        const auto why = asks ? std::nullopt : authenticate(parser_.request());
        if (asks || why) {
            // What is left of the body would be taken for the next request.
            keep_alive_ = keep_alive_ && parser_.state() == State::complete;
            if (keep_alive_) parser_.take();
            return asks ? say_what_may_be() : refuse(*why);
        }
        authenticated_ = true;
        if (parser_.state() == State::body && parser_.expects_continue()) {
            parser_.continue_sent();
            out_ += "HTTP/1.1 100 Continue\r\n\r\n";
            flush();
        }
    }
    if (parser_.state() != State::complete) return;
    HttpRequest request = parser_.take();
    authenticated_ = false;
    since_us_ = monotonic_clock_us();
    dispatch(std::move(request));
}

void Session::aside_done(const HttpResponse& response) {
    aside_ = 0;
    since_us_ = monotonic_clock_us();
    answer(response.status, response.content_type, response.body);
    if (!dead_) go_on();
}

bool Session::keeps_open() const {
    return keep_alive_ && !eof_ && !draining_ && !loop_.shared().draining;
}

void Session::send_whole(std::string_view answer) {
    out_ += answer;
    if (!keeps_open()) closing_ = true;
    flush();
}

void Session::send_out() {
    while (backlog() > 0) {
        const ssize_t size = transmit(std::string_view(out_).substr(sent_));
        if (size < 0 && errno == EINTR) continue;
        if (size < 0 && errno == EAGAIN) break;
        if (size <= 0) return close();
        sent_ += static_cast<std::size_t>(size);
        stuck_us_ = 0;
    }
    if (backlog() == 0) {
        out_.clear();
        sent_ = 0;
        if (out_.capacity() > kKeptCapacity) std::string().swap(out_);
    } else if (stuck_us_ == 0) {
        stuck_us_ = monotonic_clock_us();
    }
}

void Session::flush() {
    if (http2_) return http2_->pump();
    send_out();
    if (dead_) return;
    if (backlog() == 0) {
        if (closing_ && !exchange_ && aside_ == 0) {
            // The client may still be sending; without this it could lose the answer to a reset.
            ::shutdown(socket_.get(), SHUT_WR);
            if (eof_) return close();
            since_us_ = monotonic_clock_us();
        }
    }
    watch();
    tell_room();
}

void Session::exchange_done(bool keep_open) {
    loop_.poller().bury(std::shared_ptr<void>(std::move(exchange_)));
    since_us_ = monotonic_clock_us();
    if (!keep_open) closing_ = true;
    flush();
    if (!dead_) go_on();
}

// With what came behind the request that is over.
void Session::go_on() {
    if (closing_ || rest_.empty()) return;
    std::string next;
    next.swap(rest_);
    take(next);
    if (!dead_) watch();
}

void Session::drain() {
    draining_ = true;
    if (http2_) return http2_->drain();
    if (!exchange_ && aside_ == 0 && backlog() == 0 && !parser_.begun()) close();
}

void Session::sweep(std::int64_t now_us) {
    if (dead_) return;
    const Timeouts& timeouts = setup_->timeouts;
    const auto passed = [&](std::int64_t since, double seconds) {
        return static_cast<double>(now_us - since) > seconds * kUs;
    };
    if (backlog() > 0 && stuck_us_ != 0 && passed(stuck_us_, timeouts.slow_consumer_s)) {
        ++loop_.shared().counters.slow_consumers;
        cut_slow_exchange();
        if (http2_) http2_->cut_as_slow();
        return close();
    }
    if (http2_) return http2_->sweep(now_us);
    if (exchange_) return exchange_->sweep(now_us);
    if (aside_ != 0) return;
    if (closing_) {
        if (passed(since_us_, 2)) close();
        return;
    }
    const auto late = [&] {
        keep_alive_ = false;
        refuse(late_request());
    };
    if (parser_.state() == HttpRequestParser::State::body) {
        if (!passed(window_us_, timeouts.body_window_s)) return;
        if (window_bytes_ < timeouts.body_window_bytes) return late();
        window_us_ = now_us;
        window_bytes_ = 0;
    } else if (parser_.begun() || !rest_.empty()) {
        if (passed(since_us_, timeouts.head_s)) late();
    } else if (passed(since_us_, timeouts.idle_s)) {
        close();
    }
}

void Session::close() {
    if (dead_) return;
    dead_ = true;
    leave_exchange();
    if (http2_) http2_->leave();
    loop_.poller().remove(socket_.get());
    tls_.reset();
    socket_.reset();
    loop_.session_ended(this);
}

}  // namespace stoker::gateway

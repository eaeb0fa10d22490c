#include "io/http/http_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <cmath>
#include <exception>
#include <utility>

#include "base/text.h"
#include "io/http/http_wire.h"

namespace stoker::http {
namespace {

constexpr std::size_t kInputBytes = 4096;           // of an idle connection
constexpr std::size_t kBodyInputBytes = 64 * 1024;  // while a body comes
constexpr std::size_t kJoinBytes = 16 * 1024;       // a body up to this leaves in one piece with its head
constexpr std::size_t kProgressBytes = 4096;        // what a reader must take per write_timeout_s
constexpr std::size_t kDiscardBytes = 16 << 20;     // what is read and thrown away of a client that was refused
constexpr double kFinishSeconds = 2;                // for that, or for the end of TLS

}  // namespace

HttpSession::HttpSession(Loop& loop, Socket socket, std::string peer, bool overloaded)
    : loop_(loop),
      socket_(std::move(socket)),
      peer_(std::move(peer)),
      parser_({.max_head_bytes = loop.options.max_head_bytes,
               .max_headers = loop.options.max_headers,
               .max_body_bytes = loop.options.max_body_bytes}),
      overloaded_(overloaded) {}

template <class Operation>
void HttpSession::with_stream(Operation operation) {
    if (tls_) {
        operation(*tls_);
    } else {
        operation(socket_);
    }
}

void HttpSession::expire_after(double seconds) {
    deadline_ = std::chrono::steady_clock::now() +
                std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

namespace {

// The common name of the certificate that the client showed, and that was found good in the handshake.
std::string name_of_peer(SSL* ssl) {
    X509* certificate = SSL_get1_peer_certificate(ssl);
    if (certificate == nullptr) return {};
    std::string name;
    if (SSL_get_verify_result(ssl) == X509_V_OK) {
        std::array<char, 256> text{};
        const int length = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, text.data(),
                                                     static_cast<int>(text.size()));
        // With a NUL within, or cut, it is the name of nobody.
        if (length > 0 && length < static_cast<int>(text.size()) - 1 &&
            std::string_view(text.data()).size() == static_cast<std::size_t>(length))
            name.assign(text.data(), static_cast<std::size_t>(length));
    }
    X509_free(certificate);
    return name;
}

}  // namespace

void HttpSession::start() {
    if (!loop_.tls) {
        expire_after(loop_.options.idle_timeout_s);
        if (overloaded_) return refuse(503, "the server has as many connections as it takes; try again", "1");
        return process();
    }
    tls_ = std::make_unique<asio::ssl::stream<Socket&>>(socket_, *loop_.tls);
    phase_ = Phase::handshake;
    expire_after(loop_.options.head_timeout_s);
    tls_->async_handshake(
        asio::ssl::stream_base::server, [self = shared_from_this()](const boost::system::error_code& error) {
            if (self->phase_ != Phase::handshake) return;
            if (error) return self->close();
            self->phase_ = Phase::reading;
            self->certificate_name_ = name_of_peer(self->tls_->native_handle());
            self->expire_after(self->loop_.options.idle_timeout_s);
            if (self->overloaded_)
                return self->refuse(503, "the server has as many connections as it takes; try again", "1");
            self->process();
        });
}

void HttpSession::check_deadline(SteadyTime now) {
    if (now < deadline_) return;
    if (phase_ == Phase::reading && parser_.begun()) {
        const bool in_head = parser_.state() == HttpRequestParser::State::head;
        return refuse(408, fmt::format("the {} of the request did not come within {:g} s", in_head ? "head" : "body",
                                       in_head ? loop_.options.head_timeout_s : loop_.options.body_timeout_s));
    }
    close();
}

void HttpSession::drain() {
    keep_alive_ = false;
    if (phase_ == Phase::handshake || (phase_ == Phase::reading && !parser_.begun())) return close();
    if (phase_ == Phase::finishing) expire_after(std::min(kFinishSeconds, 0.2));
    if (phase_ != Phase::streaming) return;
    {
        const std::lock_guard lock(stream_->mutex);
        stream_->gone = true;
    }
    cut_ = true;
    pull();
}

void HttpSession::close() {
    if (phase_ == Phase::closed) return;
    const auto self = shared_from_this();
    phase_ = Phase::closed;
    release_stream();
    boost::system::error_code ignored;
    socket_.close(ignored);
    loop_.sessions.erase(this);
    --loop_.open;
    if (loop_.on_session_end) loop_.on_session_end();
}

void HttpSession::read() {
    if (read_pending_ || eof_) return;
    const bool body = phase_ == Phase::reading && parser_.state() == HttpRequestParser::State::body;
    const std::size_t wanted = body ? kBodyInputBytes : kInputBytes;
    if (input_.size() != wanted) {
        input_.resize(wanted);
        input_.shrink_to_fit();
    }
    begin_ = end_ = 0;
    read_pending_ = true;
    with_stream([this](auto& stream) {
        stream.async_read_some(asio::buffer(input_),
                               [self = shared_from_this()](const boost::system::error_code& error, std::size_t size) {
                                   self->read_pending_ = false;
                                   if (self->phase_ == Phase::closed) return;
                                   if (error) {
                                       self->eof_ = true;
                                       // A client may end its side after the request and still wait for the answer; of
                                       // a stream nobody does.
                                       if (self->phase_ == Phase::reading || self->phase_ == Phase::streaming)
                                           self->close();
                                       return;
                                   }
                                   self->on_read(size);
                               });
    });
}

void HttpSession::on_read(std::size_t size) {
    loop_.bytes_in += size;
    end_ = size;
    if (phase_ == Phase::reading) process();
}

// Parses what was read; then reads more.
void HttpSession::process() {
    while (phase_ == Phase::reading) {
        if (begin_ == end_) return read();
        const bool begun = parser_.begun();
        const bool in_head = parser_.state() == HttpRequestParser::State::head;
        begin_ += parser_.feed(std::string_view(input_).substr(begin_, end_ - begin_));
        switch (parser_.state()) {
            case HttpRequestParser::State::complete: return dispatch();
            case HttpRequestParser::State::refused: return refuse(parser_.refusal_status(), parser_.refusal());
            case HttpRequestParser::State::head:
                if (!begun) expire_after(loop_.options.head_timeout_s);
                break;
            case HttpRequestParser::State::body:
                if (in_head) expire_after(loop_.options.body_timeout_s);
                if (begin_ == end_ && parser_.expects_continue()) {
                    parser_.continue_sent();
                    phase_ = Phase::continuing;
                    return send("HTTP/1.1 100 Continue\r\n\r\n", {});
                }
                break;
        }
    }
}

void HttpSession::dispatch() {
    ++loop_.requests;
    const double wait_s =
        loop_.options.requests_per_second > 0 ? loop_.peers.take(peer_, std::chrono::steady_clock::now()) : 0;
    if (wait_s > 0)
        return refuse(429, fmt::format("more than {:g} requests per second", loop_.options.requests_per_second),
                      fmt::format("{:.0f}", std::max(std::ceil(wait_s), 1.0)));
    keep_alive_ = parser_.keep_alive() && !loop_.draining;
    http_1_0_ = parser_.http_1_0();
    head_only_ = parser_.head_only();
    HttpRequest request = parser_.take();
    request.peer = peer_;
    request.secure = tls_ != nullptr;
    request.certificate_name = certificate_name_;
    phase_ = Phase::handling;
    deadline_ = SteadyTime::max();  // the handler owes an answer; HttpReply sees to it
    auto sink = make_sink(loop_.mailbox, weak_from_this(), http_1_0_, head_only_, loop_.options.max_waiting_bytes);
    try {
        loop_.handler(std::move(request), HttpReply(std::move(sink)));
    } catch (const std::exception&) {
        // The reply was dropped on the way out of the handler and has sent 500.
    }
}

void HttpSession::refuse(int status, const std::string& why, std::string retry_after) {
    ++loop_.refused;
    keep_alive_ = false;
    refused_ = true;
    begin_ = end_ = 0;
    HttpResponse response = http_problem(status, why);
    if (!retry_after.empty()) response.headers.add("Retry-After", std::move(retry_after));
    if (status == 405) response.headers.add("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    phase_ = Phase::sending;
    std::string head = http_response_head(response, HttpFraming::length, false);
    send(std::move(head), parser_.head_only() ? std::string() : std::move(response.body));
}

void HttpSession::answer(HttpResponse response) {
    if (phase_ != Phase::handling) return;
    if (!is_sendable(response)) response = http_problem(500, "the answer has a status or header that cannot be sent");
    if (const auto wish = response.headers.find("connection"); wish && equals_ignore_case(*wish, "close"))
        keep_alive_ = false;
    phase_ = Phase::sending;
    std::string head = http_response_head(response, HttpFraming::length, keep_alive_);
    const bool with_body = !head_only_ && http_status_has_body(response.status);
    send(std::move(head), with_body ? std::move(response.body) : std::string());
}

void HttpSession::begin_stream(HttpResponse head, std::shared_ptr<StreamState> stream) {
    if (phase_ != Phase::handling || !is_sendable(head) || head_only_ || !http_status_has_body(head.status)) {
        {
            const std::lock_guard lock(stream->mutex);
            stream->gone = true;
        }
        if (phase_ != Phase::handling) return;
        if (!is_sendable(head)) return answer(std::move(head));
        phase_ = Phase::sending;
        return send(http_response_head(head, HttpFraming::chunked, keep_alive_), {});
    }
    if (http_1_0_) keep_alive_ = false;
    phase_ = Phase::streaming;
    stream_ = std::move(stream);
    ++loop_.streams;
    send(http_response_head(head, http_1_0_ ? HttpFraming::until_close : HttpFraming::chunked, keep_alive_), {});
    if (phase_ == Phase::streaming && begin_ == end_) read();  // sees the reader go
}

void HttpSession::release_stream() {
    if (!stream_) return;
    {
        const std::lock_guard lock(stream_->mutex);
        stream_->gone = true;
        stream_->waiting = {};
    }
    stream_.reset();
    --loop_.streams;
}

void HttpSession::pull() {
    if (phase_ != Phase::streaming) return;
    std::string pieces;
    bool complete = false, cut_off = false;
    {
        const std::lock_guard lock(stream_->mutex);
        cut_off = stream_->gone && !cut_;
        if (!cut_off && write_pending_) return;  // pull_posted stays: the end of the write pulls
        stream_->pull_posted = false;
        pieces.swap(stream_->waiting);
        stream_->sending = pieces.size();
        complete = stream_->closed;
        if (complete && stream_->chunked) pieces += kHttpLastChunk;
    }
    if (cut_off) return close();
    if (complete) {
        release_stream();
        phase_ = Phase::sending;
        if (pieces.empty()) return on_sent();
    } else if (pieces.empty()) {
        if (cut_) finish();
        return;
    }
    send({}, std::move(pieces));
}

void HttpSession::send(std::string head, std::string body) {
    head_ = std::move(head);
    body_ = std::move(body);
    if (!head_.empty() && body_.size() <= kJoinBytes) {
        head_ += body_;
        body_.clear();
    }
    sent_ = renewed_at_ = 0;
    expire_after(loop_.options.write_timeout_s);
    send_more();
}

void HttpSession::send_more() {
    const std::size_t of_head = std::min(sent_, head_.size());
    const std::size_t of_body = sent_ - of_head;
    std::array<asio::const_buffer, 2> rest{asio::buffer(head_) + of_head, asio::buffer(body_) + of_body};
    if (rest[0].size() == 0) std::swap(rest[0], rest[1]);  // TLS takes the first buffer
    write_pending_ = true;
    with_stream([&](auto& stream) {
        stream.async_write_some(rest,
                                [self = shared_from_this()](const boost::system::error_code& error, std::size_t size) {
                                    self->write_pending_ = false;
                                    if (self->phase_ == Phase::closed) return;
                                    if (error) return self->close();
                                    self->loop_.bytes_out += size;
                                    self->sent_ += size;
                                    if (self->sent_ == self->head_.size() + self->body_.size()) return self->on_sent();
                                    if (self->sent_ - self->renewed_at_ >= kProgressBytes) {
                                        self->renewed_at_ = self->sent_;
                                        self->expire_after(self->loop_.options.write_timeout_s);
                                    }
                                    self->send_more();
                                });
    });
}

void HttpSession::on_sent() {
    head_.clear();
    body_ = {};
    deadline_ = SteadyTime::max();
    switch (phase_) {
        case Phase::continuing:
            phase_ = Phase::reading;
            expire_after(loop_.options.body_timeout_s);
            return process();
        case Phase::sending:
            if (!keep_alive_ || loop_.draining || eof_) return finish();
            phase_ = Phase::reading;
            quiet_since_ = std::chrono::steady_clock::now();
            expire_after(loop_.options.idle_timeout_s);
            return process();
        case Phase::streaming: {
            {
                const std::lock_guard lock(stream_->mutex);
                stream_->sending = 0;
            }
            return pull();
        }
        default: return;
    }
}

// The last answer must reach the client: closing while it still sends would reset the connection and take the answer
// away.
void HttpSession::finish() {
    phase_ = Phase::finishing;
    if (eof_ || read_pending_ || (!tls_ && !refused_)) return close();
    expire_after(loop_.draining ? 0.2 : kFinishSeconds);
    if (!tls_) return discard();
    tls_->async_shutdown([self = shared_from_this()](const boost::system::error_code&) {
        if (self->phase_ != Phase::finishing) return;
        if (!self->refused_) return self->close();
        self->discard();
    });
}

void HttpSession::discard() {
    boost::system::error_code ignored;
    if (discarded_ == 0) socket_.shutdown(Socket::shutdown_send, ignored);
    socket_.async_read_some(asio::buffer(input_.data(), input_.size()),
                            [self = shared_from_this()](const boost::system::error_code& error, std::size_t size) {
                                if (self->phase_ != Phase::finishing) return;
                                self->discarded_ += size;
                                if (error || self->discarded_ > kDiscardBytes) return self->close();
                                self->discard();
                            });
}

}  // namespace stoker::http

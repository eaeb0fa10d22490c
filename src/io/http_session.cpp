#include "io/http_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <cmath>
#include <exception>
#include <utility>

#include "base/text.h"
#include "io/http_wire.h"

namespace stoker::http {
namespace {

constexpr std::size_t kInputBytes = 4096;           // of an idle connection
constexpr std::size_t kBodyInputBytes = 64 * 1024;  // while a body comes
constexpr std::size_t kJoinBytes = 16 * 1024;       // a body up to this leaves in one piece with its head
constexpr std::size_t kProgressBytes = 4096;        // what a reader must take per write_timeout_s
constexpr std::size_t kDiscardBytes = 16 << 20;     // what is read and thrown away of a client that was refused
constexpr double kFinishSeconds = 2;                // for that, or for the end of TLS

// The writing end of a stream.
class SessionStream final : public HttpStream {
public:
    SessionStream(std::shared_ptr<Mailbox> mailbox, std::weak_ptr<Session> session, std::shared_ptr<StreamState> state,
                  std::size_t max_waiting)
        : mailbox_(std::move(mailbox)),
          session_(std::move(session)),
          state_(std::move(state)),
          max_waiting_(max_waiting) {}
    ~SessionStream() override { close(); }

    bool write(std::string piece) override {
        {
            const std::lock_guard lock(state_->mutex);
            if (state_->gone || state_->closed) return false;
            if (piece.empty()) return true;
            if (state_->waiting.size() + state_->sending > max_waiting_) {
                state_->gone = true;
                state_->waiting = {};
            } else {
                if (state_->chunked) {
                    append_http_chunk(state_->waiting, piece);
                } else {
                    state_->waiting += piece;
                }
                if (std::exchange(state_->pull_posted, true)) return !mailbox_->closed();
            }
        }
        return wake();
    }

    void close() override {
        {
            const std::lock_guard lock(state_->mutex);
            if (std::exchange(state_->closed, true) || state_->gone) return;
            if (std::exchange(state_->pull_posted, true)) return;
        }
        wake();
    }

    bool open() const override {
        const std::lock_guard lock(state_->mutex);
        return !state_->gone && !state_->closed && !mailbox_->closed();
    }

private:
    // False: there is no loop any more, or the stream was just cut off.
    bool wake() {
        const bool posted = mailbox_->post([session = session_] {
            if (const auto here = session.lock()) here->pull();
        });
        const std::lock_guard lock(state_->mutex);
        if (!posted) state_->gone = true;
        return !state_->gone;
    }

    std::shared_ptr<Mailbox> mailbox_;
    std::weak_ptr<Session> session_;
    std::shared_ptr<StreamState> state_;
    std::size_t max_waiting_;
};

class SessionSink final : public HttpSink {
public:
    SessionSink(std::shared_ptr<Mailbox> mailbox, std::weak_ptr<Session> session, bool http_1_0, bool head_only,
                std::size_t max_waiting)
        : mailbox_(std::move(mailbox)),
          session_(std::move(session)),
          http_1_0_(http_1_0),
          head_only_(head_only),
          max_waiting_(max_waiting) {}
    // An HttpReply that another one was assigned to leaves its sink behind.
    ~SessionSink() override { send(http_problem(500, "the request was dropped without an answer")); }

    void send(HttpResponse response) override {
        if (answered_.exchange(true)) return;
        if (mailbox_->on_loop()) {
            if (const auto here = session_.lock()) here->answer(std::move(response));
            return;
        }
        mailbox_->post([session = session_, response = std::move(response)]() mutable {
            if (const auto here = session.lock()) here->answer(std::move(response));
        });
    }

    std::shared_ptr<HttpStream> stream(HttpResponse head) override {
        auto state = std::make_shared<StreamState>();
        state->chunked = !http_1_0_;
        state->gone = answered_.exchange(true) || head_only_ || !http_status_has_body(head.status);
        auto stream = std::make_shared<SessionStream>(mailbox_, session_, state, max_waiting_);
        auto begin = [session = session_, head = std::move(head), state]() mutable {
            if (const auto here = session.lock()) {
                here->begin_stream(std::move(head), state);
            } else {
                const std::lock_guard lock(state->mutex);
                state->gone = true;
            }
        };
        if (mailbox_->on_loop()) {
            begin();
        } else if (!mailbox_->post(std::move(begin))) {
            const std::lock_guard lock(state->mutex);
            state->gone = true;
        }
        return stream;
    }

private:
    std::shared_ptr<Mailbox> mailbox_;
    std::weak_ptr<Session> session_;
    bool http_1_0_, head_only_;
    std::size_t max_waiting_;
    std::atomic<bool> answered_{false};
};

}  // namespace

bool Mailbox::post(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    if (loop_ == nullptr) return false;
    waiting_.push_back(std::move(work));
    if (waiting_.size() == 1) asio::post(*loop_, [this] { drain(); });
    return true;
}

void Mailbox::close() {
    std::vector<std::function<void()>> dropped;  // destroyed without the lock: what they hold may post again
    const std::lock_guard lock(mutex_);
    closed_ = true;
    loop_ = nullptr;
    thread_ = std::thread::id{};
    dropped.swap(waiting_);
}

void Mailbox::drain() {
    std::vector<std::function<void()>> work;
    {
        const std::lock_guard lock(mutex_);
        work.swap(waiting_);
    }
    for (auto& one : work) one();
}

Session::Session(Loop& loop, Socket socket, std::string peer, bool overloaded)
    : loop_(loop),
      socket_(std::move(socket)),
      peer_(std::move(peer)),
      parser_({.max_head_bytes = loop.options.max_head_bytes,
               .max_headers = loop.options.max_headers,
               .max_body_bytes = loop.options.max_body_bytes}),
      overloaded_(overloaded) {}

template <class Operation>
void Session::with_stream(Operation operation) {
    if (tls_) {
        operation(*tls_);
    } else {
        operation(socket_);
    }
}

void Session::expire_after(double seconds) {
    deadline_ = std::chrono::steady_clock::now() +
                std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

void Session::start() {
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
            self->expire_after(self->loop_.options.idle_timeout_s);
            if (self->overloaded_)
                return self->refuse(503, "the server has as many connections as it takes; try again", "1");
            self->process();
        });
}

void Session::check_deadline(SteadyTime now) {
    if (now < deadline_) return;
    if (phase_ == Phase::reading && parser_.begun()) {
        const bool in_head = parser_.state() == HttpRequestParser::State::head;
        return refuse(408, fmt::format("the {} of the request did not come within {:g} s", in_head ? "head" : "body",
                                       in_head ? loop_.options.head_timeout_s : loop_.options.body_timeout_s));
    }
    close();
}

void Session::drain() {
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

void Session::close() {
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

void Session::read() {
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

void Session::on_read(std::size_t size) {
    loop_.bytes_in += size;
    end_ = size;
    if (phase_ == Phase::reading) process();
}

// Parses what was read; then reads more.
void Session::process() {
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

void Session::dispatch() {
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
    phase_ = Phase::handling;
    deadline_ = SteadyTime::max();  // the handler owes an answer; HttpReply sees to it
    auto sink = std::make_shared<SessionSink>(loop_.mailbox, weak_from_this(), http_1_0_, head_only_,
                                              loop_.options.max_waiting_bytes);
    try {
        loop_.handler(std::move(request), HttpReply(std::move(sink)));
    } catch (const std::exception&) {
        // The reply was dropped on the way out of the handler and has sent 500.
    }
}

void Session::refuse(int status, const std::string& why, std::string retry_after) {
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

void Session::answer(HttpResponse response) {
    if (phase_ != Phase::handling) return;
    if (!is_sendable(response)) response = http_problem(500, "the answer has a status or header that cannot be sent");
    if (const auto wish = response.headers.find("connection"); wish && equals_ignore_case(*wish, "close"))
        keep_alive_ = false;
    phase_ = Phase::sending;
    std::string head = http_response_head(response, HttpFraming::length, keep_alive_);
    const bool with_body = !head_only_ && http_status_has_body(response.status);
    send(std::move(head), with_body ? std::move(response.body) : std::string());
}

void Session::begin_stream(HttpResponse head, std::shared_ptr<StreamState> stream) {
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

void Session::release_stream() {
    if (!stream_) return;
    {
        const std::lock_guard lock(stream_->mutex);
        stream_->gone = true;
        stream_->waiting = {};
    }
    stream_.reset();
    --loop_.streams;
}

void Session::pull() {
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

void Session::send(std::string head, std::string body) {
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

void Session::send_more() {
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

void Session::on_sent() {
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
void Session::finish() {
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

void Session::discard() {
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

// One connection of the HTTP server, and what it shares with the server. Only http_server.cpp and http_session.cpp
// include this: Asio is heavy.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "io/http/http_parser.h"
#include "io/http/http_server.h"
#include "io/http/http_sink.h"
#include "io/http/peer_limits.h"

namespace stoker::http {

namespace asio = boost::asio;
using SteadyTime = std::chrono::steady_clock::time_point;
// The concrete executor: any_io_executor would cost an indirect call per operation.
using Socket = asio::basic_stream_socket<asio::ip::tcp, asio::io_context::executor_type>;

class HttpSession;

// What the sessions share; lives on the loop's thread.
class Loop {
public:
    Loop(HttpServerOptions options, HttpHandler handler);

    asio::io_context context{1};
    HttpServerOptions options;
    HttpHandler handler;
    std::unique_ptr<asio::ssl::context> tls;
    PeerLimits peers;
    std::shared_ptr<Mailbox> mailbox;
    std::unordered_map<HttpSession*, std::shared_ptr<HttpSession>> sessions;
    bool draining = false;
    std::function<void()> on_session_end;

    std::atomic<std::uint64_t> connections{0}, requests{0}, refused{0}, bytes_in{0}, bytes_out{0};
    std::atomic<std::size_t> open{0}, streams{0};
};

class HttpSession final : public Answering, public std::enable_shared_from_this<HttpSession> {
public:
    HttpSession(Loop& loop, Socket socket, std::string peer, bool overloaded);

    void start();
    void check_deadline(SteadyTime now);
    // Since when it waits for a request, or for the rest of one; max: it does not, an answer is owed.
    SteadyTime waits_since() const {
        return phase_ == Phase::handshake || phase_ == Phase::reading ? quiet_since_ : SteadyTime::max();
    }
    const std::string& peer() const { return peer_; }
    void drain();  // the server stops: no further request
    void close();  // now

    void answer(HttpResponse response) override;
    void begin_stream(HttpResponse head, std::shared_ptr<StreamState> stream) override;
    void pull() override;

private:
    enum class Phase {
        handshake,
        reading,     // of a request
        continuing,  // sends "100 Continue"
        handling,    // the handler owes the answer
        sending,     // the answer
        streaming,   // its body comes in pieces
        finishing,   // all is said; waits for the client to close, so that it gets the last answer
        closed
    };

    void read();
    void on_read(std::size_t size);
    void process();
    void dispatch();
    void refuse(int status, const std::string& why, std::string retry_after = {});
    void send(std::string head, std::string body);
    void send_more();
    void on_sent();
    void release_stream();
    void finish();
    void discard();
    void expire_after(double seconds);
    template <class Operation>
    void with_stream(Operation operation);

    Loop& loop_;
    Socket socket_;
    std::unique_ptr<asio::ssl::stream<Socket&>> tls_;
    std::string peer_;
    std::string certificate_name_;  // of the client; empty: it showed none
    HttpRequestParser parser_;
    Phase phase_ = Phase::reading;
    bool overloaded_, keep_alive_ = false, head_only_ = false, http_1_0_ = false;
    bool read_pending_ = false, write_pending_ = false;
    bool eof_ = false;      // the client sends no more
    bool refused_ = false;  // it may still be sending what was refused
    bool cut_ = false;      // the stream ends before it is complete, since the server stops
    SteadyTime deadline_ = SteadyTime::max();
    SteadyTime quiet_since_ = std::chrono::steady_clock::now();

    std::string input_;                // the buffer of reads
    std::size_t begin_ = 0, end_ = 0;  // what of it was not parsed yet
    std::string head_, body_;          // being sent
    std::size_t sent_ = 0, renewed_at_ = 0, discarded_ = 0;
    std::shared_ptr<StreamState> stream_;
};

}  // namespace stoker::http

#include "io/http/http_server.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "io/http/http_session.h"
#include "io/http/tls.h"
#include "io/worker.h"

namespace stoker {
namespace http {

Loop::Loop(HttpServerOptions given, HttpHandler handles)
    : options(std::move(given)),
      handler(std::move(handles)),
      peers(options.requests_per_second, options.burst),
      mailbox(std::make_shared<Mailbox>([this] { asio::post(context, [this] { mailbox->drain(); }); })) {}

}  // namespace http

namespace {

using namespace http;

// Refused connections hold a descriptor until they have read why.
constexpr std::size_t kOverloadedConnections = 64;

Status use_certificate(Loop& loop) {
    if (loop.options.certificate_pem.empty() && loop.options.key_pem.empty()) return done();
    const auto& pem = loop.options;
    TRY_VOID(check_certificate({.certificate_pem = pem.certificate_pem, .key_pem = pem.key_pem}));
    boost::system::error_code error;
    auto tls = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
    SSL_CTX* raw = tls->native_handle();
    SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
    SSL_CTX_set_options(raw, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);  // 34 KB less for an idle connection
    tls->use_certificate_chain(asio::buffer(pem.certificate_pem), error);
    if (!error) tls->use_private_key(asio::buffer(pem.key_pem), asio::ssl::context::pem, error);
    if (error) return Error(ErrorKind::invalid, "OpenSSL does not take the certificate: " + error.message());
    if (!pem.client_ca_pem.empty()) {
        tls->add_certificate_authority(asio::buffer(pem.client_ca_pem), error);
        if (error)
            return Error(ErrorKind::invalid, "OpenSSL does not take the authority for clients: " + error.message(), {},
                         "expected one or more certificates, PEM");
        SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nullptr);
        // A session that is taken up again knows for which server its client was looked at.
        static constexpr unsigned char kContext[] = "stoker";
        SSL_CTX_set_session_id_context(raw, kContext, sizeof kContext - 1);
    }
    loop.tls = std::move(tls);
    return done();
}

Error listen_error(const HttpServerOptions& options, const boost::system::error_code& error) {
    const std::string place = fmt::format("{} port {}", options.address, options.port);
    if (error == asio::error::address_in_use)
        return Error(ErrorKind::unavailable, place + " is in use by another program", {},
                     "stop that program, or choose another port");
    if (error == asio::error::access_denied)
        return Error(ErrorKind::denied, "we may not listen on " + place, {},
                     "ports below 1024 need root or CAP_NET_BIND_SERVICE: choose another port");
    if (error == boost::system::errc::address_not_available)
        return Error(ErrorKind::unavailable, options.address + " is not an address of this machine");
    return Error(ErrorKind::unavailable, fmt::format("cannot listen on {}: {}", place, error.message()));
}

// A child process must not inherit what belongs to a client.
void close_on_exec(int descriptor) {
    ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

std::string peer_text(const asio::ip::address& address) {
    if (address.is_v6() && address.to_v6().is_v4_mapped())
        return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
    return address.to_string();
}

class AsioHttpServer final : public HttpServer {
public:
    AsioHttpServer(HttpServerOptions options, HttpHandler handler)
        : loop_(std::move(options), std::move(handler)),
          acceptor_(loop_.context),
          tick_(loop_.context),
          pause_(loop_.context),
          work_(asio::make_work_guard(loop_.context)) {
        const HttpServerOptions& o = loop_.options;
        const double shortest = std::min({o.head_timeout_s, o.body_timeout_s, o.idle_timeout_s, o.write_timeout_s});
        tick_period_ = std::chrono::milliseconds(static_cast<int>(std::clamp(shortest / 5, 0.01, 1.0) * 1000));
    }

    ~AsioHttpServer() override { stop(std::chrono::steady_clock::now()); }

    Status listen() {
        TRY_VOID(use_certificate(loop_));
        boost::system::error_code error;
        const auto address = asio::ip::make_address(loop_.options.address, error);
        if (error)
            return Error(ErrorKind::invalid, "'" + loop_.options.address + "' is not a numeric IPv4 or IPv6 address");
        const asio::ip::tcp::endpoint endpoint(address, loop_.options.port);
        if (loop_.options.socket >= 0) {
            acceptor_.assign(endpoint.protocol(), loop_.options.socket, error);
            if (error) return listen_error(loop_.options, error);
            close_on_exec(acceptor_.native_handle());
        } else {
            acceptor_.open(endpoint.protocol(), error);
            if (error) return listen_error(loop_.options, error);
            close_on_exec(acceptor_.native_handle());
            acceptor_.set_option(asio::socket_base::reuse_address(true), error);
            if (!error) acceptor_.bind(endpoint, error);
            if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
            if (error) return listen_error(loop_.options, error);
        }
        port_ = acceptor_.local_endpoint(error).port();
        accept();
        thread_ = masked_thread("stoker-http", [this] {
            loop_.mailbox->enter();
            loop_.context.run();
        });
        return done();
    }

    std::uint16_t port() const override { return port_; }
    int socket() override { return acceptor_.native_handle(); }

    HttpServerStats stats() const override {
        return {.connections = loop_.connections,
                .requests = loop_.requests,
                .refused = loop_.refused,
                .open = loop_.open,
                .streams = loop_.streams,
                .bytes_in = loop_.bytes_in,
                .bytes_out = loop_.bytes_out};
    }

    void stop(SteadyTime deadline) override {
        const std::lock_guard only_one(stop_mutex_);
        if (!thread_.joinable()) return;
        CHECK(!loop_.mailbox->on_loop());  // it would wait for itself
        asio::post(loop_.context, [this] { begin_drain(); });
        {
            std::unique_lock lock(drained_mutex_);
            drained_changed_.wait_until(lock, deadline, [this] { return drained_; });
        }
        asio::post(loop_.context, [this] { end(); });
        thread_.join();
    }

private:
    void accept() {
        acceptor_.async_accept([this](const boost::system::error_code& error, Socket socket) {
            if (!acceptor_.is_open()) return;
            if (!error) {
                welcome(std::move(socket));
                return accept();
            }
            if (error == asio::error::connection_aborted) return accept();
            // Out of descriptors or memory: the connection stays in the queue, and asking again at once would spin.
            pause_.expires_after(std::chrono::milliseconds(100));
            pause_.async_wait([this](const boost::system::error_code& cancelled) {
                if (!cancelled && acceptor_.is_open()) accept();
            });
        });
    }

    void welcome(Socket socket) {
        boost::system::error_code error;
        const auto remote = socket.remote_endpoint(error);
        if (error) return;  // gone already
        close_on_exec(socket.native_handle());
        socket.set_option(asio::ip::tcp::no_delay(true), error);
        ++loop_.connections;
        const std::size_t open = loop_.sessions.size();
        if (open >= loop_.options.max_connections + kOverloadedConnections) {
            ++loop_.refused;
            return;
        }
        const bool overloaded = open >= loop_.options.max_connections && !make_room();
        auto session = std::make_shared<HttpSession>(loop_, std::move(socket), peer_text(remote.address()), overloaded);
        loop_.sessions.emplace(session.get(), session);
        ++loop_.open;
        if (!ticking_) tick();
        session->start();
    }

    // Nobody holds connections against others by asking nothing: of those that wait for a request the one that has done
    // so for longest goes, of the peer that has most of them. False: every connection is at work.
    bool make_room() {
        std::unordered_map<std::string_view, std::size_t> held;
        for (const auto& [raw, session] : loop_.sessions)
            if (session->waits_since() != SteadyTime::max()) ++held[session->peer()];
        std::shared_ptr<HttpSession> oldest;
        for (const auto& [raw, session] : loop_.sessions) {
            if (session->waits_since() == SteadyTime::max()) continue;
            const auto rank = [&](const HttpSession& each) {
                return std::pair(-static_cast<std::int64_t>(held[each.peer()]), each.waits_since());
            };
            if (!oldest || rank(*session) < rank(*oldest)) oldest = session;
        }
        if (!oldest) return false;
        ++loop_.refused;
        oldest->close();
        return true;
    }

    // One timer looks after all sessions: cheaper than one for each, and a deadline may be a tick late.
    void tick() {
        ticking_ = true;
        tick_.expires_after(tick_period_);
        tick_.async_wait([this](const boost::system::error_code& cancelled) {
            ticking_ = false;
            if (cancelled || loop_.sessions.empty()) return;
            const auto now = std::chrono::steady_clock::now();
            for (const auto& session : all_sessions()) session->check_deadline(now);
            if (!ticking_) tick();
        });
    }

    // Sessions leave the table while they are looked at.
    std::vector<std::shared_ptr<HttpSession>> all_sessions() const {
        std::vector<std::shared_ptr<HttpSession>> all;
        all.reserve(loop_.sessions.size());
        for (const auto& [raw, session] : loop_.sessions) all.push_back(session);
        return all;
    }

    void begin_drain() {
        loop_.draining = true;
        boost::system::error_code ignored;
        acceptor_.close(ignored);
        loop_.on_session_end = [this] {
            if (!loop_.sessions.empty()) return;
            const std::lock_guard lock(drained_mutex_);
            drained_ = true;
            drained_changed_.notify_all();
        };
        for (const auto& session : all_sessions()) session->drain();
        loop_.on_session_end();
    }

    void end() {
        loop_.mailbox->close();
        for (const auto& session : all_sessions()) session->close();
        tick_.cancel();
        pause_.cancel();
        work_.reset();  // run() returns when the cancelled operations have been told
    }

    Loop loop_;
    asio::basic_socket_acceptor<asio::ip::tcp, asio::io_context::executor_type> acceptor_;
    using Timer = asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>,
                                             asio::io_context::executor_type>;
    Timer tick_, pause_;
    bool ticking_ = false;
    std::chrono::milliseconds tick_period_{1000};
    asio::executor_work_guard<asio::io_context::executor_type> work_;
    std::uint16_t port_ = 0;
    std::thread thread_;
    std::mutex stop_mutex_;
    std::mutex drained_mutex_;  // guards drained_
    std::condition_variable drained_changed_;
    bool drained_ = false;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(HttpServerOptions options, HttpHandler handler) {
    auto server = std::make_unique<AsioHttpServer>(std::move(options), std::move(handler));
    TRY_VOID(server->listen());
    return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace stoker

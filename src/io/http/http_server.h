// An HTTP/1.1 server on one thread with an event loop (Asio, llhttp). Strict: what two readers could understand
// differently is refused, and everything has a bound: heads, bodies, time, connections, rate, what waits to be sent.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "io/http/http.h"

namespace stoker {

struct HttpServerOptions {
    std::string address = "127.0.0.1";     // numeric, IPv4 or IPv6
    std::uint16_t port = 0;                // 0: any free one
    int socket = -1;                       // one that listens already goes before both; the server closes it
    std::string certificate_pem, key_pem;  // both or none: the texts, not files
    // Whose signature makes the certificate of a client good. Whoever shows a bad one is turned away; nobody has to
    // show one. Empty: none is asked for.
    std::string client_ca_pem{};

    std::size_t max_head_bytes = 16 * 1024;   // request line and headers: 431
    std::size_t max_headers = 100;            // 431
    std::size_t max_body_bytes = 1 << 20;     // 413
    std::size_t max_connections = 1024;       // the next one is answered 503 and closed
    std::size_t max_waiting_bytes = 4 << 20;  // of a stream to a slow reader; then it is cut off

    double head_timeout_s = 10;   // from the first byte to the end of the head: 408
    double body_timeout_s = 30;   // from the end of the head to the end of the body: 408
    double idle_timeout_s = 75;   // between requests of a connection
    double write_timeout_s = 30;  // without progress

    // Of one peer, answered 429 with Retry-After beyond it; 0: no limit.
    double requests_per_second = 0;
    double burst = 0;  // requests at once; 0: one second's worth
};

struct HttpServerStats {
    std::uint64_t connections = 0, requests = 0, refused = 0;  // since the start; refused: before a handler saw them
    std::size_t open = 0, streams = 0;                         // now
    std::uint64_t bytes_in = 0, bytes_out = 0;
};

class HttpServer {
public:
    // Returns once it listens. unavailable: the address is in use; denied: the port is not for us; invalid: the
    // certificate.
    static Result<std::unique_ptr<HttpServer>> start(HttpServerOptions options, HttpHandler handler);
    virtual ~HttpServer() = default;  // stops without waiting

    virtual std::uint16_t port() const = 0;
    // What it listens with, for whoever takes its place (io/handover.h); until stop().
    virtual int socket() = 0;
    virtual HttpServerStats stats() const = 0;
    // Accepts no more, lets open requests end until the deadline, closes streams and connections.
    virtual void stop(std::chrono::steady_clock::time_point deadline) = 0;
};

}  // namespace stoker

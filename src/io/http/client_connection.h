// One connection of the HTTP client: connect, TLS, send and receive, each with a deadline. Plain sockets and poll();
// OpenSSL works on memory, so that both kinds wait in the same place.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/http/tls.h"
#include "io/process.h"

namespace stoker::http {

struct ServerUrl {
    bool tls = false;
    std::string host;  // without brackets
    std::uint16_t port = 0;
    std::string authority;  // as the Host header wants it
    std::string socket;     // a Unix socket, by its path, instead of host and port
};
Result<ServerUrl> read_server_url(std::string_view url);
// unix:/run/slurmrestd.sock, and whatever read_server_url takes: for servers that may be on this machine alone.
Result<ServerUrl> read_server_or_socket(std::string_view url);

class TlsClientContext;  // whom to trust, and who we are
// `own`: shown to a server that asks; empty: none. invalid: not PEM, or the key is another's.
Result<std::shared_ptr<TlsClientContext>> make_tls_client_context(const std::string& ca_pem,
                                                                  const Certificate& own = {});

class ClientConnection {
public:
    using Time = std::chrono::steady_clock::time_point;
    virtual ~ClientConnection() = default;
    // tls: null for plain http.
    static Result<std::unique_ptr<ClientConnection>> connect(const ServerUrl& url,
                                                             const std::shared_ptr<TlsClientContext>& tls,
                                                             Time deadline);
    // How many bytes went out before it ended: all, or fewer because the server answers already or the connection broke
    // (which receive() will tell).
    virtual Result<std::size_t> send(std::string_view bytes, Time deadline) = 0;
    // At least one byte; empty when the server closed the connection. unavailable: it broke.
    virtual Result<std::string_view> receive(Time deadline) = 0;
    // Nothing came in and nobody closed since the last answer.
    virtual bool is_idle() = 0;
};

}  // namespace stoker::http

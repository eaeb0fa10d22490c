#include "io/http/http_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/text.h"
#include "io/http/client_connection.h"
#include "io/http/http_parser.h"
#include "io/http/http_wire.h"

namespace stoker {
namespace {

using http::ClientConnection;
using http::ServerUrl;
using http::TlsClientContext;

constexpr std::size_t kMaxAnswerHead = 64 * 1024;
constexpr std::size_t kMaxAnswerHeaders = 200;
constexpr double kGiveUpPause = 0.1;

ClientConnection::Time after(double seconds) {
    return std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                  std::chrono::duration<double>(std::clamp(seconds, 0.0, 1e8)));
}

bool may_be_sent_twice(const HttpCall& call) {
    return call.method == "GET" || call.method == "HEAD" || call.method == "PUT" || call.method == "DELETE" ||
           call.headers.find("idempotency-key").has_value();
}

Status check_call(const HttpCall& call) {
    if (!is_http_token(call.method))
        return Error(ErrorKind::invalid, "'" + printable(call.method, 40) + "' is not a method");
    if (auto target = read_http_target(call.target); !target) return std::move(target).error();
    for (const auto& [name, value] : call.headers.items)
        if (!is_http_token(name) || !is_http_field_value(value))
            return Error(ErrorKind::invalid, "the header " + printable(name, 60) + " cannot be sent");
    return done();
}

std::string request_bytes(const HttpCall& call, const std::string& authority) {
    std::string out = call.method + " " + call.target + " HTTP/1.1\r\nHost: " + authority + "\r\n";
    for (const auto& [name, value] : call.headers.items) {
        if (equals_ignore_case(name, "host") || equals_ignore_case(name, "content-length") ||
            equals_ignore_case(name, "transfer-encoding") || equals_ignore_case(name, "connection"))
            continue;  // ours
        out += name + ": " + value + "\r\n";
    }
    if (!call.body.empty() || call.method == "POST" || call.method == "PUT" || call.method == "PATCH")
        out += fmt::format("Content-Length: {}\r\n", call.body.size());
    out += "\r\n";
    out += call.body;
    return out;
}

class BlockingHttpClient final : public HttpClient {
public:
    BlockingHttpClient(HttpClientOptions options, ServerUrl url, std::shared_ptr<TlsClientContext> tls)
        : options_(std::move(options)), url_(std::move(url)), tls_(std::move(tls)) {}

    Result<HttpResponse> call(const HttpCall& call) override {
        TRY_VOID(check_call(call));
        const auto deadline = after(call.timeout_s);
        if (connection_ && !connection_->is_idle()) connection_.reset();
        const bool kept = connection_ != nullptr;
        Attempt first = attempt(call, deadline);
        // The server closed the kept connection while our request was on its way: no byte of an answer came.
        if (kept && !first.result && first.result.error().kind() == ErrorKind::unavailable && !first.answer_begun &&
            (first.sent == 0 || may_be_sent_twice(call)))
            first = attempt(call, deadline);
        if (!first.result)
            return std::move(first.result)
                .while_doing(fmt::format("calling {} {}{}", call.method, printable(options_.url, 120),
                                         printable(call.target, 120)));
        return std::move(first.result);
    }

private:
    struct Attempt {
        Result<HttpResponse> result;
        std::size_t sent = 0;
        bool answer_begun = false;
    };

    static Result<std::string_view> receive(ClientConnection& connection, const HttpCall& call,
                                            ClientConnection::Time deadline) {
        if (!call.give_up) return connection.receive(deadline);
        for (;;) {
            if (call.give_up()) return Error(ErrorKind::unavailable, "the call was given up");
            auto received = connection.receive(std::min(deadline, after(kGiveUpPause)));
            if (received || received.error().kind() != ErrorKind::timed_out ||
                std::chrono::steady_clock::now() >= deadline)
                return received;
        }
    }

    // Leaves connection_ only when it can take the next call.
    Attempt attempt(const HttpCall& call, ClientConnection::Time deadline) {
        Attempt out{.result = HttpResponse{}};
        auto connection = std::move(connection_);
        if (!connection) {
            const auto connect_by = std::min(deadline, after(options_.connect_timeout_s));
            auto made = ClientConnection::connect(url_, tls_, connect_by);
            if (!made) {
                out.result = std::move(made).error();
                return out;
            }
            connection = std::move(made).value();
        }
        const std::string bytes = request_bytes(call, url_.authority);
        auto sent = connection->send(bytes, deadline);
        if (!sent) {
            out.result = std::move(sent).error();
            return out;
        }
        out.sent = *sent;
        HttpResponseParser parser(call.method == "HEAD", {.max_head_bytes = kMaxAnswerHead,
                                                          .max_headers = kMaxAnswerHeaders,
                                                          .max_body_bytes = call.max_body_bytes});
        bool streaming = false;
        parser.on_head = [&] {
            streaming = call.on_piece && parser.response().status / 100 == 2;
            if (streaming) parser.on_piece = call.on_piece;
        };
        bool stray = false;
        while (parser.state() != HttpResponseParser::State::complete) {
            auto received = receive(*connection, call, streaming ? after(call.timeout_s) : deadline);
            if (!received) {
                out.result = std::move(received).error();
                return out;
            }
            if (received->empty()) {
                parser.finish();
            } else {
                out.answer_begun = true;
                stray = parser.feed(*received) != received->size();
            }
            if (parser.state() == HttpResponseParser::State::broken) {
                out.result = Error(ErrorKind::unavailable, out.answer_begun
                                                               ? "the answer cannot be read: " + parser.what_is_wrong()
                                                               : "the connection was closed before an answer came");
                return out;
            }
        }
        if (parser.keep_alive() && !stray && !parser.stopped() && out.sent == bytes.size())
            connection_ = std::move(connection);
        out.result = std::move(parser.response());
        return out;
    }

    HttpClientOptions options_;
    ServerUrl url_;
    std::shared_ptr<TlsClientContext> tls_;
    std::unique_ptr<ClientConnection> connection_;
};

}  // namespace

Result<std::unique_ptr<HttpClient>> HttpClient::make(HttpClientOptions options) {
    TRY(ServerUrl url, http::read_server_or_socket(options.url));
    std::shared_ptr<TlsClientContext> tls;
    if (url.tls) {
        TRY(tls, http::make_tls_client_context(options.ca_pem, options.own));
    }
    return std::unique_ptr<HttpClient>(
        std::make_unique<BlockingHttpClient>(std::move(options), std::move(url), std::move(tls)));
}

}  // namespace stoker

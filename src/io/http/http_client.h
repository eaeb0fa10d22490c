// Calls to an HTTP/1.1 server, one at a time over one kept connection. Blocking; one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "io/http/http.h"
#include "io/http/tls.h"

namespace stoker {

struct HttpClientOptions {
    std::string url;     // "http://127.0.0.1:8042", "https://host:port" or "unix:/path"; no path
    std::string ca_pem;  // whom to trust for https; empty: the system's authorities
    Certificate own;     // shown to a server that asks who we are; empty: none
    double connect_timeout_s = 5;
};

struct HttpCall {
    std::string method = "GET";
    std::string target = "/";
    HttpHeaders headers;
    std::string body;
    double timeout_s = 30;  // of the whole call; of the silence between two pieces when streaming
    std::size_t max_body_bytes = 64u << 20;
    // Gets the body in pieces instead of HttpResponse::body, when the status is 2xx; false ends the call.
    std::function<bool(std::string_view piece)> on_piece;
    // Asked ten times a second while an answer is awaited, on the caller's thread; true ends the call: unavailable.
    std::function<bool()> give_up;
};

class HttpClient {
public:
    // Connects with the first call. invalid: the URL.
    static Result<std::unique_ptr<HttpClient>> make(HttpClientOptions options);
    virtual ~HttpClient() = default;
    // Any status is an answer. unavailable: nobody there, the connection broke before an answer; timed_out;
    // denied: the certificate is not trusted. A kept connection that the server closed meanwhile is opened again once,
    // when the request was not sent or may be sent twice (GET, HEAD, PUT, DELETE, or with an Idempotency-Key).
    virtual Result<HttpResponse> call(const HttpCall& call) = 0;
};

}  // namespace stoker

// HTTP/1.1 as values: what the server hands to a handler and what goes back, what the client sends and gets. Nothing of
// the libraries behind it shows here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace stoker {

// In the order given; names are compared without case.
struct HttpHeaders {
    std::vector<std::pair<std::string, std::string>> items;

    // The first of that name.
    std::optional<std::string_view> find(std::string_view name) const;
    void add(std::string name, std::string value) { items.emplace_back(std::move(name), std::move(value)); }
};

struct HttpRequest {
    std::string method;  // "GET"
    std::string target;  // as sent: "/api/v1/runs?state=running"
    std::string path;    // of the target, percent-decoded, without dots; always begins with '/'
    std::vector<std::pair<std::string, std::string>> query;  // decoded, in order
    HttpHeaders headers;
    std::string body;
    std::string peer;  // address of the client, without the port
    bool secure = false;
    std::string certificate_name;  // of the client's certificate, where the server asks for one; empty: it has none

    std::optional<std::string_view> parameter(std::string_view name) const;  // the first of that name in the query
};

struct HttpResponse {
    int status = 200;
    std::string content_type;  // empty: none, for 204
    HttpHeaders headers;
    std::string body;
};

// The open end of an answer whose body comes in pieces (chunked). Any thread; may outlive the server.
class HttpStream {
public:
    virtual ~HttpStream() = default;
    // False: the reader is gone, or so slow that more than the bound was waiting for it, and it was cut off.
    virtual bool write(std::string piece) = 0;
    virtual void close() = 0;  // the body is complete; also when the last owner lets go
    virtual bool open() const = 0;
};

// Where one answer goes: a connection, or a caller in this process.
class HttpSink {
public:
    virtual ~HttpSink() = default;
    virtual void send(HttpResponse response) = 0;
    virtual std::shared_ptr<HttpStream> stream(HttpResponse head) = 0;
};

// An answer that is owed exactly once, from any thread. Dropped without one, 500 is sent: nobody waits for ever.
class HttpReply {
public:
    explicit HttpReply(std::shared_ptr<HttpSink> sink) : sink_(std::move(sink)) {}
    HttpReply(HttpReply&& other) noexcept = default;
    HttpReply& operator=(HttpReply&& other) noexcept = default;
    ~HttpReply();

    void send(HttpResponse response);
    // The head leaves at once; the body follows.
    std::shared_ptr<HttpStream> stream(HttpResponse head);

private:
    std::shared_ptr<HttpSink> sink_;  // empty once answered
};

// Runs on the loop: it may not block. What takes time answers later from another thread.
using HttpHandler = std::function<void(HttpRequest request, HttpReply reply)>;

}  // namespace stoker

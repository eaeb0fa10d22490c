// HTTP/1.1 on its way in, as a matter of bytes only: no sockets, no clock. llhttp reads the messages; what it lets pass
// and two readers could still understand differently is refused here (RFC 9112 section 11.2, request smuggling).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "io/http/http.h"
#include "io/http/http_target.h"

struct llhttp__internal_s;

namespace stoker {

struct HttpLimits {
    std::size_t max_head_bytes = 16 * 1024;
    std::size_t max_headers = 100;
    std::size_t max_body_bytes = 1 << 20;
    bool encoded_slashes = false;  // "%2F" in a path is a slash
};

struct FreeLlhttp {
    void operator()(llhttp__internal_s* parser) const;
};

// Reads requests one after the other.
class HttpRequestParser {
public:
    enum class State { head, body, complete, refused };

    explicit HttpRequestParser(HttpLimits limits);
    // Takes bytes until a request is complete or refused; returns how many. The rest belongs to the next request.
    std::size_t feed(std::string_view bytes);
    State state() const { return state_; }

    bool begun() const { return head_bytes_ > 0; }      // something of a request was seen
    bool expects_continue() const { return expects_; }  // the client waits for "100 Continue" before it sends
    void continue_sent() { expects_ = false; }
    bool keep_alive() const { return keep_alive_; }               // the client does not want to close after the answer
    bool http_1_0() const { return http_1_0_; }                   // no chunks in the answer
    bool head_only() const { return request_.method == "HEAD"; }  // until take()
    const HttpRequest& request() const { return request_; }       // its head is there in every state but head
    HttpRequest take();                                           // of a complete one; the next may be fed
    // What to answer when refused.
    int refusal_status() const { return refusal_status_; }
    const std::string& refusal() const { return refusal_; }

    // For the callbacks of llhttp.
    bool on_header_name(std::string_view name);  // false: refused or broken
    bool on_header_value(std::string_view value);
    bool on_padding(std::size_t bytes);  // chunk extensions, trailers
    bool on_head_complete();             // false: refused
    bool on_body(std::string_view piece);
    void on_complete() { state_ = State::complete; }

private:
    std::size_t feed_head(std::string_view bytes);
    std::size_t feed_body(std::string_view bytes);
    bool check_request_line();
    bool check_headers();
    bool refuse(int status, std::string why);

    HttpLimits limits_;
    std::unique_ptr<llhttp__internal_s, FreeLlhttp> parser_;
    HttpRequest request_;
    State state_ = State::head;
    std::string head_;  // as sent, while it is incomplete
    std::size_t head_bytes_ = 0, lines_ = 0, line_bytes_ = 0, raw_body_bytes_ = 0, padding_bytes_ = 0;
    char previous_ = '\0';
    bool expects_ = false, keep_alive_ = false, http_1_0_ = false;
    int refusal_status_ = 0;
    std::string refusal_;
};

// Reads the answer to one request.
class HttpResponseParser {
public:
    enum class State { head, body, complete, broken };

    // head_only: the answer to HEAD, whose headers speak of a body that does not come.
    HttpResponseParser(bool head_only, HttpLimits limits);
    std::size_t feed(std::string_view bytes);
    void finish();  // the connection was closed: complete when the body went up to there
    State state() const { return state_; }
    bool keep_alive() const { return keep_alive_; }
    const std::string& what_is_wrong() const { return wrong_; }
    HttpResponse& response() { return response_; }
    // Gets the body instead of response().body once set, which is possible when the head is complete.
    std::function<bool(std::string_view piece)> on_piece;
    std::function<void()> on_head;             // before the first byte of the body
    bool stopped() const { return stopped_; }  // on_piece said that it has enough

    bool on_header_name(std::string_view name);  // false: refused or broken
    void on_header_name_end() { in_name_ = false; }
    bool on_header_value(std::string_view value);
    bool on_padding(std::size_t bytes);  // chunk extensions, trailers
    int on_head_complete();
    bool on_body(std::string_view piece);
    void on_complete();

private:
    bool broken(std::string why);
    void begin();

    bool head_only_;
    HttpLimits limits_;
    std::unique_ptr<llhttp__internal_s, FreeLlhttp> parser_;
    HttpResponse response_;
    State state_ = State::head;
    std::size_t head_bytes_ = 0, body_bytes_ = 0;
    bool in_name_ = false, keep_alive_ = false, interim_ = false, stopped_ = false;
    std::string wrong_;
};

}  // namespace stoker

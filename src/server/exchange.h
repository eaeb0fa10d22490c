// One request and the answer it is owed, with what every answer has in common: the trace, the headers, and problems as
// RFC 9457 wants them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "govern/actor.h"
#include "io/http/http.h"

namespace stoker::api {

// W3C trace context: the caller's trace goes on, or a new one begins.
struct Trace {
    std::string parent;  // the whole header as it is echoed and recorded
    std::string id;      // 32 hex digits
};
Trace trace_of(const HttpRequest& request);

int status_of(ErrorKind kind);
std::string_view title_of(int status);
// application/problem+json, without the common headers. `status` 0: by the kind.
HttpResponse problem_response(const Error& error, const std::string& trace_id, int status = 0);
HttpResponse json_response(const Json& body, int status = 200);

struct Parameters {
    std::map<std::string, std::string, std::less<>> path, query;  // query holds only what was given
    bool has(std::string_view name) const { return query.contains(name); }
    std::string text(std::string_view name, std::string otherwise = {}) const;
    std::int64_t integer(std::string_view name, std::int64_t otherwise) const;  // checked before a handler runs
    double number(std::string_view name, double otherwise) const;
    bool flag(std::string_view name) const;
};

class Exchange {
public:
    Exchange(HttpRequest request, HttpReply reply);

    HttpRequest request;
    Parameters parameters;
    Trace trace;
    Actor actor{.kind = PrincipalKind::user, .name = "nobody"};  // who asks
    std::string_view operation{};                                // of the route; empty: of none
    bool audited = true;                                         // of the route
    std::string request_id;  // X-Request-Id of the caller, echoed; the id of the trace when there is none

    // Whom somebody says to be who has not shown it yet; for the audit trail. Any thread.
    void claim(std::string name);
    std::string claimed() const;

    // Any thread; the first answer counts, later ones are dropped.
    void send(HttpResponse response);
    void send(const Json& body, int status = 200) { send(json_response(body, status)); }
    void fail(const Error& error, int status = 0, const std::string& retry_after = {});
    std::shared_ptr<HttpStream> stream(HttpResponse head);  // nothing when it was answered already
    bool answered() const { return answered_.load(); }
    void on_answer(std::function<void()> then) { then_ = std::move(then); }
    // Called once, with the status, before the answer goes out. Set before anybody may answer.
    void on_status(std::function<void(int)> tell) { tell_ = std::move(tell); }

private:
    void dress(HttpResponse& response) const;
    HttpReply reply_;
    std::atomic<bool> answered_{false};
    mutable std::mutex claim_mutex_;  // guards claimed_
    std::string claimed_;
    std::function<void()> then_;
    std::function<void(int)> tell_;
};
using ExchangePtr = std::shared_ptr<Exchange>;

}  // namespace stoker::api

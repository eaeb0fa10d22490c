// The streams of a connection that speaks HTTP/2: each is a client like any other, with a key, a request and an answer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "io/http/http2.h"
#include "serve/gateway/gateway_client.h"

namespace stoker::gateway {

class Http2Session;
class Session;

class Http2Stream final : public GatewayClient {
public:
    Http2Stream(Loop& loop, Http2Session& connection, std::int32_t id, bool own);

    void begin(const HttpRequest& head, bool waits);
    void take(HttpRequest request) { dispatch(std::move(request)); }
    void refuse_head(int status, const std::string& why);
    void leave();  // its client has given it up, or has all of it
    void sweep(std::int64_t now_us);
    void read_on();
    void cut_as_slow();

    void aside_done(const HttpResponse& response) override;
    void queue(std::string_view bytes) override;
    void flush() override;
    std::size_t backlog() const override;
    bool chunks() const override { return false; }  // frames are
    bool keeps_open() const override { return true; }
    void exchange_done(bool keep_open) override;

private:
    void send_whole(std::string_view answer) override;
    void send_head(std::string_view lines);
    void end();

    Http2Session& connection_;
    const std::int32_t id_;
    std::string head_;  // of the answer, until it is whole
    bool head_sent_ = false, ended_ = false;
    std::int64_t window_us_;        // of the body that comes in
    std::size_t window_bytes_ = 0;  // that were there when it began
    std::int64_t stuck_us_ = 0;     // since when nothing went out; 0: nothing waits
};

class Http2Session final : public Http2Handler {
public:
    Http2Session(Loop& loop, Session& session, bool own);

    void feed(std::string_view bytes);
    void pump();  // what is to be sent, as far as the socket takes it
    void sweep(std::int64_t now_us);
    void drain();
    void leave();        // the connection is gone
    void cut_as_slow();  // nothing at all is read
    Http2Connection& wire() { return wire_; }
    const std::string& peer() const;

    void on_head(std::int32_t stream, const HttpRequest& head, bool waits) override;
    void on_request(std::int32_t stream, HttpRequest request) override;
    void on_refused(std::int32_t stream, int status, const std::string& why) override;
    void on_room(std::int32_t stream) override;
    void on_closed(std::int32_t stream) override;

private:
    Http2Stream* find(std::int32_t stream) const;
    Http2Stream& stream_of(std::int32_t stream);

    Loop& loop_;
    Session& session_;
    const bool own_;
    Http2Connection wire_;
    std::unordered_map<std::int32_t, std::unique_ptr<Http2Stream>> streams_;
    bool busy_ = false, calmed_ = false;
    std::int64_t since_us_;     // when the last stream ended
    std::int64_t forgiven_us_;  // what the connection asked too much of us
};

}  // namespace stoker::gateway

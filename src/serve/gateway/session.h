// One connection of a client: its bytes in and out. It reads requests of HTTP/1.1 one after the other; where the client
// begins with HTTP/2 the streams of that take over.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "io/http/http_parser.h"
#include "io/process.h"
#include "serve/gateway/gateway_client.h"
#include "serve/gateway/poller.h"

struct ssl_st;

namespace stoker::gateway {

class Http2Session;

class Session final : public GatewayClient, public Watcher {
public:
    Session(Loop& loop, UniqueFd socket, bool own);
    ~Session() override;

    void on_ready(std::uint32_t events) override;
    void sweep(std::int64_t now_us);
    void drain();  // no further request
    void close();  // now; what was under way is settled as left by the client
    void aside_done(const HttpResponse& response) override;

    void queue(std::string_view bytes) override { out_ += bytes; }
    void flush() override;
    std::size_t backlog() const override { return out_.size() - sent_; }
    bool chunks() const override { return !http_1_0_; }
    bool keeps_open() const override;
    void exchange_done(bool keep_open) override;

    // For the streams of HTTP/2.
    std::string& out() { return out_; }
    void send_out();  // what the socket takes; may close
    void watch();
    bool closed() const { return dead_; }

private:
    void send_whole(std::string_view answer) override;
    void begin(std::string_view bytes);
    void read();
    void take(std::string_view bytes);
    void process();
    void go_on();
    void probe();
    ssize_t receive(char* buffer, std::size_t size);
    ssize_t transmit(std::string_view bytes);

    UniqueFd socket_;
    std::unique_ptr<ssl_st, void (*)(ssl_st*)> tls_;
    HttpRequestParser parser_;
    std::unique_ptr<Http2Session> http2_;  // null: HTTP/1.1 is spoken
    bool authenticated_ = false;           // for the request that is read
    std::string rest_;  // came behind the request that is under way, or may become the begin of HTTP/2
    std::string out_;
    std::size_t sent_ = 0;
    std::uint32_t watched_ = 0;
    const bool own_;
    bool fresh_ = true;  // nothing was read yet
    bool keep_alive_ = false, http_1_0_ = false, closing_ = false, eof_ = false, draining_ = false, dead_ = false,
         tls_wants_write_ = false;
    std::int64_t since_us_;       // when it became quiet, or the head began
    std::int64_t window_us_ = 0;  // of the body that comes in
    std::size_t window_bytes_ = 0;
    std::int64_t stuck_us_ = 0;  // since when nothing went out; 0: nothing waits
};

}  // namespace stoker::gateway

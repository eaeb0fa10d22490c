// One connection of a client: reads requests one after the other, and owns what is on its way out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "io/http/http_parser.h"
#include "io/process.h"
#include "serve/gateway/answers.h"
#include "serve/gateway/idempotency.h"
#include "serve/gateway/poller.h"
#include "serve/gateway/setup.h"

struct ssl_st;

namespace stoker::gateway {

class Loop;
class Exchange;

class Session final : public Watcher {
public:
    Session(Loop& loop, UniqueFd socket, bool own);  // own: of this process itself
    ~Session() override;

    void on_ready(std::uint32_t events) override;
    void sweep(std::int64_t now_us);
    void drain();  // no further request
    void close();  // now; what was under way is settled as left by the client
    Exchange* exchange() { return exchange_.get(); }
    std::uint64_t aside() const { return aside_; }  // that is answered elsewhere; 0: none
    void aside_done(const HttpResponse& response);

    // For the exchange.
    void queue(std::string_view bytes) { out_ += bytes; }
    void flush();
    std::size_t backlog() const { return out_.size() - sent_; }
    bool http_1_0() const { return http_1_0_; }
    bool keeps_open() const;
    void exchange_done(bool keep_open);  // all of the answer is queued
    void refuse(const Refusal& refusal, std::string_view more_headers = {}, std::string_view request_id = {});
    void replay(const KeptAnswer& answer);  // of another request of the same name
    void close_when_sent() { closing_ = true; }

private:
    void read();
    void take(std::string_view bytes);
    void process();
    void dispatch(HttpRequest request);
    bool authenticate(const HttpRequest& request);
    bool own_key(const HttpRequest& request, std::string_view secret);
    void ask_aside(HttpRequest request);
    void go_on();
    void answer(int status, std::string_view type, std::string_view body, bool head_only = false);
    void models(const HttpRequest& request);
    void probe();
    void watch();
    ssize_t receive(char* buffer, std::size_t size);
    ssize_t transmit(std::string_view bytes);

    Loop& loop_;
    UniqueFd socket_;
    std::unique_ptr<ssl_st, void (*)(ssl_st*)> tls_;
    std::shared_ptr<const Setup> setup_;  // of the request that is read
    HttpRequestParser parser_;
    const KeySetup* key_ = nullptr;  // in setup_
    std::string secret_;             // that key_ was found by
    std::uint64_t version_ = 0;      // of the setup when it was
    bool authenticated_ = false;     // for the request that is read
    bool speaks_messages_ = false;   // it is for the Anthropic API
    std::string rest_;               // came behind the request that is under way
    std::string out_;
    std::size_t sent_ = 0;
    std::unique_ptr<Exchange> exchange_;
    std::uint32_t watched_ = 0;
    const bool own_;
    std::uint64_t aside_ = 0;
    bool keep_alive_ = false, http_1_0_ = false, closing_ = false, eof_ = false, draining_ = false, dead_ = false,
         tls_wants_write_ = false;
    std::int64_t since_us_;       // when it became quiet, or the head began
    std::int64_t window_us_ = 0;  // of the body that comes in
    std::size_t window_bytes_ = 0;
    std::int64_t stuck_us_ = 0;  // since when nothing went out; 0: nothing waits
};

}  // namespace stoker::gateway

// Who has asked something: a connection of HTTP/1.1, or one stream of HTTP/2. What it may, what it asks for and how it
// is answered is the same for both; how bytes travel is theirs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "io/http/http_parser.h"
#include "serve/gateway/answers.h"
#include "serve/gateway/idempotency.h"
#include "serve/gateway/setup.h"

namespace stoker::gateway {

class Loop;
class Exchange;

HttpLimits limits_of_requests(const Setup& setup);

class GatewayClient {
public:
    GatewayClient(Loop& loop, bool own);  // own: of this process itself
    virtual ~GatewayClient();
    GatewayClient(const GatewayClient&) = delete;
    GatewayClient& operator=(const GatewayClient&) = delete;

    Exchange* exchange() { return exchange_.get(); }
    std::uint64_t aside() const { return aside_; }  // that is answered elsewhere; 0: none
    virtual void aside_done(const HttpResponse& response) = 0;

    // For the exchange. An answer is its head as lines of HTTP/1.1, whatever is spoken, and behind it its body.
    virtual void queue(std::string_view bytes) = 0;
    virtual void flush() = 0;
    virtual std::size_t backlog() const = 0;
    virtual bool chunks() const = 0;  // a body without a length comes in chunks
    virtual bool keeps_open() const = 0;
    virtual void exchange_done(bool keep_open) = 0;  // all of the answer is queued
    void refuse(const Refusal& refusal, std::string_view more_headers = {}, std::string_view request_id = {});
    const std::string& peer() const { return peer_; }  // its address, where an access log is kept
    AccessCaller access_caller() const;                // of the request that is under way; lives no longer
    void append_page_headers(std::string& out) const;  // for a web page whose origin may ask
    void replay(const KeptAnswer& answer);             // of another request of the same name

protected:
    void known_as(std::string peer) { peer_ = std::move(peer); }
    void hear(const HttpRequest& head);  // in whose words it asks, and from which page
    // A browser asks with OPTIONS, without a key, what a page of another place may ask.
    static bool asks_what_may_be(const HttpRequest& head) { return head.method == "OPTIONS"; }
    void say_what_may_be();
    std::optional<Refusal> authenticate(const HttpRequest& head);  // why not
    void dispatch(HttpRequest request);
    void answer(int status, std::string_view type, std::string_view body);
    void leave_exchange();     // its client is gone
    void cut_slow_exchange();  // its client does not read
    void tell_room();          // to the exchange, if there is some again
    static Refusal late_request();
    virtual void send_whole(std::string_view answer) = 0;

    Loop& loop_;
    std::shared_ptr<const Setup> setup_;  // of the request that is read
    std::unique_ptr<Exchange> exchange_;
    std::uint64_t aside_ = 0;

private:
    std::optional<Refusal> own_key(const HttpRequest& request, std::string_view secret);
    void ask_aside(HttpRequest request);
    void models(const HttpRequest& request);

    const KeySetup* key_ = nullptr;  // in setup_
    std::string secret_;             // that key_ was found by
    std::uint64_t version_ = 0;      // of the setup when it was
    const bool own_;
    bool speaks_messages_ = false;       // the Anthropic API
    bool head_only_ = false;             // it asks for no body
    std::string peer_, method_, path_;   // for the access log, where one is kept
    std::string origin_, page_headers_;  // of a page that may ask: where it comes from, and what it wants to send
};

}  // namespace stoker::gateway

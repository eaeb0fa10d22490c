// One connection to an upstream: connecting, with one request on it, or idle until the next.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "io/process.h"
#include "serve/gateway/poller.h"
#include "serve/gateway/setup.h"

struct ssl_st;

namespace stoker::gateway {

class Loop;
class Exchange;
struct Replica;

class UpstreamConnection final : public Watcher {
public:
    UpstreamConnection(Loop& loop, Replica& replica);
    ~UpstreamConnection() override;

    // An idle one of the replica, or a new one that connects. Null: the system gives none.
    static UpstreamConnection* obtain(Loop& loop, Replica& replica, const UpstreamSetup& upstream, bool fresh);

    // `request` has to stay until something of the answer has come.
    void begin(Exchange* exchange, std::string_view request);
    void on_ready(std::uint32_t events) override;
    bool reused() const { return uses_ > 1; }
    bool sent() const { return request_.empty(); }  // all of the request
    bool connecting() const;                        // inside TLS, until both sides trust each other
    std::uint64_t replica_id() const;
    void pause(bool paused);  // reads no more: the client is slow
    void release();           // idle: for the next request
    void drop();              // closes; nobody is told

private:
    bool begin_tls(const UpstreamSetup& upstream);
    ssize_t receive(char* buffer, std::size_t size);
    ssize_t transmit(std::string_view bytes);
    void write();
    void read();
    void watch(std::uint32_t events);

    Loop& loop_;
    Replica& replica_;
    UniqueFd socket_;
    std::unique_ptr<ssl_st, void (*)(ssl_st*)> tls_;
    bool tls_wants_write_ = false;
    Exchange* exchange_ = nullptr;
    std::string_view request_;
    std::uint32_t watched_ = 0;
    int uses_ = 0;
    bool connecting_ = false, paused_ = false, idle_ = false;
};

}  // namespace stoker::gateway

// One event loop of a gateway: its listener, its sessions, its connections to upstreams. All on one thread; what loops
// share is Shared.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/random.h"
#include "govern/ledger/ledger.h"
#include "govern/limits/limit_book.h"
#include "io/process.h"
#include "io/worker.h"
#include "serve/fleet/breaker.h"
#include "serve/fleet/prefix_index.h"
#include "serve/fleet/route.h"
#include "serve/gateway/figures.h"
#include "serve/gateway/gateway.h"
#include "serve/gateway/holding.h"
#include "serve/gateway/idempotency.h"
#include "serve/gateway/limit_share.h"
#include "serve/gateway/poller.h"
#include "serve/gateway/setup.h"
#include "serve/gateway/traces.h"
#include "serve/wire/usage.h"

struct ssl_ctx_st;

namespace stoker::gateway {

class GatewayClient;
class Session;
class Exchange;
class UpstreamConnection;

struct Counters {
    std::atomic<std::uint64_t> connections{0}, requests{0}, refused{0}, failed{0}, retries{0}, cancels{0},
        slow_consumers{0}, hedges{0}, hedges_won{0}, http2_connections{0}, http2_calmed{0}, tokens_in{0}, tokens_out{0},
        picousd{0}, drift{0}, counted{0}, unaccounted{0};
    std::atomic<std::int64_t> open_sessions{0}, streams{0}, under_way{0}, held{0};
};

// Of all loops.
struct Shared {
    GatewayOptions options;
    std::unique_ptr<Ledger> ledger;  // null: no account is kept
    LimitBook limits;
    std::unique_ptr<LimitShare> share;      // null: the limits are of this gateway alone
    std::unique_ptr<TraceExporter> traces;  // null: nothing is recorded
    std::unique_ptr<AccessLog> access;      // null: none is kept
    Counters counters;
    FigureBook figures;
    IdempotencyBook names;
    std::string own_secret;
    WorkerPool aside{{.name = "gateway-aside", .threads = 2, .most_waiting = 64}};
    std::shared_ptr<ssl_ctx_st> tls;
    std::atomic<bool> draining{false};
    std::atomic<std::uint64_t> version{1};  // of the setup
    std::atomic<std::uint32_t> requests_made{0};
    std::atomic<std::int64_t> period_from_us{0};  // of budgets
    const std::int64_t began_us = wall_clock_us();

    std::shared_ptr<const Setup> setup() const { return std::atomic_load(&setup_); }
    void begin_period(std::int64_t now_us);  // when one has: budgets are whole again
    void set_setup(std::shared_ptr<const Setup> setup) {
        std::atomic_store(&setup_, std::move(setup));
        ++version;
    }

    std::shared_ptr<const SideApi> side() const { return std::atomic_load(&side_); }
    void set_side(std::shared_ptr<const SideApi> side) { std::atomic_store(&side_, std::move(side)); }

private:
    std::shared_ptr<const Setup> setup_;
    std::shared_ptr<const SideApi> side_;
};

// What this loop knows of one upstream.
struct Replica {
    std::uint64_t id = 0;
    BreakerState breaker;
    std::uint32_t outstanding = 0, connections = 0;
    double waiting_prompt_tokens = 0, outstanding_decode_tokens = 0;
    std::vector<UpstreamConnection*> idle;  // the last one was used last
};

class Loop final : public Watcher {
public:
    static Result<std::unique_ptr<Loop>> make(Shared& shared, std::uint64_t seed, std::uint16_t port);
    ~Loop() override;

    std::uint16_t port() const { return port_; }
    Status open_own_door();  // before start()
    std::uint16_t own_port() const { return own_door_ ? own_door_->port : 0; }
    void start();
    void stop();  // when drained, or at once after cut()
    void drain();
    void cut();  // what is under way ends with an event that says so
    std::size_t open_sessions() const { return open_; }

    void on_ready(std::uint32_t events) override;  // of the listener

    // For sessions, exchanges and connections.
    Shared& shared() { return shared_; }
    Poller& poller() { return *poller_; }
    Replica& replica(std::uint64_t id);
    wire::BytesPerToken& bytes_per_token(std::uint64_t model) { return bytes_per_token_[model]; }
    // Of prompts as they are written, with all that a template adds: where no tokenizer counts them.
    wire::BytesPerToken& prompt_bytes_per_token(std::uint64_t model) { return prompt_bytes_per_token_[model]; }
    wire::TemplateTokens& template_tokens(std::uint64_t model) { return template_tokens_[model]; }
    char* scratch() { return scratch_.data(); }
    std::size_t scratch_size() const { return scratch_.size(); }
    SplitMix& random() { return random_; }
    Holding& holding() { return holding_; }
    void exchange_begins() { ++under_way_; }
    void exchange_ends() { --under_way_; }
    RequestKey new_request();
    // Requests of a model that may be on two replicas: three, and one more for each ten that came.
    void earn_hedge(std::uint64_t model);
    bool take_hedge(std::uint64_t model);
    void return_hedge(std::uint64_t model) { hedges_[model] += 1; }
    PrefixIndex& prefixes();
    void forget_prefixes(std::uint64_t replica) {
        if (prefixes_) prefixes_->forget(replica);
    }
    ModelFigures& figures_of(const ModelSetup& model);
    ProjectFigures& figures_of(const KeySetup& key);
    // For the commit of what this record is part of.
    void wait_for_commit(std::uint64_t lsn, Exchange* exchange) {
        waiting_.emplace(lsn, exchange);
        commit_wanted_ = true;
    }
    void no_longer_waits(std::uint64_t lsn) { waiting_.erase(lsn); }
    void streams(Exchange* exchange, bool does);
    void session_ended(Session* session);
    std::uint64_t next_aside() { return ++asides_; }
    // For the exchange of this client, which hears of it by the number that comes back.
    std::uint64_t ask_share(GatewayClient* client, LimitAsk ask);
    void client_begins(GatewayClient* client) { clients_.insert(client); }
    void client_ended(GatewayClient* client) { clients_.erase(client); }
    void answer_aside(GatewayClient* client, std::uint64_t aside, const HttpResponse& response);
    void keep(std::unique_ptr<UpstreamConnection> connection);
    void connection_ended(UpstreamConnection* connection);

private:
    struct OwnDoor final : Watcher {
        explicit OwnDoor(Loop& of) : loop(of) {}
        void on_ready(std::uint32_t) override { loop.accept_all(socket.get(), true); }
        Loop& loop;
        UniqueFd socket;
        std::uint16_t port = 0;
    };
    Loop(Shared& shared, std::uint64_t seed);
    void accept_all(int listener, bool own);
    void run();
    void on_commit();
    void sweep();
    void mark();
    std::vector<GatewayClient*> all_clients() const { return {clients_.begin(), clients_.end()}; }
    std::chrono::microseconds commit_or_wait();
    void forget_replicas();

    Shared& shared_;
    SplitMix random_;
    std::vector<char> scratch_;
    std::unordered_set<GatewayClient*>
        clients_;  // connections, and streams of those that have some; outlives all of them
    std::unique_ptr<Poller> poller_;
    UniqueFd listener_;
    std::unique_ptr<OwnDoor> own_door_;
    std::uint64_t asides_ = 0;
    std::uint16_t port_ = 0;
    std::thread thread_;
    std::atomic<bool> stopping_{false};
    std::atomic<std::size_t> open_{0};
    std::int64_t swept_us_ = 0, marked_us_ = 0;
    std::uint64_t seen_version_ = 0;
    std::unordered_map<Session*, std::unique_ptr<Session>> sessions_;
    std::unordered_map<UpstreamConnection*, std::unique_ptr<UpstreamConnection>> connections_;
    std::unordered_map<std::uint64_t, Replica> replicas_;
    std::unordered_map<std::uint64_t, wire::BytesPerToken> bytes_per_token_, prompt_bytes_per_token_;
    std::unordered_map<std::uint64_t, wire::TemplateTokens> template_tokens_;
    std::unordered_map<std::uint64_t, double> hedges_;  // that are left, by model
    std::unordered_map<std::uint64_t, ModelFigures*> model_figures_;
    std::unordered_map<std::uint64_t, ProjectFigures*> project_figures_;
    std::unique_ptr<PrefixIndex> prefixes_;       // made where a model has more than one replica
    std::map<std::uint64_t, Exchange*> waiting_;  // by the record that they wait for
    std::size_t under_way_ = 0;                   // exchanges
    bool commit_wanted_ = false;
    std::int64_t committed_us_ = 0;
    std::unordered_set<Exchange*> streams_;
    Holding holding_{*this};
};

}  // namespace stoker::gateway

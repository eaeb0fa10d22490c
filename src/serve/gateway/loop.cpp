#include "serve/gateway/loop.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "io/worker.h"
#include "serve/gateway/exchange.h"
#include "serve/gateway/session.h"
#include "serve/gateway/upstream.h"

namespace stoker::gateway {
namespace {

using std::chrono::microseconds;
constexpr microseconds kTurn{100'000}, kHoldingTurn{10'000}, kMostGather{1'000}, kLeastGather{50};
constexpr double kHedgesAtOnce = 3, kHedgesOfARequest = 0.1, kMostHedges = 10;
constexpr std::int64_t kMarkEveryUs = 1'000'000, kSweepEveryUs = 100'000;

Error not_listening(const GatewayOptions& options, std::uint16_t port) {
    return Error(errno == EACCES ? ErrorKind::denied : ErrorKind::unavailable,
                 fmt::format("cannot listen on {}:{}: {}", options.address, port, std::strerror(errno)), {},
                 "name another address or port as listen: ADDRESS:PORT");
}

}  // namespace

void Shared::begin_period(std::int64_t now_us) {
    const std::int64_t from_us = budget_period_start_us(options.budget_period, now_us);
    std::int64_t before_us = period_from_us;
    // A clock that was set back begins no period again.
    while (from_us > before_us)
        if (period_from_us.compare_exchange_weak(before_us, from_us)) {
            limits.begin_period();
            if (share) share->begin_period();
            return;
        }
}

Result<std::unique_ptr<Loop>> Loop::make(Shared& shared, std::uint64_t seed, std::uint16_t port) {
    auto loop = std::unique_ptr<Loop>(new Loop(shared, seed));
    TRY(loop->poller_, Poller::make());
    const GatewayOptions& options = shared.options;
    sockaddr_storage address{};
    socklen_t size = 0;
    auto* four = reinterpret_cast<sockaddr_in*>(&address);
    auto* six = reinterpret_cast<sockaddr_in6*>(&address);
    if (::inet_pton(AF_INET, options.address.c_str(), &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        size = sizeof *four;
    } else if (::inet_pton(AF_INET6, options.address.c_str(), &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(port);
        size = sizeof *six;
    } else {
        return Error(ErrorKind::invalid, fmt::format("'{}' is no address to listen on", options.address));
    }
    loop->listener_.reset(::socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int on = 1, fd = loop->listener_.get();
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (options.threads > 1) ::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    if (::bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(fd, 4096) != 0)
        return not_listening(options, port);
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    loop->port_ = ntohs(address.ss_family == AF_INET ? four->sin_port : six->sin6_port);
    if (!loop->poller_->add(fd, loop.get(), EPOLLIN)) return not_listening(options, port);
    return loop;
}

Loop::Loop(Shared& shared, std::uint64_t seed) : shared_(shared), random_(seed), scratch_(64 * 1024) {}

Loop::~Loop() {
    stop();
}

void Loop::start() {
    thread_ = masked_thread("gateway", [this] { run(); });
}

void Loop::stop() {
    stopping_ = true;
    poller_->wake();
    if (thread_.joinable()) thread_.join();
    while (!sessions_.empty()) sessions_.begin()->second->close();
    while (!connections_.empty()) connections_.begin()->second->drop();
    poller_->turn(microseconds(0));
}

void Loop::run() {
    seen_version_ = shared_.version;
    microseconds most = kTurn;
    while (!stopping_) {
        poller_->turn(std::min(most, holding_.empty() ? kTurn : kHoldingTurn));
        holding_.turn(static_cast<double>(monotonic_clock_us()) / kUs);
        if (shared_.ledger && (!waiting_.empty() || shared_.ledger->failed())) on_commit();
        sweep();
        most = commit_or_wait();
    }
}

// At the end of a turn, for all that it has taken. A commit costs the processor as much as a request: where another one
// began a moment ago, it waits for more to join, unless half of all that may still join (what is under way, and no
// stream that goes on) wait for it already. So one request never waits for others, and few wait for what they take
// themselves. How long the moment is follows what the processor has left: none while half of the time is idle, where
// the disk is all that anybody waits for, and a millisecond at nine tenths. Returns how long the next turn may take.
microseconds Loop::commit_or_wait() {
    if (!commit_wanted_ || !shared_.ledger) return kTurn;
    const std::int64_t now_us = monotonic_clock_us();
    const std::size_t may_join = under_way_ - std::min(under_way_, streams_.size());
    const double scarce = std::clamp((poller_->busy_share() - 0.5) / 0.4, 0.0, 1.0);
    const microseconds gather(static_cast<std::int64_t>(scarce * static_cast<double>(kMostGather.count())));
    const microseconds left = gather - microseconds(now_us - committed_us_);
    if (2 * waiting_.size() < may_join && left >= kLeastGather) return left;
    commit_wanted_ = false;
    committed_us_ = now_us;
    shared_.ledger->commit();
    return kTurn;
}

Status Loop::open_own_door() {
    auto door = std::make_unique<OwnDoor>(*this);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    door->socket.reset(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!door->socket || ::bind(door->socket.get(), any, size) != 0 || ::listen(door->socket.get(), 256) != 0 ||
        ::getsockname(door->socket.get(), any, &size) != 0 || !poller_->add(door->socket.get(), door.get(), EPOLLIN))
        return Error(ErrorKind::unavailable, fmt::format("cannot listen on loopback: {}", std::strerror(errno)));
    door->port = ntohs(address.sin_port);
    own_door_ = std::move(door);
    return done();
}

void Loop::answer_aside(GatewayClient* client, std::uint64_t aside, const HttpResponse& response) {
    if (clients_.contains(client) && client->aside() == aside) client->aside_done(response);
}

std::uint64_t Loop::ask_share(GatewayClient* client, LimitAsk ask) {
    const std::uint64_t number = next_aside();
    const auto asked = std::make_shared<const LimitAsk>(ask);
    shared_.share->ask(std::move(ask), [this, client, number, asked](const std::optional<AdmitDecision>& decision) {
        poller_->post([this, client, number, asked, decision] {
            Exchange* exchange = clients_.contains(client) ? client->exchange() : nullptr;
            if (exchange != nullptr && exchange->asked_for() == number) return exchange->share_told(decision);
            if (decision && decision->admitted()) shared_.share->undo(*asked);
        });
    });
    return number;
}

void Loop::on_ready(std::uint32_t) {
    accept_all(listener_.get(), false);
}

void Loop::accept_all(int listener, bool own) {
    while (true) {
        UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!socket) return;
        if (sessions_.size() >= shared_.options.max_connections) continue;  // closed: there is no room for it
        const int on = 1;
        ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        ++shared_.counters.connections;
        auto session = std::make_unique<Session>(*this, std::move(socket), own);
        Session* key = session.get();
        sessions_.emplace(key, std::move(session));
        open_ = sessions_.size();
    }
}

void Loop::on_commit() {
    const bool failed = shared_.ledger->failed();
    const std::uint64_t durable = shared_.ledger->durable();
    while (!waiting_.empty() && (failed || waiting_.begin()->first <= durable)) {
        Exchange* first = waiting_.begin()->second;
        waiting_.erase(waiting_.begin());
        first->committed();
    }
    if (!failed) return;
    // What cannot be accounted for does not go on.
    const std::vector<Exchange*> told(streams_.begin(), streams_.end());
    for (Exchange* each : told)
        if (streams_.contains(each)) each->committed();
}

void Loop::sweep() {
    const std::int64_t now_us = monotonic_clock_us();
    if (now_us - marked_us_ >= kMarkEveryUs) mark();
    if (now_us - swept_us_ < kSweepEveryUs) return;
    swept_us_ = now_us;
    commit_wanted_ = true;  // what nobody waits for
    const std::uint64_t version = shared_.version;
    const bool changed = std::exchange(seen_version_, version) != version;
    if (changed) {
        const auto setup = shared_.setup();
        const std::int64_t wall_us = wall_clock_us();
        for (GatewayClient* client : all_clients())
            if (clients_.contains(client) && client->exchange() != nullptr)
                client->exchange()->setup_changed(*setup, wall_us);
    }
    std::vector<Session*> all;
    all.reserve(sessions_.size());
    for (const auto& [session, owned] : sessions_) all.push_back(session);
    for (Session* session : all)
        if (sessions_.contains(session)) session->sweep(now_us);
}

void Loop::mark() {
    marked_us_ = monotonic_clock_us();
    forget_replicas();
    shared_.begin_period(wall_clock_us());
    if (!shared_.ledger) return;
    std::vector<MarkEntry> marks;
    for (Exchange* each : streams_)
        if (const auto moved = each->mark()) marks.push_back(*moved);
    if (!marks.empty()) shared_.ledger->mark(marks);
}

// Replicas of endpoints come and go, each with an id of its own.
void Loop::forget_replicas() {
    constexpr std::size_t kFew = 256;
    if (replicas_.size() <= kFew) return;
    std::unordered_set<std::uint64_t> known;
    const auto setup = shared_.setup();
    for (const auto& [name, model] : setup->models) {
        for (const UpstreamSetup& upstream : model.upstreams) known.insert(upstream.id);
        if (!model.board) continue;
        const auto view = model.board->view();
        for (const BoardReplica& replica : view->replicas) known.insert(replica.id);
    }
    std::erase_if(replicas_, [&](const auto& each) {
        return each.second.outstanding == 0 && each.second.connections == 0 && !known.contains(each.first);
    });
}

RequestKey Loop::new_request() {
    RequestKey key{};
    const auto ms = static_cast<std::uint64_t>(wall_clock_us() / 1000);
    const std::uint64_t gateway = shared_.options.name, drawn = random_.next();
    for (std::size_t i = 0; i < 6; ++i) key[i] = static_cast<std::uint8_t>(ms >> (40 - 8 * i));
    for (std::size_t i = 0; i < 2; ++i) key[6 + i] = static_cast<std::uint8_t>(gateway >> (8 - 8 * i));
    for (std::size_t i = 0; i < 8; ++i) key[8 + i] = static_cast<std::uint8_t>(drawn >> (8 * i));
    return key;
}

void Loop::earn_hedge(std::uint64_t model) {
    double& left = hedges_.try_emplace(model, kHedgesAtOnce).first->second;
    left = std::min(left + kHedgesOfARequest, kMostHedges);
}

bool Loop::take_hedge(std::uint64_t model) {
    double& left = hedges_.try_emplace(model, kHedgesAtOnce).first->second;
    if (left < 1) return false;
    left -= 1;
    return true;
}

PrefixIndex& Loop::prefixes() {
    constexpr std::size_t kBytes = 8u << 20;  // 350 thousand blocks: 22 million tokens
    if (!prefixes_) prefixes_ = std::make_unique<PrefixIndex>(kBytes);
    return *prefixes_;
}

ModelFigures& Loop::figures_of(const ModelSetup& model) {
    ModelFigures*& known = model_figures_[model.id];
    if (known == nullptr) known = &shared_.figures.of_model(model.id, model.name);
    return *known;
}

ProjectFigures& Loop::figures_of(const KeySetup& key) {
    ProjectFigures*& known = project_figures_[key.project_id];
    if (known == nullptr) known = &shared_.figures.of_project(key.project_id, key.project);
    return *known;
}

Replica& Loop::replica(std::uint64_t id) {
    Replica& replica = replicas_[id];
    replica.id = id;
    return replica;
}

void Loop::streams(Exchange* exchange, bool does) {
    if (does ? streams_.insert(exchange).second : streams_.erase(exchange) > 0)
        shared_.counters.streams += does ? 1 : -1;
}

void Loop::session_ended(Session* session) {
    const auto found = sessions_.find(session);
    if (found == sessions_.end()) return;
    poller_->bury(std::shared_ptr<void>(std::move(found->second)));
    sessions_.erase(found);
    open_ = sessions_.size();
}

void Loop::keep(std::unique_ptr<UpstreamConnection> connection) {
    UpstreamConnection* key = connection.get();
    connections_.emplace(key, std::move(connection));
}

void Loop::connection_ended(UpstreamConnection* connection) {
    const auto found = connections_.find(connection);
    if (found == connections_.end()) return;
    poller_->bury(std::shared_ptr<void>(std::move(found->second)));
    connections_.erase(found);
}

void Loop::drain() {
    poller_->post([this] {
        if (listener_) {
            poller_->remove(listener_.get());
            listener_.reset();
        }
        std::vector<Session*> all;
        for (const auto& [session, owned] : sessions_) all.push_back(session);
        for (Session* session : all)
            if (sessions_.contains(session)) session->drain();
    });
}

void Loop::cut() {
    poller_->post([this] {
        for (GatewayClient* client : all_clients())
            if (clients_.contains(client) && client->exchange() != nullptr)
                client->exchange()->cut(LedgerOutcome::drained, {.status = 503,
                                                                 .type = "overloaded",
                                                                 .code = "draining",
                                                                 .message = "this gateway ends",
                                                                 .retry_after_s = 1});
    });
}

}  // namespace stoker::gateway

// Which replica takes a request: the one that is expected to have answered it soonest, of two drawn from the best
// third, so that many gateways with the same numbers do not all send to one. A replica that already holds the beginning
// of the prompt, or the session, goes before, as long as its share stays near the mean. Pure: no clock, no I/O; what
// has to be added to the replica's counters is part of the answer, and every way out of here says it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"

namespace stoker {

enum class ReplicaState : std::uint8_t {
    starting,    // its server does not answer yet
    ready,       // takes work
    slow_start,  // takes a growing share: caches and kernels are cold
    ejected,     // by the breaker or as an outlier; taken all the same when most others are, unless it is unreachable
    draining,    // finishes what it has
    gone
};

// What a gateway knows of one replica at this moment. The counters are its own, raised before it connects and lowered
// by one guard on every way out; readings of the engine only correct them.
struct RouteReplica {
    std::uint64_t id = 0;  // of this process: another one after a restart, so that nobody believes its caches warm
    ReplicaState state = ReplicaState::starting;
    bool unreachable = false;  // refused to connect: not taken even when most are ejected
    bool trial = false;  // ejected, and its breaker wants one request to find out: the next one that may be retried
    double weight = 1;   // 0..1, share of what its likes take: slow start, and halved for a slow one
    double prefill_tokens_per_second = 0, decode_tokens_per_second = 0;  // measured, or the plan's; > 0
    double waiting_prompt_tokens = 0;      // sent and without a first token, less what was cached
    double outstanding_decode_tokens = 0;  // expected and not yet there
    std::uint32_t outstanding = 0;         // requests in flight
    std::uint32_t max_outstanding = 0;     // 0: no limit
    std::uint32_t zone = 0;                // 0: not known
};

struct RoutePolicy {
    double affinity_share = 1.25;  // of the mean number of requests: above it neither prefix nor session is followed
    std::uint32_t affinity_slack = 1;  // requests more, since at one request per replica the mean says nothing
    double affinity_min_share = 0.1;   // of the prompt that must be cached for it to count as affinity
    double zone_margin = 0.2;          // another zone must be so much better
    double panic_share = 0.5;          // of the replicas ejected: above it ejection is not believed
};

struct RouteFleet {
    std::span<const RouteReplica> replicas;
    std::uint32_t zone = 0;  // the gateway's own; 0: not known
    RoutePolicy policy{};
};

// Tokens of this prompt that a replica holds, longest first (PrefixIndex::find).
struct CachedPrefix {
    std::uint64_t replica = 0;
    double tokens = 0;
};

struct RouteQuery {
    double prompt_tokens = 0;
    double output_tokens = 0;  // expected: the model's recent mean, not the limit that the request names
    std::span<const CachedPrefix> cached{};
    std::uint64_t session = 0;               // hash of what the client sent; 0: none
    std::span<const std::uint64_t> tried{};  // replicas that failed this request: never again
    bool may_try = true;                     // false: it cannot be sent twice, so it is no trial while others are well
};

enum class RouteReason : std::uint8_t {
    prefix,      // holds the beginning of the prompt
    session,     // had the session before
    least_work,  // soonest of two
    trial,       // its breaker wants one request to find out whether it is well; whoever sends it tells the breaker
    // and without a replica:
    no_replica,  // there is none, or all are gone or draining
    starting,    // none is ready yet
    ejected,     // those that are there failed
    full,        // each has as many requests as it takes
    tried        // each has failed this request
};

struct RouteDecision {
    int replica = -1;  // index into RouteFleet::replicas
    RouteReason reason = RouteReason::no_replica;
    bool panic = false;        // most are ejected, so ejection was not believed
    double wait_seconds = 0;   // expected until the last token
    double prompt_tokens = 0;  // to add to waiting_prompt_tokens: what the replica does not hold
    double output_tokens = 0;  // to add to outstanding_decode_tokens
    explicit operator bool() const { return replica >= 0; }
};

RouteDecision route(const RouteFleet& fleet, const RouteQuery& query, SplitMix& random);

// Seconds until this replica would have answered: what it has to do before, and the request itself less what is cached.
// Rates, not time per token: a replica that decodes 100 sequences at once is not 100 times as slow.
double expected_seconds(const RouteReplica& replica, double uncached_prompt_tokens, double output_tokens);

constexpr std::array<std::pair<ReplicaState, std::string_view>, 6> enum_names(ReplicaState) {
    return {{{ReplicaState::starting, "starting"},
             {ReplicaState::ready, "ready"},
             {ReplicaState::slow_start, "slow_start"},
             {ReplicaState::ejected, "ejected"},
             {ReplicaState::draining, "draining"},
             {ReplicaState::gone, "gone"}}};
}
constexpr std::array<std::pair<RouteReason, std::string_view>, 9> enum_names(RouteReason) {
    return {{{RouteReason::prefix, "prefix"},
             {RouteReason::session, "session"},
             {RouteReason::least_work, "least_work"},
             {RouteReason::trial, "trial"},
             {RouteReason::no_replica, "no_replica"},
             {RouteReason::starting, "starting"},
             {RouteReason::ejected, "ejected"},
             {RouteReason::full, "full"},
             {RouteReason::tried, "tried"}}};
}

}  // namespace stoker

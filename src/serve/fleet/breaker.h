// What became of requests to one replica, and whether it gets another one: a breaker for failures in a row, a pause
// that the replica asked for itself, and the growing share of one that has just become ready. Pure; times are seconds
// of one monotonic clock.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/random.h"

namespace stoker {

enum class ReplicaOutcome : std::uint8_t {
    ok,
    // failures of the replica:
    refused,      // nobody listens: believed at once, even when most replicas fail
    unreachable,  // no connection, or no TLS, in time
    bad_gateway,  // 502, 503 or 504 without a word of its own
    broke,        // the connection ended before the answer did
    silent,       // nothing came for as long as silence is borne
    wrong_model,  // another model answers at this address
    // not its fault:
    busy,           // 429 or 503 with Retry-After
    request_error,  // 4xx
    client_left,
    our_deadline,
    outrun  // another one answered the same request first
};
bool is_failure(ReplicaOutcome outcome);

struct BreakerPolicy {
    int failures_in_a_row = 5;
    double open_s = 5, most_open_s = 300;  // doubles with each opening
    double jitter = 0.2;                   // of it, so that gateways do not all try at once
    double forgive_s = 60;                 // so long closed and well: the next opening is a first one
    double most_pause_s = 60;              // of a Retry-After
};

enum class BreakerPhase : std::uint8_t { closed, open, trial };

struct BreakerState {
    BreakerPhase phase = BreakerPhase::closed;  // trial: one request is on its way, and nothing else goes
    int failures = 0;                           // in a row
    int openings = 0;
    bool refused = false;  // the last failure was: nobody listens
    double until_s = 0;    // open: no trial before
    double closed_at_s = 0;
    double paused_until_s = 0;
    friend bool operator==(const BreakerState&, const BreakerState&) = default;
};

// retry_after_s: what a busy replica asked for.
BreakerState after_outcome(BreakerState state, ReplicaOutcome outcome, double now_s, SplitMix& random,
                           double retry_after_s = 0, const BreakerPolicy& policy = {});
bool takes_work(const BreakerState& state, double now_s);  // closed, and not in a pause
bool is_trial_due(const BreakerState& state, double now_s);
BreakerState with_trial_sent(BreakerState state);  // only where is_trial_due

// 0.1 to 1 within 30 s, or 20 requests when those come sooner: caches fill by work, kernels are compiled by it.
double slow_start_weight(double seconds_since_ready, std::uint64_t requests_since_ready);

constexpr std::array<std::pair<BreakerPhase, std::string_view>, 3> enum_names(BreakerPhase) {
    return {{{BreakerPhase::closed, "closed"}, {BreakerPhase::open, "open"}, {BreakerPhase::trial, "trial"}}};
}
constexpr std::array<std::pair<ReplicaOutcome, std::string_view>, 12> enum_names(ReplicaOutcome) {
    return {{{ReplicaOutcome::ok, "ok"},
             {ReplicaOutcome::refused, "refused"},
             {ReplicaOutcome::unreachable, "unreachable"},
             {ReplicaOutcome::bad_gateway, "bad_gateway"},
             {ReplicaOutcome::broke, "broke"},
             {ReplicaOutcome::silent, "silent"},
             {ReplicaOutcome::wrong_model, "wrong_model"},
             {ReplicaOutcome::busy, "busy"},
             {ReplicaOutcome::request_error, "request_error"},
             {ReplicaOutcome::client_left, "client_left"},
             {ReplicaOutcome::our_deadline, "our_deadline"},
             {ReplicaOutcome::outrun, "outrun"}}};
}

}  // namespace stoker

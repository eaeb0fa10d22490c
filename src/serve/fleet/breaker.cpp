#include "serve/fleet/breaker.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

BreakerState opened(BreakerState state, ReplicaOutcome outcome, double now_s, SplitMix& random,
                    const BreakerPolicy& policy) {
    const double pause = std::min(policy.open_s * std::exp2(std::min(state.openings, 20)), policy.most_open_s);
    state.phase = BreakerPhase::open;
    state.until_s = now_s + pause * (1 + policy.jitter * (2 * random.uniform() - 1));
    state.openings += 1;
    state.refused = outcome == ReplicaOutcome::refused;
    return state;
}

}  // namespace

bool is_failure(ReplicaOutcome outcome) {
    return outcome >= ReplicaOutcome::refused && outcome <= ReplicaOutcome::wrong_model;
}

BreakerState after_outcome(BreakerState state, ReplicaOutcome outcome, double now_s, SplitMix& random,
                           double retry_after_s, const BreakerPolicy& policy) {
    if (is_failure(outcome)) {
        state.failures += 1;
        if (state.phase == BreakerPhase::trial) return opened(state, outcome, now_s, random, policy);
        if (state.phase == BreakerPhase::open) {  // one that was on its way when it opened
            state.refused = outcome == ReplicaOutcome::refused;
            return state;
        }
        if (state.failures < policy.failures_in_a_row) return state;
        if (now_s - state.closed_at_s >= policy.forgive_s) state.openings = 0;
        return opened(state, outcome, now_s, random, policy);
    }
    if (outcome == ReplicaOutcome::busy) {
        const double pause = std::clamp(retry_after_s, 0.0, policy.most_pause_s);
        state.paused_until_s = std::max(state.paused_until_s, now_s + pause);
    }
    // A trial that its client gave up says nothing: the next request is one again.
    if (outcome == ReplicaOutcome::client_left || outcome == ReplicaOutcome::our_deadline ||
        outcome == ReplicaOutcome::outrun) {
        if (state.phase == BreakerPhase::trial) state.phase = BreakerPhase::open;
        return state;
    }
    state.failures = 0;
    if (state.phase == BreakerPhase::trial) {
        state.phase = BreakerPhase::closed;
        state.refused = false;
        state.closed_at_s = now_s;
    }
    return state;
}

bool takes_work(const BreakerState& state, double now_s) {
    return state.phase == BreakerPhase::closed && now_s >= state.paused_until_s;
}

bool is_trial_due(const BreakerState& state, double now_s) {
    return state.phase == BreakerPhase::open && now_s >= state.until_s && now_s >= state.paused_until_s;
}

BreakerState with_trial_sent(BreakerState state) {
    state.phase = BreakerPhase::trial;
    return state;
}

double slow_start_weight(double seconds_since_ready, std::uint64_t requests_since_ready) {
    const double share = std::max(seconds_since_ready / 30, static_cast<double>(requests_since_ready) / 20);
    return std::clamp(0.1 + 0.9 * share, 0.1, 1.0);
}

}  // namespace stoker

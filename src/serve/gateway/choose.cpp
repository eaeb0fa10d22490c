#include "serve/gateway/choose.h"

#include <algorithm>
#include <limits>

#include "io/process.h"
#include "serve/gateway/loop.h"

namespace stoker::gateway {
namespace {

// Priors of configured addresses, the same for all: nothing is measured of them, so the choice is by what is
// outstanding.
constexpr double kPrefillPerS = 10'000, kDecodePerS = 1'000;

RouteReplica view_of(const Replica& replica, double now_s, double& pause_s) {
    const bool works = takes_work(replica.breaker, now_s);
    // It asked for a pause itself, which is kept even when all others fail.
    const bool paused = replica.breaker.phase == BreakerPhase::closed && replica.breaker.paused_until_s > now_s;
    if (paused) pause_s = std::min(pause_s, replica.breaker.paused_until_s - now_s);
    if (replica.breaker.phase == BreakerPhase::open)
        pause_s = std::min(pause_s, std::max(1.0, replica.breaker.until_s - now_s));
    return {.id = replica.id,
            .state = works    ? ReplicaState::ready
                     : paused ? ReplicaState::starting
                              : ReplicaState::ejected,
            .unreachable = !works && replica.breaker.refused,
            .trial = !works && is_trial_due(replica.breaker, now_s),
            .prefill_tokens_per_second = kPrefillPerS,
            .decode_tokens_per_second = kDecodePerS,
            .waiting_prompt_tokens = replica.waiting_prompt_tokens,
            .outstanding_decode_tokens = replica.outstanding_decode_tokens,
            .outstanding = replica.outstanding};
}

}  // namespace

Choices choices_of(Loop& loop, const ModelSetup& model) {
    Choices choices{.pause_s = std::numeric_limits<double>::infinity()};
    const double now_s = static_cast<double>(monotonic_clock_us()) / kUs;
    if (!model.board) {
        choices.views.reserve(model.upstreams.size());
        for (const UpstreamSetup& upstream : model.upstreams) {
            choices.views.push_back(view_of(loop.replica(upstream.id), now_s, choices.pause_s));
            choices.views.back().max_outstanding = model.max_outstanding;
        }
        return choices;
    }
    choices.board = model.board->view();
    choices.views.reserve(choices.board->replicas.size());
    for (const BoardReplica& each : choices.board->replicas) {
        const bool up = each.state == ReplicaState::ready || each.state == ReplicaState::slow_start;
        RouteReplica view{.id = each.id, .state = each.state, .unreachable = each.state == ReplicaState::ejected};
        if (up) view = view_of(loop.replica(each.id), now_s, choices.pause_s);
        if (up && view.state == ReplicaState::ready) view.state = each.state;
        view.weight = each.weight;
        view.prefill_tokens_per_second = each.prefill_tokens_per_s;
        view.decode_tokens_per_second = each.decode_tokens_per_s;
        view.max_outstanding = each.max_outstanding;
        view.outstanding = each.load->outstanding;  // of all loops
        view.waiting_prompt_tokens = static_cast<double>(std::max<std::int64_t>(0, each.load->waiting_prompt_tokens));
        view.outstanding_decode_tokens =
            static_cast<double>(std::max<std::int64_t>(0, each.load->outstanding_decode_tokens));
        choices.views.push_back(view);
    }
    return choices;
}

RouteDecision choose(const Choices& choices, const RouteQuery& query, SplitMix& random) {
    if (choices.board && !choices.board->shares.empty()) {
        const int revision = draw_revision(choices.board->shares, random);
        std::vector<RouteReplica> own = choices.views;
        for (std::size_t i = 0; i < own.size(); ++i)
            if (choices.board->replicas[i].revision != revision) own[i].state = ReplicaState::gone;
        if (const RouteDecision decision = route({.replicas = own}, query, random)) return decision;
    }
    return route({.replicas = choices.views}, query, random);
}

const UpstreamSetup& upstream_of(const Choices& choices, const ModelSetup& model, int chosen, UpstreamSetup& made) {
    const auto at = static_cast<std::size_t>(chosen);
    if (!choices.board) return model.upstreams[at];
    const BoardReplica& replica = choices.board->replicas[at];
    made.id = replica.id;
    made.url = replica.url;
    made.authority = replica.authority;
    made.address = replica.address;
    made.address_size = replica.address_size;
    return made;
}

}  // namespace stoker::gateway

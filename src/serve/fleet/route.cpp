#include "serve/fleet/route.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stoker {
namespace {

// The best third of a large fleet is more than enough to spread over.
constexpr std::size_t kMostCandidates = 32;

bool is_serving(ReplicaState state) {
    return state == ReplicaState::ready || state == ReplicaState::slow_start;
}

double cached_tokens(const RouteQuery& query, std::uint64_t id) {
    for (const CachedPrefix& prefix : query.cached)
        if (prefix.replica == id) return std::clamp(prefix.tokens, 0.0, query.prompt_tokens);
    return 0;
}

// Which replicas may take the request, looked at once.
class Eligible {
public:
    Eligible(const RouteFleet& fleet, const RouteQuery& query) : fleet_(fleet), query_(query) {
        std::size_t believed = 0, ejected = 0;
        for (const RouteReplica& replica : fleet.replicas) {
            believed += is_serving(replica.state) ? 1 : 0;
            ejected += replica.state == ReplicaState::ejected ? 1 : 0;
        }
        panic_ = static_cast<double>(ejected) > fleet.policy.panic_share * static_cast<double>(believed + ejected);
        for (const RouteReplica& replica : fleet.replicas) {
            if (!allows(replica)) continue;
            ++count_;
            weight_ += replica.weight;
            outstanding_ += replica.outstanding;
        }
    }

    bool allows(const RouteReplica& replica) const { return refusal(replica) == RouteReason::least_work; }
    bool none() const { return count_ == 0; }
    std::size_t count() const { return count_; }
    bool panic() const { return panic_; }

    // With one request more the replica stays near its share of all.
    bool within_share(const RouteReplica& replica) const {
        const double mean = (outstanding_ + 1) * replica.weight / weight_;
        return replica.outstanding + 1 <= std::ceil(fleet_.policy.affinity_share * mean) + fleet_.policy.affinity_slack;
    }

    // least_work: none.
    RouteReason refusal(const RouteReplica& replica) const {
        if (replica.state == ReplicaState::starting) return RouteReason::starting;
        if (replica.state == ReplicaState::gone || replica.state == ReplicaState::draining)
            return RouteReason::no_replica;
        if (std::find(query_.tried.begin(), query_.tried.end(), replica.id) != query_.tried.end())
            return RouteReason::tried;
        if (replica.weight <= 0) return RouteReason::no_replica;
        if (replica.max_outstanding != 0 && replica.outstanding >= replica.max_outstanding) return RouteReason::full;
        if (replica.state == ReplicaState::ejected && (!panic_ || replica.unreachable)) return RouteReason::ejected;
        return RouteReason::least_work;
    }

private:
    const RouteFleet& fleet_;
    const RouteQuery& query_;
    std::size_t count_ = 0;
    double weight_ = 0, outstanding_ = 0;
    bool panic_ = false;
};

RouteDecision chosen(const RouteFleet& fleet, const RouteQuery& query, std::size_t i, RouteReason reason, bool panic) {
    const RouteReplica& replica = fleet.replicas[i];
    const double uncached = query.prompt_tokens - cached_tokens(query, replica.id);
    return {.replica = static_cast<int>(i),
            .reason = reason,
            .panic = panic,
            .wait_seconds = expected_seconds(replica, uncached, query.output_tokens),
            .prompt_tokens = uncached,
            .output_tokens = query.output_tokens};
}

// What stands between the request and a replica: what would pass soonest.
RouteReason why_none(const RouteFleet& fleet, const Eligible& eligible) {
    RouteReason reason = RouteReason::no_replica;
    auto rank = [](RouteReason r) {
        switch (r) {
            case RouteReason::full: return 4;
            case RouteReason::ejected: return 3;
            case RouteReason::starting: return 2;
            case RouteReason::tried: return 1;
            default: return 0;
        }
    };
    for (const RouteReplica& replica : fleet.replicas)
        if (const RouteReason r = eligible.refusal(replica); rank(r) > rank(reason)) reason = r;
    return reason;
}

// Highest random weight (Thaler, Ravishankar 1998): when a replica comes or goes, only its own sessions move.
int session_home(const RouteFleet& fleet, const Eligible& eligible, std::uint64_t session) {
    int best = -1;
    double best_draw = -1;
    for (std::size_t i = 0; i < fleet.replicas.size(); ++i) {
        const RouteReplica& replica = fleet.replicas[i];
        if (!eligible.allows(replica)) continue;
        const double uniform = SplitMix(SplitMix::mix(session) ^ replica.id).uniform();
        if (const double draw = -replica.weight / std::log(uniform); draw > best_draw) {
            best_draw = draw;
            best = static_cast<int>(i);
        }
    }
    return best;
}

// The replica that holds most of the prompt, of those that may be followed; -1: none.
int prefix_home(const RouteFleet& fleet, const RouteQuery& query, const Eligible& eligible) {
    int best = -1;
    double best_tokens = 0, best_seconds = 0;
    for (std::size_t i = 0; i < fleet.replicas.size() && !query.cached.empty(); ++i) {
        const RouteReplica& replica = fleet.replicas[i];
        if (!eligible.allows(replica) || !eligible.within_share(replica)) continue;
        const double tokens = cached_tokens(query, replica.id);
        if (tokens <= 0 || tokens < fleet.policy.affinity_min_share * query.prompt_tokens || tokens < best_tokens)
            continue;
        const double seconds = expected_seconds(replica, query.prompt_tokens - tokens, query.output_tokens);
        if (best >= 0 && tokens == best_tokens && seconds >= best_seconds) continue;
        best = static_cast<int>(i);
        best_tokens = tokens;
        best_seconds = seconds;
    }
    return best;
}

// Two of the best third, drawn at random; the better one. Ties fall by where the look began, which is random.
std::size_t least_work(const RouteFleet& fleet, const RouteQuery& query, const Eligible& eligible, SplitMix& random) {
    const std::size_t keep =
        std::min({std::max<std::size_t>(3, (eligible.count() + 2) / 3), eligible.count(), kMostCandidates});
    std::array<std::pair<double, std::size_t>, kMostCandidates> best;
    std::size_t kept = 0;
    const std::size_t start = random.below(fleet.replicas.size());
    for (std::size_t step = 0; step < fleet.replicas.size(); ++step) {
        const std::size_t i =
            start + step < fleet.replicas.size() ? start + step : start + step - fleet.replicas.size();
        const RouteReplica& replica = fleet.replicas[i];
        if (!eligible.allows(replica)) continue;
        double score =
            expected_seconds(replica, query.prompt_tokens - cached_tokens(query, replica.id), query.output_tokens);
        if (fleet.zone != 0 && replica.zone != 0 && replica.zone != fleet.zone) score *= 1 + fleet.policy.zone_margin;
        if (kept == keep && score >= best[kept - 1].first) continue;
        std::size_t at = kept < keep ? kept++ : kept - 1;
        for (; at > 0 && best[at - 1].first > score; --at) best[at] = best[at - 1];
        best[at] = {score, i};
    }
    const std::size_t first = random.below(kept);
    const std::size_t second = kept == 1 ? 0 : (first + 1 + random.below(kept - 1)) % kept;
    return best[std::min(first, second)].second;  // the earlier one is the better one
}

}  // namespace

double expected_seconds(const RouteReplica& replica, double uncached_prompt_tokens, double output_tokens) {
    if (replica.weight <= 0 || replica.prefill_tokens_per_second <= 0 || replica.decode_tokens_per_second <= 0)
        return std::numeric_limits<double>::max();
    return ((uncached_prompt_tokens + replica.waiting_prompt_tokens) / replica.prefill_tokens_per_second +
            (output_tokens + replica.outstanding_decode_tokens) / replica.decode_tokens_per_second) /
           replica.weight;
}

RouteDecision route(const RouteFleet& fleet, const RouteQuery& query, SplitMix& random) {
    const Eligible eligible(fleet, query);
    if (query.may_try || eligible.none())
        for (std::size_t i = 0; i < fleet.replicas.size(); ++i)
            if (fleet.replicas[i].trial && eligible.refusal(fleet.replicas[i]) == RouteReason::ejected)
                return chosen(fleet, query, i, RouteReason::trial, eligible.panic());
    if (eligible.none()) return {.reason = why_none(fleet, eligible), .panic = eligible.panic()};
    if (const int home = prefix_home(fleet, query, eligible); home >= 0)
        return chosen(fleet, query, static_cast<std::size_t>(home), RouteReason::prefix, eligible.panic());
    if (query.session != 0) {
        const int home = session_home(fleet, eligible, query.session);
        if (eligible.within_share(fleet.replicas[static_cast<std::size_t>(home)]))
            return chosen(fleet, query, static_cast<std::size_t>(home), RouteReason::session, eligible.panic());
    }
    return chosen(fleet, query, least_work(fleet, query, eligible, random), RouteReason::least_work, eligible.panic());
}

}  // namespace stoker

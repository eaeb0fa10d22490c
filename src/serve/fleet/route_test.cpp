// A request that waits behind others while a replica idles is what people notice first.
#include "serve/fleet/route.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>

namespace stoker {
namespace {

RouteReplica ready(std::uint64_t id) {
    return {
        .id = id, .state = ReplicaState::ready, .prefill_tokens_per_second = 20'000, .decode_tokens_per_second = 1'200};
}

std::vector<RouteReplica> ready_replicas(std::size_t n) {
    std::vector<RouteReplica> replicas;
    for (std::size_t i = 0; i < n; ++i) replicas.push_back(ready(i + 1));
    return replicas;
}

RouteDecision ask(const std::vector<RouteReplica>& replicas, const RouteQuery& query, std::uint64_t seed = 1) {
    SplitMix random(seed);
    return route({.replicas = replicas}, query, random);
}

const RouteQuery kChat{.prompt_tokens = 1'000, .output_tokens = 200};

// Two replicas: the one with nothing to do, whatever the draw.
TEST(Route, TakesTheReplicaThatWouldAnswerSoonest) {
    std::vector<RouteReplica> replicas = ready_replicas(2);
    replicas[0].outstanding_decode_tokens = 500;
    replicas[0].outstanding = 1;
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        const RouteDecision decision = ask(replicas, kChat, seed);
        EXPECT_EQ(decision.replica, 1);
        EXPECT_EQ(decision.reason, RouteReason::least_work);
        EXPECT_DOUBLE_EQ(decision.wait_seconds, 1'000 / 20'000.0 + 200 / 1'200.0);
        EXPECT_DOUBLE_EQ(decision.prompt_tokens, 1'000);
        EXPECT_DOUBLE_EQ(decision.output_tokens, 200);
    }
}

// Refusals tell a client whether to wait: for a start, for room, or not at all.
TEST(Route, SaysWhyThereIsNoReplica) {
    EXPECT_EQ(ask({}, kChat).reason, RouteReason::no_replica);
    std::vector<RouteReplica> one = ready_replicas(1);
    auto reason_of = [&one](auto change) {
        std::vector<RouteReplica> replicas = one;
        change(replicas[0]);
        const RouteDecision decision = ask(replicas, kChat);
        EXPECT_FALSE(decision);
        return decision.reason;
    };
    EXPECT_EQ(reason_of([](RouteReplica& r) { r.state = ReplicaState::starting; }), RouteReason::starting);
    EXPECT_EQ(reason_of([](RouteReplica& r) { r.state = ReplicaState::draining; }), RouteReason::no_replica);
    EXPECT_EQ(reason_of([](RouteReplica& r) { r.state = ReplicaState::gone; }), RouteReason::no_replica);
    EXPECT_EQ(reason_of([](RouteReplica& r) { r.weight = 0; }), RouteReason::no_replica);
    EXPECT_EQ(reason_of([](RouteReplica& r) { r.outstanding = r.max_outstanding = 4; }), RouteReason::full);
    EXPECT_EQ(reason_of([](RouteReplica& r) {
                  r.state = ReplicaState::ejected;
                  r.unreachable = true;
              }),
              RouteReason::ejected);
    const std::vector<std::uint64_t> tried = {1};
    RouteQuery again = kChat;
    again.tried = tried;
    EXPECT_EQ(ask(one, again).reason, RouteReason::tried);
}

// An ejected replica takes nothing, until so many are that ejecting is likelier to be wrong; one that refuses never.
TEST(Route, DoesNotBelieveThatMostReplicasAreBad) {
    std::vector<RouteReplica> replicas = ready_replicas(4);
    for (std::size_t i : {0, 1}) replicas[i].state = ReplicaState::ejected;
    std::map<int, int> taken;
    for (std::uint64_t seed = 0; seed < 200; ++seed) ++taken[ask(replicas, kChat, seed).replica];
    EXPECT_EQ(taken.size(), 2u);
    EXPECT_FALSE(taken.contains(0) || taken.contains(1));

    replicas[2].state = ReplicaState::ejected;
    replicas[2].unreachable = true;
    taken.clear();
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        const RouteDecision decision = ask(replicas, kChat, seed);
        EXPECT_TRUE(decision.panic);
        ++taken[decision.replica];
    }
    EXPECT_EQ(taken.size(), 3u);
    EXPECT_FALSE(taken.contains(2));
}

// The one request that an open breaker wants must come, though others are well: else nobody ever finds out that it is
// too.
TEST(Route, TriesAnEjectedReplicaOnce) {
    std::vector<RouteReplica> replicas = ready_replicas(3);
    replicas[0].state = ReplicaState::ejected;
    EXPECT_NE(ask(replicas, kChat).replica, 0);
    replicas[0].trial = true;
    EXPECT_EQ(ask(replicas, kChat).replica, 0);
    EXPECT_EQ(ask(replicas, kChat).reason, RouteReason::trial);
    RouteQuery once = kChat;
    once.may_try = false;
    EXPECT_NE(ask(replicas, once).replica, 0);
    const std::vector<std::uint64_t> tried = {1};
    RouteQuery again = kChat;
    again.tried = tried;
    EXPECT_NE(ask(replicas, again).replica, 0);

    std::vector<RouteReplica> alone = ready_replicas(1);
    alone[0].state = ReplicaState::ejected;
    alone[0].unreachable = true;
    EXPECT_FALSE(ask(alone, once));
    alone[0].trial = true;
    EXPECT_EQ(ask(alone, once).reason, RouteReason::trial);
}

// A prompt goes where its beginning is, and only what is new counts as work.
TEST(Route, FollowsThePrefixWithinItsShare) {
    std::vector<RouteReplica> replicas = ready_replicas(4);
    const std::vector<CachedPrefix> cached = {{.replica = 3, .tokens = 960}};
    RouteQuery query = kChat;
    query.cached = cached;
    RouteDecision decision = ask(replicas, query);
    EXPECT_EQ(decision.replica, 2);
    EXPECT_EQ(decision.reason, RouteReason::prefix);
    EXPECT_DOUBLE_EQ(decision.prompt_tokens, 40);

    for (RouteReplica& replica : replicas) replica.outstanding = 8;
    replicas[2].outstanding = 12;  // (36 + 1) / 4 x 1.25 rounds up to 12, and one more
    EXPECT_EQ(ask(replicas, query).reason, RouteReason::prefix);
    replicas[2].outstanding = 14;
    decision = ask(replicas, query);
    EXPECT_NE(decision.reason, RouteReason::prefix);

    const std::vector<CachedPrefix> little = {{.replica = 3, .tokens = 64}};  // below a tenth: not worth a crowd
    for (RouteReplica& replica : replicas) replica.outstanding = 0;
    query.cached = little;
    EXPECT_EQ(ask(replicas, query).reason, RouteReason::least_work);
}

// A session keeps its replica; when another one leaves, it stays where it was.
TEST(Route, KeepsASessionWhereItIs) {
    const std::vector<RouteReplica> replicas = ready_replicas(8);
    std::map<int, int> taken;
    for (std::uint64_t session = 1; session <= 400; ++session) {
        RouteQuery query = kChat;
        query.session = session;
        const RouteDecision decision = ask(replicas, query, session);
        EXPECT_EQ(decision.reason, RouteReason::session);
        EXPECT_EQ(ask(replicas, query, session + 1'000).replica, decision.replica);
        ++taken[decision.replica];
        std::vector<RouteReplica> fewer = replicas;
        fewer[0].state = ReplicaState::draining;
        if (decision.replica != 0) {
            EXPECT_EQ(ask(fewer, query).replica, decision.replica);
        }
    }
    for (int i = 0; i < 8; ++i) EXPECT_GT(taken[i], 25) << i;
}

// Another zone costs money and time; it is taken when this one is busier than the margin.
TEST(Route, StaysInItsZoneWhileThatIsNearlyAsGood) {
    std::vector<RouteReplica> replicas = ready_replicas(2);
    replicas[0].zone = 1;
    replicas[1].zone = 2;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        SplitMix random(seed);
        EXPECT_EQ(route({.replicas = replicas, .zone = 2}, kChat, random).replica, 1);
    }
    replicas[1].outstanding_decode_tokens = 400;
    SplitMix random(1);
    EXPECT_EQ(route({.replicas = replicas, .zone = 2}, kChat, random).replica, 0);
}

// 16 gateways that see only their own requests: no replica gets a quarter more than the mean (gateway.md 17.8).
TEST(Route, SpreadsUniquePromptsOfManyGateways) {
    constexpr std::size_t kReplicas = 8, kGateways = 16, kInFlight = 16;
    struct Flight {
        std::size_t replica;
        RouteDecision decision;
    };
    SplitMix sizes(7);
    std::vector<std::vector<RouteReplica>> views(kGateways, ready_replicas(kReplicas));
    std::vector<std::deque<Flight>> flights(kGateways);
    std::vector<double> outstanding(kReplicas, 0);
    double worst = 0, sum_of_ratios = 0;
    int looks = 0;
    for (std::size_t step = 0; step < 40'000; ++step) {
        const std::size_t gateway = sizes.below(kGateways);
        std::vector<RouteReplica>& view = views[gateway];
        if (flights[gateway].size() == kInFlight) {
            const std::size_t at = sizes.below(kInFlight);
            const Flight ended = flights[gateway][at];
            flights[gateway].erase(flights[gateway].begin() + static_cast<std::ptrdiff_t>(at));
            view[ended.replica].outstanding -= 1;
            view[ended.replica].waiting_prompt_tokens -= ended.decision.prompt_tokens;
            view[ended.replica].outstanding_decode_tokens -= ended.decision.output_tokens;
            outstanding[ended.replica] -= 1;
        }
        SplitMix random(sizes.next());
        const RouteDecision decision =
            route({.replicas = view}, {.prompt_tokens = 1'000, .output_tokens = 200}, random);
        ASSERT_TRUE(decision);
        const std::size_t to = static_cast<std::size_t>(decision.replica);
        flights[gateway].push_back({to, decision});
        view[to].outstanding += 1;
        view[to].waiting_prompt_tokens += decision.prompt_tokens;
        view[to].outstanding_decode_tokens += decision.output_tokens;
        outstanding[to] += 1;
        if (step < 2'000 || step % 50 != 0) continue;
        double total = 0, most = 0;
        for (double n : outstanding) {
            total += n;
            most = std::max(most, n);
        }
        worst = std::max(worst, most / (total / kReplicas));
        sum_of_ratios += most / (total / kReplicas);
        ++looks;
    }
    EXPECT_LE(sum_of_ratios / looks, 1.25);
    EXPECT_LE(worst, 1.5);
}

// Whatever the numbers are: an index that may be taken, or a reason.
TEST(Route, AnswersEveryFleet) {
    SplitMix draw(3);
    for (int round = 0; round < 20'000; ++round) {
        std::vector<RouteReplica> replicas = ready_replicas(draw.below(70));
        for (RouteReplica& replica : replicas) {
            replica.state = static_cast<ReplicaState>(draw.below(6));
            replica.unreachable = draw.below(4) == 0;
            replica.trial = draw.below(4) == 0;
            replica.weight = static_cast<double>(draw.below(3)) / 2;
            replica.outstanding = static_cast<std::uint32_t>(draw.below(20));
            replica.max_outstanding = static_cast<std::uint32_t>(draw.below(3) * 10);
            if (draw.below(10) == 0) replica.decode_tokens_per_second = 0;
        }
        std::vector<CachedPrefix> cached;
        std::vector<std::uint64_t> tried;
        for (std::uint64_t i = draw.below(5); i > 0; --i)
            cached.push_back({.replica = draw.below(70), .tokens = draw.uniform() * 2'000});
        for (std::uint64_t i = draw.below(3); i > 0; --i) tried.push_back(draw.below(70));
        RouteQuery query = kChat;
        query.cached = cached;
        query.tried = tried;
        query.session = draw.below(3);
        const RouteDecision decision = route({.replicas = replicas, .zone = 1}, query, draw);
        if (!decision) {
            EXPECT_GE(decision.reason, RouteReason::no_replica);
            continue;
        }
        ASSERT_LT(static_cast<std::size_t>(decision.replica), replicas.size());
        const RouteReplica& taken = replicas[static_cast<std::size_t>(decision.replica)];
        EXPECT_GE(decision.prompt_tokens, 0);
        EXPECT_GT(taken.weight, 0);
        EXPECT_EQ(std::count(tried.begin(), tried.end(), taken.id), 0);
        EXPECT_TRUE(taken.max_outstanding == 0 || taken.outstanding < taken.max_outstanding);
        EXPECT_TRUE(taken.state == ReplicaState::ready || taken.state == ReplicaState::slow_start ||
                    taken.state == ReplicaState::ejected);
    }
}

}  // namespace
}  // namespace stoker

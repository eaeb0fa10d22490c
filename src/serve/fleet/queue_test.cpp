// Who waits behind whom, and for how long, is what tenants compare.
#include "serve/fleet/queue.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>

namespace stoker {
namespace {

using testing::ElementsAre;

constexpr QueueDrain kUnknown{};

struct World {
    AdmissionQueue queue;
    SplitMix random{1};
    std::uint64_t last_id = 0;

    explicit World(QueuePolicy policy = {}) : queue(policy) {}
    QueueAnswer enter(QueuedRequest request, double now_s = 0, QueueDrain drain = kUnknown) {
        request.id = ++last_id;
        if (request.deadline_s == 0) request.deadline_s = now_s + 1e6;
        return queue.enter(request, now_s, drain, random);
    }
    std::vector<std::uint64_t> take_tenants(std::size_t n, double now_s = 0) {
        std::vector<std::uint64_t> tenants;
        for (std::size_t i = 0; i < n; ++i)
            if (const auto taken = queue.take(now_s)) tenants.push_back(taken->tenant);
        return tenants;
    }
};

// A tenant with a thousand requests does not make one with three wait behind them.
TEST(AdmissionQueue, ServesTenantsByTheirWeights) {
    World w;
    for (int i = 0; i < 1'000; ++i) w.enter({.tenant = 1, .cost_tokens = 100});
    for (int i = 0; i < 3; ++i) w.enter({.tenant = 2, .cost_tokens = 100});
    EXPECT_THAT(w.take_tenants(6), ElementsAre(1, 2, 1, 2, 1, 2));

    World weighted;
    for (int i = 0; i < 400; ++i) {
        weighted.enter({.tenant = 1, .cost_tokens = 100, .weight = 1});
        weighted.enter({.tenant = 2, .cost_tokens = 300, .weight = 3});
        weighted.enter({.tenant = 3, .cost_tokens = 100, .weight = 2});
    }
    std::map<std::uint64_t, double> tokens;
    for (int i = 0; i < 400; ++i) {
        const auto taken = weighted.queue.take(0);
        ASSERT_TRUE(taken);
        tokens[taken->tenant] += taken->cost_tokens;
    }
    EXPECT_NEAR(tokens[2] / tokens[1], 3, 0.1);
    EXPECT_NEAR(tokens[3] / tokens[1], 2, 0.1);
}

// Idle time is no credit: who comes late shares from then on.
TEST(AdmissionQueue, GivesNoCreditForHavingBeenAway) {
    World w;
    for (int i = 0; i < 100; ++i) w.enter({.tenant = 1, .cost_tokens = 10});
    w.take_tenants(50);
    for (int i = 0; i < 50; ++i) w.enter({.tenant = 2, .cost_tokens = 10});
    const auto next = w.take_tenants(20);
    EXPECT_NEAR(static_cast<double>(std::count(next.begin(), next.end(), 2u)), 10, 1);
}

// Priorities, and no starving: batch keeps a twentieth, and moves up with time.
TEST(AdmissionQueue, PutsClassesBeforeEachOtherAndStarvesNone) {
    World w;
    for (int i = 0; i < 10; ++i) w.enter({.tenant = 1, .request_class = RequestClass::batch});
    for (int i = 0; i < 200; ++i) w.enter({.tenant = 2, .request_class = RequestClass::interactive});
    const auto taken = w.take_tenants(100);
    EXPECT_EQ(std::count(taken.begin(), taken.end(), 1u), 5);
    EXPECT_EQ(taken.front(), 2u);

    EXPECT_EQ(w.queue.size_of(RequestClass::batch), 5u);
    w.queue.expire(30);
    w.enter({.tenant = 3}, 30);
    EXPECT_EQ(w.queue.size_of(RequestClass::batch), 0u);
    EXPECT_EQ(w.queue.size_of(RequestClass::normal), 6u);
    w.enter({.tenant = 3}, 60);
    EXPECT_EQ(w.queue.size_of(RequestClass::normal), 1u);
}

// Refused at the door rather than after the deadline; 429 only to the tenant whose own requests are in the way.
TEST(AdmissionQueue, RefusesAtTheDoorWithTheTruthAboutWhy) {
    World w;
    const QueueDrain drain{.tokens_per_s = 100};
    for (int i = 0; i < 100; ++i) {
        EXPECT_TRUE(w.enter({.tenant = 1, .cost_tokens = 100, .deadline_s = 1'000}, 0, drain).accepted());
    }
    const QueueAnswer own = w.enter({.tenant = 1, .cost_tokens = 100, .deadline_s = 20}, 0, drain);
    EXPECT_EQ(own.status(), 429);
    EXPECT_DOUBLE_EQ(own.wait_s, 100);
    EXPECT_GE(own.retry_after_s, 64);
    EXPECT_LE(own.retry_after_s, 97);
    const QueueAnswer other = w.enter({.tenant = 2, .cost_tokens = 100, .deadline_s = 20}, 0, drain);
    EXPECT_TRUE(other.accepted());
    EXPECT_DOUBLE_EQ(other.wait_s, 1);

    World cold;
    EXPECT_EQ(cold.enter({.tenant = 1, .deadline_s = 60}, 0, {.ready_in_s = 90}).status(), 503);
    EXPECT_TRUE(cold.enter({.tenant = 1, .deadline_s = 100}, 0, {.ready_in_s = 90}).accepted());
    EXPECT_EQ(cold.enter({.tenant = 1, .deadline_s = 5}, 5).status(), 503);
}

// Memory is bounded; who fills it is told so, others are told that it is full.
TEST(AdmissionQueue, HoldsNoMoreThanItsBytes) {
    World w({.most_held_bytes = 1'000});
    for (int i = 0; i < 8; ++i) EXPECT_TRUE(w.enter({.tenant = 1, .held_bytes = 100}).accepted());
    EXPECT_TRUE(w.enter({.tenant = 2, .held_bytes = 100}).accepted());
    EXPECT_EQ(w.enter({.tenant = 1, .held_bytes = 200}).status(), 429);
    EXPECT_EQ(w.enter({.tenant = 2, .held_bytes = 200}).status(), 503);
    while (w.queue.take(0)) {
    }
    EXPECT_EQ(w.queue.held_bytes(), 0u);
}

// 5,000 requests over a cold start of 20 minutes: none lost, each class in order (gateway.md 17.9).
TEST(AdmissionQueue, HoldsThousandsOverAColdStart) {
    World w;
    double now_s = 0;
    for (int i = 0; i < 5'000; ++i, now_s += 0.2)
        ASSERT_TRUE(w.enter({.tenant = 1, .request_class = RequestClass::interactive, .deadline_s = 2'000}, now_s,
                            {.ready_in_s = 1'200 - now_s})
                        .accepted());
    std::uint64_t before = 0;
    for (int i = 0; i < 5'000; ++i) {
        EXPECT_TRUE(w.queue.expire(1'200).empty());
        const auto taken = w.queue.take(1'200);
        ASSERT_TRUE(taken);
        EXPECT_GT(taken->id, before);
        before = taken->id;
    }
    EXPECT_FALSE(w.queue.take(1'200));
}

// Any order of comings, goings and time: every request ends in exactly one way, and the counters end at zero.
TEST(AdmissionQueue, LosesNothing) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        World w({.age_s = 5, .most_held_bytes = 5'000});
        SplitMix draw(seed);
        std::map<std::uint64_t, int> ends;
        std::size_t accepted = 0;
        double now_s = 0;
        auto ended = [&ends](const QueuedRequest& request) { ++ends[request.id]; };
        for (int step = 0; step < 600; ++step) {
            now_s += draw.uniform();
            switch (draw.below(4)) {
                case 0:
                case 1:
                    accepted += w.enter({.tenant = draw.below(4),
                                         .request_class = static_cast<RequestClass>(draw.below(3)),
                                         .cost_tokens = draw.uniform() * 100,
                                         .weight = static_cast<double>(draw.below(3)),
                                         .deadline_s = now_s + draw.uniform() * 30,
                                         .held_bytes = draw.below(200)},
                                        now_s, {.tokens_per_s = 50})
                                    .accepted();
                    break;
                case 2:
                    if (const auto taken = w.queue.take(now_s)) {
                        EXPECT_GE(taken->deadline_s, now_s);
                        ended(*taken);
                    }
                    break;
                default:
                    if (const auto left = w.queue.leave(draw.below(w.last_id + 1))) ended(*left);
                    if (draw.below(3) == 0)
                        for (const QueuedRequest& request : w.queue.expire(now_s)) ended(request);
            }
        }
        for (const QueuedRequest& request : w.queue.expire(1e9)) ended(request);
        EXPECT_EQ(ends.size(), accepted);
        for (const auto& [id, times] : ends) EXPECT_EQ(times, 1) << id;
        EXPECT_EQ(w.queue.size(), 0u);
        EXPECT_EQ(w.queue.held_bytes(), 0u);
        EXPECT_NEAR(w.queue.tokens(), 0, 1e-6);
        EXPECT_TRUE(std::isinf(w.queue.next_deadline_s()));
    }
}

}  // namespace
}  // namespace stoker

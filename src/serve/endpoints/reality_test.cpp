#include "serve/endpoints/reality.h"

#include <gtest/gtest.h>

#include <functional>

namespace stoker {
namespace {

// As it was planned.
ServingEvidence healthy() {
    ServingEvidence e{.window_s = 300, .requests = 600};
    e.promise = {.ttft_p95_s = {0.1, 0.2, 0.3},
                 .tpot_p95_s = {0.01, 0.02, 0.03},
                 .tokens_per_s = {150, 200, 250},
                 .requests_per_s = 2,
                 .most_requests_per_s = 4,
                 .replicas = 3,
                 .prompt_tokens = 500,
                 .output_tokens = 100,
                 .max_sequences = 16,
                 .usd_per_hour = 12,
                 .gpus = 1};
    e.timed = 600;
    e.ttft_p50_s = 0.12, e.ttft_p95_s = e.warm_ttft_p95_s = 0.2, e.tpot_p50_s = 0.015, e.tpot_p95_s = 0.02;
    e.prompt_mean = 500, e.prompt_p95 = 900, e.output_mean = 100;
    e.requests_per_s = 2, e.tokens_per_s = 200, e.ready_mean = 3, e.in_flight_mean = 4;
    e.engine_running_mean = 1.3, e.engine_waiting_mean = 0, e.kv_share_most = 0.4, e.preemptions = 0;
    e.connect_p50_s = 0.0002, e.host_busy = 0.3, e.replicas_busy_cores = 4, e.host_cores = 16;
    e.replicas = {{"1.1", 200, 0, 0.1, 0.015}, {"1.2", 200, 0, 0.11, 0.015}, {"1.3", 200, 0, 0.1, 0.016}};
    return e;
}

std::string first_cause(const ServingEvidence& evidence) {
    const auto causes = serving_causes(evidence);
    return causes.empty() ? "" : causes.front().name;
}

// Who is held to a plan that was met hears nothing.
TEST(ServingReality, IsSilentWhereAllIsAsPlanned) {
    EXPECT_TRUE(serving_causes(healthy()).empty());
    for (const HeldFigure& figure : held_against_plan(healthy())) EXPECT_FALSE(figure.worse) << figure.name;
    EXPECT_EQ(held_against_plan(healthy()).size(), 4u);
    // Faster than planned is no finding, whatever else is there.
    ServingEvidence fast = healthy();
    fast.prompt_mean = 5000, fast.kv_share_most = 1;
    EXPECT_TRUE(serving_causes(fast).empty());
}

// Each cause by itself, on what is otherwise healthy: it is told, and it is told first.
TEST(ServingReality, TellsEachCause) {
    const auto slow = [](ServingEvidence& e, double times) {
        e.ttft_p50_s *= times, e.ttft_p95_s *= times, e.warm_ttft_p95_s *= times;
    };
    const std::vector<std::pair<const char*, std::function<void(ServingEvidence&)>>> cases = {
        {"queueing",
         [&](ServingEvidence& e) {
             slow(e, 5);
             e.queued = 400, e.queue_p95_s = 0.8, e.queue_mean_s = 0.4;
         }},
        {"cold-starts", [&](ServingEvidence& e) { e.ttft_p95_s = 20, e.cold = 60, e.cold_wait_mean_s = 19; }},
        {"more-load",
         [&](ServingEvidence& e) {
             slow(e, 5);
             e.requests_per_s = 6;
         }},
        {"long-prompts",
         [&](ServingEvidence& e) {
             slow(e, 4);
             e.prompt_mean = 2000;
         }},
        {"kv-full", [&](ServingEvidence& e) { e.tpot_p95_s = 0.1, e.kv_share_most = 0.99, e.preemptions = 40; }},
        {"batch-small",
         [&](ServingEvidence& e) {
             slow(e, 6);
             e.engine_running_mean = 2, e.engine_waiting_mean = 5;
         }},
        {"queueing",  // of a server that takes what it does not compute yet
         [&](ServingEvidence& e) {
             slow(e, 6);
             e.engine_running_mean = 15, e.engine_waiting_mean = 30;
         }},
        {"batch-small",  // of what each replica was to compute of a number of clients, and not of all it could
         [&](ServingEvidence& e) {
             slow(e, 6);
             e.promise.requests_per_s = 0, e.promise.clients = 9, e.promise.max_sequences = 256;
             e.engine_running_mean = 1, e.engine_waiting_mean = 2, e.at_once_mean = 9;
         }},
        {"more-load",  // of a number of clients
         [&](ServingEvidence& e) {
             slow(e, 6);
             e.promise.requests_per_s = 0, e.promise.clients = 6;
             e.at_once_mean = 20;
         }},
        {"replica-unlike", [&](ServingEvidence& e) { e.replicas[1].tpot_p50_s = 0.06; }},
        {"network",
         [&](ServingEvidence& e) {
             slow(e, 2);
             e.connect_p50_s = 0.09;
         }},
        {"network",  // through something that takes connections at once
         [&](ServingEvidence& e) {
             slow(e, 2);
             e.answer_least_s = 0.18;
         }},
        {"cpu-taken",
         [&](ServingEvidence& e) {
             slow(e, 3);
             e.host_busy = 0.99, e.replicas_busy_cores = 3;
         }},
        {"cpu-bound",
         [&](ServingEvidence& e) {
             slow(e, 3);
             e.host_busy = 0.97, e.replicas_busy_cores = 15;
         }},
    };
    for (const auto& [name, spoil] : cases) {
        ServingEvidence e = healthy();
        spoil(e);
        EXPECT_EQ(first_cause(e), name);
        const auto causes = serving_causes(e);
        ASSERT_EQ(causes.size(), 1u) << name;
        EXPECT_FALSE(causes[0].evidence.empty()) << name;
        EXPECT_FALSE(causes[0].fix.empty()) << name;
    }
}

// Two replicas of one machine take turns at its processors: for a second one of them is always the slower.
TEST(ServingReality, OneSecondSaysNothingOfAReplica) {
    ServingEvidence e = healthy();
    e.replicas[1].tpot_p50_s = 0.06;
    EXPECT_EQ(first_cause(e), "replica-unlike");
    e.window_s = 1.6;
    EXPECT_TRUE(serving_causes(e).empty());
}

// A few requests say nothing; a cold start explains what only cold starts made slow.
TEST(ServingReality, SaysNothingOfAFew) {
    ServingEvidence e = healthy();
    e.requests = e.timed = 5;
    e.ttft_p95_s = 10;
    EXPECT_TRUE(held_against_plan(e).empty() || serving_causes(e).empty());
    EXPECT_TRUE(serving_causes(e).empty());
}

// A rate that was planned for gives tokens by chance, too: a hundred requests are no exact number of them.
TEST(ServingReality, TokensOfARateHaveAnInterval) {
    ServingEvidence e = healthy();
    e.promise.tokens_per_s = {200, 200, 200};
    e.requests = 200;
    e.tokens_per_s = 190;
    for (const HeldFigure& figure : held_against_plan(e)) {
        EXPECT_LT(figure.promised.low, 0.95 * figure.promised.mid) << figure.name;
        EXPECT_GT(figure.promised.high, 1.05 * figure.promised.mid) << figure.name;
        EXPECT_FALSE(figure.worse) << figure.name;
    }
    e.tokens_per_s = 120;
    EXPECT_TRUE(held_against_plan(e)[2].worse) << "that is no chance";
    e.requests = 200'000;
    e.tokens_per_s = 190;
    EXPECT_TRUE(held_against_plan(e)[2].worse) << "and of so many it is none, either";
}

// Less load than planned gives fewer tokens a second, which is nobody's fault.
TEST(ServingReality, LessLoadIsNotSlower) {
    ServingEvidence e = healthy();
    e.requests_per_s = 0.5, e.tokens_per_s = 50;
    for (const HeldFigure& figure : held_against_plan(e))
        EXPECT_TRUE(figure.name != "output tokens") << "it is not held against the plan";
}

}  // namespace
}  // namespace stoker

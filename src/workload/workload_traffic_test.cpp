// The load of an endpoint as people say it: a rate, clients, users, images, audio.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "workload/testing.h"

namespace stoker {
namespace {

using testing::assumptions, testing::bad, testing::good, testing::has;

// An endpoint says how much is asked of it in one way; with the machines given it may be the question.
TEST(Workload, ALoadIsSaidInOneWay) {
    const std::string head = "version: 1\nkind: inference\nmodel: llama-3-8b\n";
    const std::string missing = bad(head);
    for (const char* remedy : {"requests_per_second: 12", "users: 500", "concurrency: 64", "nodes: 1"})
        EXPECT_TRUE(has(missing, remedy)) << missing;
    EXPECT_TRUE(good(head + "where: {nodes: 1}\n").asks_for_capacity());
    EXPECT_TRUE(good(head + "where: {gpus: 8}\n").asks_for_capacity());
    EXPECT_FALSE(good(head + "traffic: {concurrency: 5}\nwhere: {nodes: 1}\n").asks_for_capacity());
    EXPECT_TRUE(has(bad(head + "traffic: {users: 5, concurrency: 5}\n"), "exclude each other"));
    EXPECT_TRUE(has(bad(head + "traffic: {requests_per_second: 5, think_time: 5s}\n"), "of which users"));
    EXPECT_TRUE(has(bad(head + "traffic: {users: 5, think_time: 5s, requests_per_minute: 1}\n"), "twice"));
}

// People are not requests in flight: a share of them is active, and they read and think.
TEST(Workload, UsersAreAShareAtOnce) {
    const std::string head = "version: 1\nkind: inference\nmodel: llama-3-8b\nuse_case: code-assistant\ntraffic: ";
    const Workload w = good(head + "{users: 500}\n");
    EXPECT_EQ(w.clients(), 125);
    EXPECT_EQ(w.traffic.think_time->v, 12);
    EXPECT_TRUE(has(w.title(), "500 users"));
    bool said = false;
    for (const std::string& line : w.assumptions) said |= has(line, "active_share") && has(line, "llm-d-planner");
    EXPECT_TRUE(said);
    EXPECT_EQ(good(head + "{users: 500, active_share: 0.1, think_time: 30s}\n").clients(), 50);
    const Workload rate = good(head + "{users: 600, active_share: 0.1, requests_per_minute: 2}\n");
    EXPECT_NEAR(*rate.traffic.requests_per_second, 2, 1e-9);
    EXPECT_EQ(rate.clients(), 0);
    EXPECT_EQ(good(head + "{concurrency: 500}\n").clients(), 500);
}

// Two hundred calls that are transcribed as they are spoken are not two hundred clients who never pause: each asks once
// in what it says, and a seventh of the machines does.
TEST(Workload, LiveStreamsAskAsTheySpeak) {
    const std::string head = "version: 1\nkind: inference\nmodel: whisper-large-v3\ntraffic: ";
    const Workload w = good(head + "{streams: 200, audio: 10s}\n");
    EXPECT_DOUBLE_EQ(*w.traffic.requests_per_second, 20);
    EXPECT_TRUE(has(w.title(), "200 live streams")) << w.title();
    EXPECT_DOUBLE_EQ(*good(head + "{streams: 60}\n").traffic.requests_per_second, 2);
    EXPECT_TRUE(has(bad(head + "{streams: 60, concurrency: 5}\n"), "exclude each other"));
    EXPECT_TRUE(has(bad("version: 1\nkind: inference\nmodel: llama-3-8b\ntraffic: {streams: 60}\n"), "hears nothing"));
}

// A video every two minutes is no "0 videos/s".
TEST(Workload, WhatIsRareIsToldByALongerSpan) {
    EXPECT_EQ(rate_text(12, "request"), "12 requests/s");
    EXPECT_EQ(rate_text(1, "request"), "1 request/s");
    EXPECT_EQ(rate_text(0.5, "image"), "0.5 images/s");
    EXPECT_EQ(rate_text(1.0 / 60, "video"), "1 video/min");
    EXPECT_EQ(rate_text(0.01, "video"), "36 videos/h");
    EXPECT_EQ(rate_text(3000.0 / 86400, "video"), "2.08 videos/min");
    EXPECT_EQ(rate_text(1.0 / 86400, "video"), "1 video/day");
}

// Clients without any limit would be answered by a queue of hours.
TEST(Workload, ClientsDoNotWaitForEver) {
    const std::string head = "version: 1\nkind: inference\ntraffic: {concurrency: 50}\n";
    EXPECT_EQ(good(head + "model: bert-large\n").objective.latency.p95->v, 1);
    EXPECT_EQ(good(head + "model: sdxl\n").objective.latency.p95->v, 20);
    EXPECT_TRUE(good(head + "model: llama-3-8b\nobjective: {latency: {tpot_p95: 50ms}}\n").objective.latency.ttft_p99);
    EXPECT_FALSE(good(head + "model: llama-3-8b\nobjective: {latency: {ttft_p95: 9s}}\n").objective.latency.ttft_p99);
    const std::string rate = "version: 1\nkind: inference\ntraffic: {requests_per_second: 5}\n";
    EXPECT_EQ(good(rate + "model: bert-large\n").objective.latency.p95->v, 1);
    EXPECT_EQ(good(rate + "model: sdxl\nobjective: {latency: {p95: 3s}}\n").objective.latency.p95->v, 3);
}

// A video is minutes of work for any GPU: a limit that an image has would leave no plan.
TEST(Workload, VideosMayTakeMinutes) {
    const auto limit = [](std::string_view model) {
        return good(fmt::format("version: 1\nkind: inference\nmodel: {}\ntraffic: {{requests_per_second: 0.01}}\n",
                                model))
            .objective.latency.p95->v;
    };
    EXPECT_EQ(limit("sdxl"), 20);
    EXPECT_EQ(limit("flux.1-dev"), 20);
    EXPECT_GT(limit("wan2.1-1.3b"), 60);
    EXPECT_GT(limit("hunyuan-video"), 10 * limit("wan2.1-1.3b"));
    const Workload pile = good("version: 1\nkind: batch-inference\nmodel: wan2.1-14b\ntraffic: {requests: 500}\n");
    EXPECT_TRUE(has(pile.title(), "500 videos")) << pile.title();
}

// A request is what people ask for: an image with all of its steps, a clip of audio.
TEST(Workload, RequestsOfOtherModels) {
    const std::string head = "version: 1\nkind: inference\ntraffic: ";
    const Workload image = good(head + "{requests_per_second: 1}\nmodel: sdxl\n");
    EXPECT_EQ(*image.traffic.steps, 30);
    EXPECT_TRUE(*image.traffic.guidance);
    EXPECT_TRUE(has(image.title(), "1 image/s"));
    const Workload speech = good(head + "{requests_per_second: 1, audio: 65s}\nmodel: whisper-large-v3\n");
    EXPECT_EQ(*speech.traffic.prompt_tokens, 3 * 1500);
    EXPECT_NEAR(*speech.traffic.output_tokens, 65 * 3.3, 1);
    EXPECT_TRUE(has(bad(head + "{requests_per_second: 1, steps: 20}\nmodel: llama-3-8b\n"), "no diffusion model"));
    EXPECT_TRUE(has(bad(head + "{requests_per_second: 1, audio: 20s}\nmodel: llama-3-8b\n"), "hears nothing"));
    EXPECT_TRUE(has(bad(head + "{requests_per_second: 1, prompt_tokens: 100, cached_prompt_tokens: 100}\nmodel: "
                               "llama-3-8b\n"),
                    "leave none to compute"));
}

// What stands before a model is no part of a training, and has an image of its own.
TEST(Workload, AFrontIsAServiceOfItsOwn) {
    const std::string head = "version: 1\nkind: inference\nmodel: llama-3-8b\ntraffic: {requests_per_second: 5}\n";
    const Workload w = good(head + "front: {image: registry.example/gateway:1}\n");
    EXPECT_EQ(w.front.image, "registry.example/gateway:1");
    bool said = false;
    for (const std::string& line : w.assumptions) said |= has(line, "front.cpu_per_request");
    EXPECT_TRUE(said);
    EXPECT_TRUE(has(bad(head + "front: {cpu_per_request: 5ms}\n"), "image is missing"));
    EXPECT_TRUE(has(bad(head + "front: {image: x, health: healthz}\n"), "is no path"));
    EXPECT_TRUE(has(bad("version: 1\nkind: training\nmodel: llama-3-8b\ndata: {tokens: 1B}\nfront: {image: x}\n"),
                    "front belongs to inference"));
}

// How often a spot node goes, as people have it: a figure, a span, or the bracket of a portal.
TEST(Workload, EvictionRatesAreReadAsTheyAreWritten) {
    const auto rate = [](std::string_view text) { return parse_eviction_rate(text).value_or(Range{}); };
    EXPECT_DOUBLE_EQ(rate("0.1").mid, 0.1);
    EXPECT_DOUBLE_EQ(rate("0.1/h").low, 0.05);
    EXPECT_DOUBLE_EQ(rate("0.1").high, 0.2);
    EXPECT_DOUBLE_EQ(rate("0.02 - 0.08").mid, 0.04);
    EXPECT_DOUBLE_EQ(rate("5-10%").high, 0.1);
    EXPECT_DOUBLE_EQ(rate("0-5%").mid, 0.025);
    EXPECT_DOUBLE_EQ(rate("20+%").mid, 0.2);
    for (const char* wrong : {"", "often", "0", "-1", "5-2", "100", "%"})
        EXPECT_FALSE(parse_eviction_rate(wrong)) << wrong;
    const std::string head =
        "version: 1\nkind: training\nmodel: llama-3-8b\ndata: {tokens: 1B}\nwhere: {spot: allowed, ";
    EXPECT_DOUBLE_EQ(good(head + "evictions_per_hour: [0.02, 0.08]}\n").where.evictions_per_hour->mid, 0.04);
    EXPECT_TRUE(has(bad(head + "evictions_per_hour: often}\n"), "write 0.1, [0.02, 0.4] or 5-10%"));
    EXPECT_TRUE(has(bad(head + "on_demand_replicas: 2}\n"), "only a service has replicas"));
}

TEST(Workload, DataAndUsersAreSomewhere) {
    const std::string head = "version: 1\nkind: training\nmodel: resnet-50\ndata: {examples: 1M, ";
    EXPECT_EQ(good(head + "region: West Europe}\n").data.region, "westeurope");
    EXPECT_EQ(good(head + "region: eu-west-1}\n").data.cloud, "aws");
    EXPECT_TRUE(has(bad(head + "region: atlantis}\n"), "no region named atlantis"));
}

// Half the edge is a quarter of the work; where the size that is counted is not known, nothing is scaled in silence.
TEST(Workload, ImagesOfAnotherSizeAreOtherWork) {
    const std::string head = "version: 1\nkind: batch-inference\ntraffic: {requests: 1M, image_size: 256}\nmodel: ";
    const Workload whole = good("version: 1\nkind: batch-inference\ntraffic: {requests: 1M}\nmodel: sd2\n");
    const Workload half = good(head + "sd2\n");
    EXPECT_NEAR(half.model.forward_flops_per_sample, whole.model.forward_flops_per_sample / 4, 1);
    EXPECT_TRUE(has(assumptions(half), "images of 256 x 256: 0.25 times"));
    EXPECT_TRUE(has(bad(head + "llama-3-8b\n"), "image_size"));
    EXPECT_TRUE(has(bad(head + "vit-b-16\n"), "forward_flops"));
}

}  // namespace
}  // namespace stoker

#include "deploy/azure/scheduled_events.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "io/http/http_server.h"

namespace stoker {
namespace {

using testing::HasSubstr;

// As the vendor's page prints it.
constexpr const char* kDocument = R"({
    "DocumentIncarnation": 1,
    "Events": [
        {"EventId": "C7061BAC-AFDC-4513-B24B-AA5F13A16123", "EventStatus": "Scheduled", "EventType": "Freeze",
         "ResourceType": "VirtualMachine", "Resources": ["WestNO_0", "WestNO_1"],
         "NotBefore": "Mon, 11 Apr 2022 22:26:58 GMT", "Description": "Virtual machine is being paused.",
         "EventSource": "Platform", "DurationInSeconds": 5},
        {"EventId": "A123BC45-1234-5678-AB90-ABCDEF123456", "EventStatus": "Scheduled", "EventType": "Preempt",
         "ResourceType": "VirtualMachine", "Resources": ["westno_0"],
         "NotBefore": "Mon, 11 Apr 2022 22:27:28 GMT", "Description": "", "EventSource": "Platform",
         "DurationInSeconds": -1}]})";
constexpr std::int64_t kFreezeUs = 1'649'716'018LL * 1'000'000;  // 2022-04-11T22:26:58Z

// A spot machine that is taken without a word to its trainer loses everything since the last checkpoint.
TEST(ScheduledEventsTest, APreemptionOfThisMachineIsToldOnce) {
    const auto events = parse_scheduled_events(kDocument, "doc");
    ASSERT_TRUE(events.ok()) << events.error().text();
    ASSERT_EQ(events->size(), 2u);
    EXPECT_EQ((*events)[0].not_before_us, kFreezeUs);
    EventMemory memory;
    const auto notices = memory.notices(*events, "WestNO_0", kFreezeUs);
    ASSERT_EQ(notices.size(), 1u) << "a pause of seconds takes nothing away";
    EXPECT_DOUBLE_EQ(notices[0].seconds, 30);
    EXPECT_THAT(notices[0].detail, HasSubstr("Preempt"));
    EXPECT_TRUE(memory.notices(*events, "WestNO_0", kFreezeUs + 1'000'000).empty());
}

// Every machine of a scale set reads the events of all of them.
TEST(ScheduledEventsTest, WhatMeansAnotherMachineIsPassedOver) {
    EventMemory memory;
    EXPECT_TRUE(memory.notices(*parse_scheduled_events(kDocument, "doc"), "WestNO_1", kFreezeUs).empty());
}

// One that has begun has no NotBefore: there is no time left.
TEST(ScheduledEventsTest, AStartedEventLeavesNoTime) {
    const auto events = parse_scheduled_events(
        R"({"Events":[{"EventId":"x","EventStatus":"Started","EventType":"Terminate","Resources":["a"],"NotBefore":""}]})",
        "doc");
    EventMemory memory;
    EXPECT_EQ(memory.notices(*events, "a", kFreezeUs).at(0).seconds, 0);
}

TEST(ScheduledEventsTest, DamagedAnswersAreErrors) {
    for (const char* text : {"", "[]", "{}", R"({"Events":[{"EventType":"Preempt"}]})", "<html>", R"({"Events":7})"})
        EXPECT_FALSE(parse_scheduled_events(text, "doc").ok()) << text;
    EXPECT_FALSE(parse_rfc1123_us("2022-04-11").has_value());
    EXPECT_FALSE(parse_rfc1123_us("Mon, 11 Apr 2022 22:26:58 CET").has_value());
}

// A loopback endpoint that answers as the page says: Metadata header or 400.
TEST(EventPollerTest, PollsAndTells) {
    std::atomic<int> refused = 0;
    auto server = HttpServer::start({}, [&](HttpRequest request, HttpReply reply) {
        if (!request.headers.find("Metadata")) {
            ++refused;
            return reply.send({.status = 400});
        }
        if (request.path == "/metadata/instance/compute")
            return reply.send({.content_type = "application/json", .body = R"({"name":"WestNO_0","vmSize":"x"})"});
        reply.send({.content_type = "application/json", .body = kDocument});
    });
    ASSERT_TRUE(server.ok()) << server.error().text();
    std::mutex mutex;
    std::condition_variable told;
    std::vector<EventMemory::Notice> notices;
    auto poller = EventPoller::start({.url = "http://127.0.0.1:" + std::to_string((*server)->port()), .every_s = 0.01},
                                     [&](const auto& notice) {
                                         const std::lock_guard lock(mutex);
                                         notices.push_back(notice);
                                         told.notify_all();
                                     });
    ASSERT_TRUE(poller.ok()) << poller.error().text();
    std::unique_lock lock(mutex);
    ASSERT_TRUE(told.wait_for(lock, std::chrono::seconds(30), [&] { return !notices.empty(); }));
    EXPECT_THAT(notices[0].detail, HasSubstr("Preempt"));
    EXPECT_EQ(refused, 0);
}

// On a machine that is no VM of Azure nobody answers; the server must still stop at once.
TEST(EventPollerTest, EndsWithoutAnAnswer) {
    const auto begin = std::chrono::steady_clock::now();
    {
        auto poller = EventPoller::start({.url = "http://127.0.0.1:1"}, [](const auto&) { FAIL(); });
        ASSERT_TRUE(poller.ok());
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST(OnAzureTest, IsKnownByItsAssetTag) {
    const std::string root = testing::TempDir() + "azure-root";
    std::filesystem::create_directories(root + "/sys/class/dmi/id");
    EXPECT_FALSE(on_azure(root));
    std::ofstream(root + "/sys/class/dmi/id/chassis_asset_tag") << "7783-7084-3265-9085-8269-3286-77\n";
    EXPECT_TRUE(on_azure(root));
    std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace stoker

#include "run/state/free_time.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

constexpr std::int64_t kHour = std::int64_t{3600} * 1'000'000;

NodeInfo machine(const std::string& name) {
    NodeInfo node;
    node.name = name;
    node.cpu_milli = 64'000;
    for (int i = 0; i < 8; ++i) node.devices.push_back({.id = std::to_string(i), .model = "H100"});
    return node;
}

PriceBook book() {
    auto read = PriceBook::read(
        "source: ours\nprices:\n  - {resource: gpu, model: H100, usd_per_hour: 2, valid_from: 2000-01-01}\n"
        "  - {resource: cpu, usd_per_hour: 0, valid_from: 2000-01-01}\n",
        "prices.yaml");
    EXPECT_TRUE(read) << (read ? "" : read.error().text());
    return read ? *read : PriceBook();
}

// Who reads the bill wants to know what stood ready, what was kept away, and not what was not there.
TEST(FreeTime, SpansFollowTheNodesRecords) {
    NodeTime time;
    time.add(1 * kHour, RecordBody(NodeSeen{machine("a")}));
    time.add(2 * kHour, RecordBody(NodeSeen{machine("a")}));
    time.add(3 * kHour, RecordBody(NodeMoved{.node = "a", .state = NodeState::draining}));
    time.add(4 * kHour, RecordBody(NodeMoved{.node = "a", .state = NodeState::quarantined}));
    time.add(5 * kHour, RecordBody(NodeMoved{.node = "a", .state = NodeState::ready}));
    time.add(6 * kHour, RecordBody(NodeMoved{.node = "a", .state = NodeState::lost}));
    time.add(7 * kHour, RecordBody(NodeMoved{.node = "a", .state = NodeState::ready}));
    time.add(8 * kHour, RecordBody(NodeRemoved{.node = "a"}));
    const std::vector<NodeSpan> all = {{1 * kHour, 3 * kHour, true},
                                       {3 * kHour, 5 * kHour, false},
                                       {5 * kHour, 6 * kHour, true},
                                       {7 * kHour, 8 * kHour, true}};
    EXPECT_EQ(time.spans({0, 10 * kHour}), all);
    EXPECT_EQ(time.spans({2 * kHour, 4 * kHour}),
              (std::vector<NodeSpan>{{2 * kHour, 3 * kHour, true}, {3 * kHour, 4 * kHour, false}}));
    EXPECT_TRUE(time.spans({9 * kHour, 10 * kHour}).empty());
}

// Free and held add up to the machine, in hours and in money.
TEST(FreeTime, WhatIsHeldIsNotFree) {
    State state;
    const NodeInfo node = machine("a");
    state.nodes["a"] = NodeStatus{.info = node};
    const PriceBook prices = book();
    constexpr std::int64_t kNight = std::int64_t{1'767'225'600} * 1'000'000;  // 2026-01-01
    const UsageWindow window{kNight + 10 * kHour, kNight + 20 * kHour};
    const FreeTime empty = free_time(state, node, {}, window, prices);
    EXPECT_DOUBLE_EQ(empty.gpu_hours, 80);
    EXPECT_DOUBLE_EQ(empty.cpu_hours, 640);
    EXPECT_EQ(empty.microusd, 160'000'000);
    EXPECT_TRUE(empty.priced);
    // Four boards from an hour before the window until its middle.
    const std::vector<UsageInterval> held = {{.resource = PricedResource::gpu,
                                              .node = "a",
                                              .model = "H100",
                                              .milli = 4000,
                                              .from_us = kNight + 9 * kHour,
                                              .to_us = kNight + 15 * kHour}};
    const FreeTime rest = free_time(state, node, held, window, prices);
    EXPECT_DOUBLE_EQ(rest.gpu_hours, 60);
    EXPECT_EQ(rest.microusd, 120'000'000);
    EXPECT_FALSE(free_time(state, node, {}, window, PriceBook()).priced) << "without prices there is no sum";
}

}  // namespace
}  // namespace stoker

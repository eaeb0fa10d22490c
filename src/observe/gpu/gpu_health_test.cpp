// What of a GPU keeps work off its node, and when it may come back.
#include "observe/gpu/gpu_health.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stoker {
namespace {

constexpr std::int64_t kNow = 1'000'000'000'000'000;
constexpr std::int64_t kMinute = 60'000'000;

GpuView two_boards() {
    GpuView view;
    view.down = NvmlDown::none;
    view.wall_us = kNow;
    for (int i = 0; i < 2; ++i) {
        GpuDevice board;
        board.state = GpuState::ok;
        board.uuid = "GPU-" + std::to_string(i), board.pci = "0000:0" + std::to_string(i) + ":00.0", board.index = i;
        for (const auto& [metric, value] : {std::pair{GpuMetric::recovery_action, 0.0},
                                            {GpuMetric::remap_failed, 0.0},
                                            {GpuMetric::nvlink_expected, 18.0},
                                            {GpuMetric::nvlink_active, 18.0},
                                            {GpuMetric::fabric_healthy, 1.0},
                                            {GpuMetric::reason_hw_thermal, 0.0}})
            board.values[index_of(metric)] = value;
        view.devices.push_back(std::move(board));
    }
    return view;
}

void xid(GpuView& view, int board, int code, std::uint64_t count, double minutes_ago) {
    auto& codes = view.xids[view.devices[static_cast<std::size_t>(board)].pci].codes;
    codes[code] = {count, kNow - static_cast<std::int64_t>(minutes_ago * kMinute)};
}

HealthVerdict verdict(const GpuView& view) {
    return HealthReport{judge_gpus(view, usual_gpu_policy(), "n")}.verdict();
}

TEST(GpuHealth, HealthyBoardsPass) {
    const auto checks = judge_gpus(two_boards(), usual_gpu_policy(), "node-a");
    ASSERT_EQ(checks.size(), 1u);
    EXPECT_EQ(checks[0].verdict, HealthVerdict::pass);
    EXPECT_EQ(checks[0].name, "gpu-health");
    EXPECT_EQ(checks[0].node, "node-a");
    EXPECT_EQ(checks[0].measured, 2);
    GpuView none;
    none.down = NvmlDown::library_absent;
    EXPECT_TRUE(judge_gpus(none, usual_gpu_policy(), "n").empty());  // gpu-count tells of that
}

TEST(GpuHealth, WhatIsWrongIsToldWithItsBoardAndItsRepair) {
    GpuView view = two_boards();
    view.devices[1].values[index_of(GpuMetric::nvlink_active)] = 12;
    xid(view, 1, 79, 2, 1);
    const auto checks = judge_gpus(view, usual_gpu_policy(), "n");
    ASSERT_EQ(checks.size(), 2u);
    for (const HealthCheck& check : checks) {
        EXPECT_EQ(check.verdict, HealthVerdict::fail);
        EXPECT_NE(check.detail.find("GPU 1 (GPU-1)"), std::string::npos) << check.detail;
        EXPECT_FALSE(check.fix.empty() || check.source.empty());
    }
    EXPECT_TRUE(std::any_of(checks.begin(), checks.end(), [](const HealthCheck& check) {
        return check.name == "gpu-nvlink-down" && check.detail.find("6 of its 18 NVLinks") != std::string::npos;
    }));
    EXPECT_TRUE(std::any_of(checks.begin(), checks.end(), [](const HealthCheck& check) {
        return check.name == "gpu-xid-restart-machine" && check.detail.find("Xid 79 2 times") != std::string::npos;
    }));
}

TEST(GpuHealth, AnErrorIsForgivenWhenItsTimeHasPassed) {
    GpuView view = two_boards();
    xid(view, 0, 95, 1, 5);  // asks for a reset
    EXPECT_EQ(verdict(view), HealthVerdict::fail);
    xid(view, 0, 95, 1, 11);  // the board says that nothing has to be done
    EXPECT_EQ(verdict(view), HealthVerdict::pass);
    view.devices[0].values[index_of(GpuMetric::recovery_action)] = 1;
    EXPECT_EQ(verdict(view), HealthVerdict::fail);
    view.devices[0].values[index_of(GpuMetric::recovery_action)].reset();  // an older driver, that cannot say so
    EXPECT_EQ(verdict(view), HealthVerdict::fail);
    xid(view, 0, 95, 1, 61);
    EXPECT_EQ(verdict(view), HealthVerdict::pass);
    xid(view, 0, 79, 1, 100'000);  // until the machine is started again
    EXPECT_EQ(verdict(view), HealthVerdict::fail);
}

TEST(GpuHealth, AnErrorOfAProgramIsNoneOfTheBoardUntilItComesAgainAndAgain) {
    GpuView view = two_boards();
    xid(view, 0, 31, 1, 1);
    EXPECT_EQ(verdict(view), HealthVerdict::pass);
    xid(view, 0, 31, 3, 1);
    EXPECT_EQ(verdict(view), HealthVerdict::warn);
    GpuView lost = two_boards();
    lost.devices[0].state = GpuState::lost;
    EXPECT_EQ(verdict(lost), HealthVerdict::fail);
    lost.devices[0].uuid.clear(), lost.devices[0].pci.clear();
    EXPECT_EQ(judge_gpus(lost, usual_gpu_policy(), "n")[0].detail, "GPU 0: it does not answer any more (lost)")
        << "before it said who it is";
}

TEST(GpuHealth, APolicyOfOnesOwnIsReadWithItsMistakes) {
    const std::string head = "condition\tverdict\tleast\thold_min\trepair\tsource\n";
    const auto good = read_gpu_policy(head + "xid:restart_app\tfail\t1\t5\trestart it\tours\n", "mine.tsv");
    ASSERT_TRUE(good.ok()) << good.error().text();
    GpuView view = two_boards();
    xid(view, 0, 31, 1, 1);
    view.devices[1].values[index_of(GpuMetric::nvlink_active)] = 0;  // not in it
    const auto checks = judge_gpus(view, *good, "n");
    ASSERT_EQ(checks.size(), 1u);
    EXPECT_EQ(checks[0].fix, "restart it");
    for (const char* bad :
         {"xid:often\tfail\t1\t5\ta\tb\n", "lost\tmaybe\t1\t5\ta\tb\n", "lost\tfail\tone\t5\ta\tb\n"}) {
        const auto refused = read_gpu_policy(head + bad, "mine.tsv");
        ASSERT_FALSE(refused.ok()) << bad;
        EXPECT_NE(refused.error().text().find("mine.tsv:2"), std::string::npos) << refused.error().text();
    }
    EXPECT_FALSE(read_gpu_policy("condition\tverdict\nlost\tfail\n", "mine.tsv").ok());
}

}  // namespace
}  // namespace stoker

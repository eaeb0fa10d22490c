#include "doctor/health_gpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "doctor/health_check.h"

namespace stoker {
namespace {

GpuSpeeds eight_boards() {
    GpuSpeeds speeds;
    for (int i = 0; i < 8; ++i)
        speeds.boards.push_back({.index = i,
                                 .name = "H100",
                                 .pci = "",
                                 .in_use = "",
                                 .problem = "",
                                 .to_board = 55e9 + i * 1e8,
                                 .from_board = 56e9,
                                 .memory = 2.9e12 + i * 1e9,
                                 .to_peer = 390e9,
                                 .to_best_peer = 395e9,
                                 .peer = (i + 1) % 8,
                                 .work = "bf16 products",
                                 .flops = 620e12 - i * 1e12,
                                 .first_flops = 620e12,
                                 .last_flops = 600e12,
                                 .burn_s = 20,
                                 .wrong = 0});
    speeds.all_reduce = 475e9, speeds.all_reduce_bytes = 1 << 30;
    return speeds;
}

HealthReport report_of(const GpuSpeeds& speeds, const std::string& size = "",
                       std::map<std::string, double> usual = {}) {
    HealthTarget target;
    target.node.name = "n-1";
    target.size = size;
    target.usual = std::move(usual);
    target.network = target.machine = target.cpu = target.disk = false;
    target.gpus = true;
    target.measure_gpus = [&](const GpuSpeedOptions&, Deadline) -> Result<GpuSpeeds> { return speeds; };
    return check_node(target, HealthLevel::full, std::chrono::steady_clock::now() + std::chrono::minutes(2));
}

std::string verdicts(const HealthReport& report) {
    std::string text;
    for (const HealthCheck& check : report.checks)
        text += check.name.substr(4) + "=" +
                std::string(enum_names(check.verdict)[static_cast<std::size_t>(check.verdict)].second) + " ";
    return text;
}

// Azure's minima decide where the size is known; a board below one fails by name, whatever the others do.
TEST(HealthGpu, ASlowCopyFailsByTheSize) {
    GpuSpeeds speeds = eight_boards();
    EXPECT_EQ(verdicts(report_of(speeds, "Standard_ND96isr_H100_v5")),
              "copy=pass memory-copy=pass peer-copy=pass arithmetic=pass steady=pass results=pass all-reduce=pass ");
    speeds.boards[3].from_board = 24e9;
    const HealthReport report = report_of(speeds, "Standard_ND96isr_H100_v5");
    ASSERT_EQ(report.verdict(), HealthVerdict::fail);
    const HealthCheck& copy = report.checks[0];
    EXPECT_EQ(copy.verdict, HealthVerdict::fail);
    EXPECT_EQ(copy.expected, 48e9);
    EXPECT_NE(copy.detail.find("GPU 3"), std::string::npos) << copy.detail;
    EXPECT_NE(copy.source.find("h2d_d2h_min_gb_s"), std::string::npos) << copy.source;
    EXPECT_FALSE(copy.fix.empty());
}

// Without a size, eight boards judge each other; what this machine did before goes first.
TEST(HealthGpu, TheOthersJudgeWhereNobodyElseDoes) {
    GpuSpeeds speeds = eight_boards();
    EXPECT_EQ(verdicts(report_of(speeds)),
              "copy=pass memory-copy=pass peer-copy=pass arithmetic=pass steady=pass results=pass all-reduce=skipped ");
    for (GpuSpeed& board : speeds.boards) board.to_peer = 120e9;  // every one to the one that is slow to all
    speeds.boards[7].to_best_peer = 121e9;
    const HealthReport slow = report_of(speeds);
    EXPECT_EQ(slow.checks[2].verdict, HealthVerdict::fail);
    EXPECT_NE(slow.checks[2].detail.find("to every other slow: GPU 7"), std::string::npos) << slow.checks[2].detail;
    speeds = eight_boards();
    speeds.boards[5].flops = 480e12;
    EXPECT_EQ(verdicts(report_of(speeds)),
              "copy=pass memory-copy=pass peer-copy=pass arithmetic=fail steady=pass results=pass all-reduce=skipped ");
    EXPECT_EQ(verdicts(report_of(speeds, "", {{"full/gpu-arithmetic", 490e12}, {"full/gpu-all-reduce", 470e9}})),
              "copy=pass memory-copy=pass peer-copy=pass arithmetic=pass steady=pass results=pass all-reduce=pass ");
}

GpuSpeeds one_h200() {
    GpuSpeeds speeds;
    speeds.boards.push_back({.index = 0,
                             .name = "NVIDIA H200",
                             .pci = "0000:00:06.0",
                             .in_use = "",
                             .problem = "",
                             .to_board = 55.1e9,
                             .from_board = 55.2e9,
                             .memory = 4.15e12,
                             .work = "bf16 products",
                             .flops = 460e12,
                             .wrong = 0});
    return speeds;
}

// A lone board on a machine that nobody named has no size, no others and no past: without what its model does half a
// link, half a clock or a sick memory would be told and judged by nobody, as on the first H200 that this ran on.
TEST(HealthGpu, ALoneBoardIsHeldAgainstItsModel) {
    EXPECT_EQ(verdicts(report_of(one_h200())), "copy=pass memory-copy=pass arithmetic=pass results=pass ");
    GpuSpeeds half = one_h200();
    half.boards[0].from_board = 27.5e9, half.boards[0].memory = 2.4e12, half.boards[0].flops = 235e12;
    const HealthReport report = report_of(half);
    EXPECT_EQ(verdicts(report), "copy=fail memory-copy=fail arithmetic=fail results=pass ");
    EXPECT_NE(report.checks[0].source.find("host_gb_s of H200-SXM (2 boards"), std::string::npos)
        << report.checks[0].source;
    EXPECT_NEAR(report.checks[0].expected.value_or(0), 0.8 * 0.877 * 63e9, 1e6);
    // Another one, and a part of one, are not what was measured; nor is other arithmetic.
    for (const char* name : {"NVIDIA H200 MIG 1g.18gb", "NVIDIA B999", ""}) {
        half.boards[0].name = name;
        EXPECT_EQ(verdicts(report_of(half)), "copy=skipped memory-copy=skipped arithmetic=skipped results=pass ")
            << name;
    }
    half = one_h200();
    half.boards[0].work = "fp32 multiply-adds", half.boards[0].flops = 50e12;
    EXPECT_EQ(verdicts(report_of(half)), "copy=pass memory-copy=pass arithmetic=skipped results=pass ");
    // What it did before is nearer to it than what others do.
    EXPECT_EQ(verdicts(report_of(half, "", {{"full/gpu-copy", 28e9}})),
              "copy=pass memory-copy=pass arithmetic=skipped results=pass ");
}

// Eight boards that are all throttled agree with each other, and are slow all the same.
TEST(HealthGpu, AllBoardsSlowAreSlowByTheirModel) {
    GpuSpeeds speeds;
    for (int i = 0; i < 8; ++i) {
        speeds.boards.push_back(one_h200().boards[0]);
        speeds.boards.back().index = i;
    }
    EXPECT_EQ(verdicts(report_of(speeds)),
              "copy=pass memory-copy=pass arithmetic=pass results=pass all-reduce=skipped ");
    speeds.boards[3].flops = 430e12;  // within what a model allows, and not like its neighbours
    const HealthReport one = report_of(speeds);
    EXPECT_EQ(verdicts(one), "copy=pass memory-copy=pass arithmetic=fail results=pass all-reduce=skipped ");
    EXPECT_NE(one.checks[2].source.find("median of the 8"), std::string::npos) << one.checks[2].source;
    for (GpuSpeed& board : speeds.boards) board.flops = 230e12;
    const HealthReport all = report_of(speeds);
    EXPECT_EQ(verdicts(all), "copy=pass memory-copy=pass arithmetic=fail results=pass all-reduce=skipped ");
    EXPECT_NE(all.checks[2].source.find("H200-SXM"), std::string::npos) << all.checks[2].source;
}

// Four boards are no pool: what nobody expects anything of is told and never passes.
TEST(HealthGpu, FewBoardsAreNoPool) {
    GpuSpeeds speeds = eight_boards();
    speeds.boards.resize(4);
    EXPECT_EQ(verdicts(report_of(speeds)),
              "copy=skipped memory-copy=skipped peer-copy=skipped arithmetic=skipped steady=pass results=pass "
              "all-reduce=skipped ");
}

// One wrong result is one too many, and a rate that falls by a third under load fails.
TEST(HealthGpu, WrongResultsAndFadingFail) {
    GpuSpeeds speeds = eight_boards();
    speeds.boards[2].wrong = 1, speeds.boards[6].last_flops = 400e12;
    const HealthReport report = report_of(speeds);
    EXPECT_EQ(verdicts(report),
              "copy=pass memory-copy=pass peer-copy=pass arithmetic=pass steady=fail results=fail all-reduce=skipped ");
    for (const HealthCheck& check : report.checks) {
        if (check.name == "gpu-results") {
            EXPECT_NE(check.detail.find("GPU 2"), std::string::npos) << check.detail;
        }
        if (check.name == "gpu-steady") {
            EXPECT_NE(check.detail.find("GPU 6"), std::string::npos) << check.detail;
        }
    }
}

// A board that fails a call fails the check with the call; one that is held is left out and said; no CUDA is no pass.
TEST(HealthGpu, WhatCannotBeMeasuredIsSaid) {
    GpuSpeeds speeds = eight_boards();
    speeds.boards[1] = {
        .index = 1, .name = "H100", .pci = "", .in_use = "", .problem = "cuLaunchKernel: launch failure (719)"};
    speeds.boards[4] = {.index = 4, .name = "H100", .pci = "", .in_use = "70.1 of its 80 GiB are held", .problem = ""};
    const HealthReport report = report_of(speeds);
    EXPECT_EQ(report.checks[0].verdict, HealthVerdict::fail);
    EXPECT_NE(report.checks[0].detail.find("cuLaunchKernel"), std::string::npos);
    EXPECT_EQ(report.checks[1].verdict, HealthVerdict::skipped);
    EXPECT_NE(report.checks[1].detail.find("are held"), std::string::npos);
    GpuSpeeds none;
    none.library_problem = "libcuda.so.1 cannot be opened";
    EXPECT_EQ(verdicts(report_of(none)), "works=skipped ");
    EXPECT_EQ(gpus_not_measured(Error(ErrorKind::timed_out, "x"), "n").verdict, HealthVerdict::fail);
    EXPECT_EQ(gpus_not_measured(Error(ErrorKind::not_found, "x"), "n").verdict, HealthVerdict::skipped);
}

// What is measured in another process comes back whole.
TEST(HealthGpu, SpeedsComeBackFromTheirJson) {
    GpuSpeeds speeds = eight_boards();
    speeds.boards[7].flops.reset();
    speeds.boards[7].problem = "cuMemAlloc: out of \"memory\" (2)";
    const auto again = read_gpu_speeds(to_json(speeds).dump(1));
    ASSERT_TRUE(again.ok()) << again.error().message();
    EXPECT_EQ(to_json(*again).dump(), to_json(speeds).dump());
    EXPECT_FALSE(read_gpu_speeds("{}").ok());
}

}  // namespace
}  // namespace stoker

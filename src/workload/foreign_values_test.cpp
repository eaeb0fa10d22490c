// When this breaks, who writes a duration as Slurm or ISO 8601 has it, or a link's speed in bits, is told that the
// value is wrong and not what to write, or gets a plan for eight times as much.
#include "workload/foreign_values.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "workload/testing.h"

namespace stoker {
namespace {

// What is to be done about the one line that is wrong.
std::string remedy(const std::string& line, const std::string& data = "data: {tokens: 10B}\n") {
    const auto read = testing::read("version: 1\nkind: training\nmodel: llama-3-8b\n" + data + line + "\n");
    if (read) return "taken";
    const Problem& first = read.error().problems().front();
    return first.remedy.empty() ? "nothing to do about: " + first.message : first.remedy;
}
std::string of_data(const std::string& line) {
    return remedy("", "data: {tokens: 10B, " + line + "}\n");
}

TEST(ForeignValues, DurationsOfOtherToolsAreWorkedOut) {
    const std::pair<const char*, const char*> cases[] = {
        {"24:00:00", "deadline: 1d"},
        {"1-12:00:00", "deadline: 36h"},
        {"P14D", "deadline: 14d"},
        {"PT12H30M", "deadline: 750m"},
        {"2 fortnights", "deadline: 28d"},
        {"1 yr", "deadline: 365d"},
        {"30 minuts", "deadline: 30m"},
        {"two weeks", "deadline: 14d"},
        {"overnight", "deadline: 12h"},
        {"within 14d", "deadline: 14d"},
        {"14d max", "deadline: 14d"},
        {"<14d", "deadline: 14d"},
        {"1d12", "deadline: 1d12h"},
        {"14", "14d for days, 14h for hours"},
        {"2026-12-01", "how long the work may take"},
        {"friday", "how long the work may take"},
    };
    for (const auto& [written, wanted] : cases)
        EXPECT_NE(remedy(fmt::format("objective: {{deadline: \"{}\"}}", written)).find(wanted), std::string::npos)
            << written << ": " << remedy(fmt::format("objective: {{deadline: \"{}\"}}", written));
    EXPECT_NE(remedy("checkpoint: {every: 500 steps}").find("time is counted"), std::string::npos);
    EXPECT_NE(remedy("checkpoint: {every: hourly}").find("every: 1h"), std::string::npos);
}

TEST(ForeignValues, CountsAndBytes) {
    EXPECT_EQ(remedy("", "data: {tokens: 10Bn}\n"), "write tokens: 10B");
    EXPECT_EQ(remedy("", "data: {tokens: 10B tokens}\n"), "write tokens: 10B");
    EXPECT_EQ(remedy("", "data: {tokens: ~10B}\n"), "write tokens: 10B");
    EXPECT_NE(remedy("", "data: {tokens: 10B-20B}\n").find("plan both"), std::string::npos);
    EXPECT_EQ(of_data("bytes: 1 terabyte"), "write bytes: 1TB");
    EXPECT_NE(of_data("bytes: 500Gbit").find("write bytes: 62.5GB"), std::string::npos);
    EXPECT_NE(of_data("bytes: 500").find("500GB"), std::string::npos);
    EXPECT_NE(remedy("where: {gpus: all}").find("max_nodes"), std::string::npos);
    EXPECT_EQ(remedy("layout: {zero: stage3}"), "write zero: 3");
    EXPECT_EQ(remedy("layout: {zero: fsdp}"), "write zero: 3");
    EXPECT_EQ(remedy("layout: {tensor: auto}"), "leave tensor out: the plan finds it");
    EXPECT_NE(remedy("objective: {budget: 20,000}").find("write budget: 20000"), std::string::npos);
}

// Links are sold in bits; read as bytes a plan waits eight times too little for its data.
TEST(ForeignValues, BitsPerSecondAreNotTakenForBytes) {
    for (const char* bits : {"10Gb/s", "10 Gbit/s", "10Gbps", "10gbps"})
        EXPECT_NE(of_data(fmt::format("storage_bandwidth: {}", bits)).find("1.25GB/s"), std::string::npos) << bits;
    EXPECT_EQ(of_data("storage_bandwidth: 10GB/s"), "taken");
    EXPECT_NE(of_data("storage_bandwidth: 500MB/sec").find("500MB/s"), std::string::npos);
    EXPECT_NE(of_data("storage_bandwidth: 10GBps").find("10GB/s"), std::string::npos);
}

TEST(ForeignValues, WhatIsReadOneWayIsSaid) {
    const auto assumed = [](const std::string& data, const std::string& line = "") {
        std::string all;
        for (const std::string& each :
             testing::good("version: 1\nkind: training\nmodel: llama-3-8b\n" + data + line).assumptions)
            all += each + "\n";
        return all;
    };
    EXPECT_NE(assumed("data: {tokens: 10B, bytes: 500Gb}\n")
                  .find("500Gb is read as bytes (500GB); were bits meant, it is 62.5GB"),
              std::string::npos);
    EXPECT_EQ(assumed("data: {tokens: 10B, bytes: 500GB}\n").find("is read as"), std::string::npos);
    EXPECT_NE(assumed("data: {tokens: 10B}\n", "objective: {budget: 20.000}\n").find("write budget: 20000"),
              std::string::npos);
}

TEST(ForeignValues, ChoicesByOtherNames) {
    EXPECT_EQ(remedy("precision: fp8_e4m3"), "write precision: fp8");
    EXPECT_EQ(remedy("precision: float"), "write precision: fp32");
    EXPECT_NE(remedy("layout: {recompute: true}").find("recompute: full"), std::string::npos);
    EXPECT_NE(remedy("framework: hf").find("transformers"), std::string::npos);
    EXPECT_EQ(remedy("where: {os: Ubuntu 22.04}"), "write os: linux");
    EXPECT_NE(remedy("disk: {type: nvme}").find("come with the size"), std::string::npos);
}

}  // namespace
}  // namespace stoker

// Breaks for whoever measures this machine: what the probe says has to come back as it was, and a shape that was
// measured has to be predicted with its own rate.
#include "doctor/framework_speed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "io/files.h"

namespace stoker {
namespace {

FrameworkSpeed example() {
    return {.framework = "torch 1.13.0",
            .python = "/usr/bin/python3",
            .measured = "2026-11-21",
            .matmul = {{"fp32", 1, 128, 512, 100e9},
                       {"fp32", 1, 1024, 512, 200e9},
                       {"fp32", 2, 128, 512, 150e9},
                       {"bf16", 1, 128, 512, 10e9}},
            .all_reduce = {{2, 4, 80e-6}, {2, 4e6, 2e-3}, {2, 16e6, 8e-3}},
            .together = {{2, 0.8, 250e6}},
            .attention = {{64, 32, 4e-9}, {64, 64, 6e-9}, {256, 32, 8e-9}, {256, 64, 12e-9}},
            .elementwise = {{65536, 40e-9}, {1048576, 160e-9}},
            .optimizer_s = 5e-9,
            .operator_s = 1e-6,
            .import_s = 0.8,
            .memory_bytes_per_second = 20e9};
}

TEST(FrameworkSpeed, ComesBackFromJson) {
    const auto document = Document::parse_json(framework_json(example()).dump(), "x.json");
    ASSERT_TRUE(document);
    const auto read = read_framework(document->root());
    ASSERT_TRUE(read);
    EXPECT_EQ(framework_json(*read).dump(), framework_json(example()).dump());
}

TEST(FrameworkSpeed, AnIncompleteAnswerIsNotUsed) {
    for (const char* text : {"{}", R"({"matmul": [{"flops_per_second": 0}], "operator_s": 1})",
                             R"({"matmul": 3, "operator_s": 1e-6, "memory_bytes_per_second": 1})",
                             R"({"matmul": [{"precision": "fp32", "threads": 1, "hidden": 8, "tokens": 8,
                                 "flops_per_second": 1e9}], "operator_s": 1e-6})"}) {
        const auto document = Document::parse_json(text, "x.json");
        ASSERT_TRUE(document) << text;
        const auto read = read_framework(document->root());
        ASSERT_FALSE(read) << text;
        EXPECT_EQ(read.error().kind(), ErrorKind::not_found);
    }
}

TEST(FrameworkSpeed, AMeasuredShapeHasItsOwnRateAndOthersLieBetween) {
    const FrameworkSpeed speed = example();
    EXPECT_NEAR(rates_of_rank(speed, "fp32", 1, 1, {.hidden = 128, .tokens = 512}).flops_per_second, 100e9, 2e9);
    EXPECT_NEAR(rates_of_rank(speed, "fp32", 1, 1, {.hidden = 1024, .tokens = 512}).flops_per_second, 200e9, 2e9);
    double before = 0;
    for (double hidden = 128; hidden <= 1024; hidden *= 1.1) {
        const double rate = rates_of_rank(speed, "fp32", 1, 1, {.hidden = hidden, .tokens = 512}).flops_per_second;
        EXPECT_GT(rate, before) << hidden;
        before = rate;
    }
}

TEST(FrameworkSpeed, WhatLiesBetweenMeasuredShapesIsInterpolatedAndWhatLiesOutsideIsTheNearest) {
    const FrameworkSpeed speed = example();
    const auto at = [&](const RankShape& shape) { return rates_of_rank(speed, "fp32", 1, 1, shape); };
    EXPECT_NEAR(at({.hidden = 64, .tokens = 512}).flops_per_second, 100e9, 1);
    const double middle = std::sqrt(128.0 * 1024);
    EXPECT_NEAR(at({.hidden = middle, .tokens = 512}).flops_per_second, std::sqrt(100e9 * 200e9), 1e3);
    EXPECT_NEAR(at({.hidden = 128, .tokens = 512, .sequence = 128, .head = 32}).attention_s, std::sqrt(32.0) * 1e-9,
                1e-15);
    EXPECT_NEAR(at({.hidden = 128, .tokens = 512, .sequence = 512, .head = 128}).attention_s, 12e-9, 1e-15);
    EXPECT_NEAR(at({.hidden = 256, .tokens = 1024}).elementwise_s, 80e-9, 1e-14);
    EXPECT_NEAR(at({.hidden = 8, .tokens = 8}).elementwise_s, 40e-9, 1e-15);
    EXPECT_EQ(at({.hidden = 8, .tokens = 8}).attention_s, 0);  // no attention is asked about
}

TEST(FrameworkSpeed, ThreadsThatWereNotMeasuredAreNotCountedOn) {
    const FrameworkSpeed speed = example();
    EXPECT_NEAR(rates_of_rank(speed, "fp32", 1, 2, {.hidden = 128, .tokens = 512}).flops_per_second, 150e9, 1);
    EXPECT_NEAR(rates_of_rank(speed, "fp32", 1, 64, {.hidden = 128, .tokens = 512}).flops_per_second, 150e9, 1);
    EXPECT_EQ(rates_of_rank(speed, "int8", 1, 1, {.hidden = 128, .tokens = 512}).flops_per_second,
              0);  // falls back to the published way
}

TEST(FrameworkSpeed, RanksShareWhatThereIs) {
    const FrameworkSpeed speed = example();
    const RankRates one = rates_of_rank(speed, "fp32", 1, 1, {.hidden = 128, .tokens = 512}),
                    two = rates_of_rank(speed, "fp32", 2, 1, {.hidden = 128, .tokens = 512});
    EXPECT_NEAR(two.flops_per_second / one.flops_per_second, 0.8, 1e-9);
    EXPECT_EQ(one.loopback_bytes_per_second, 0);
    EXPECT_NEAR(two.loopback_bytes_per_second, 20e6 / 10e-3, 1);
    EXPECT_NEAR(two.loopback_latency_s, 40e-6, 1e-12);
}

TEST(FrameworkSpeed, IsKeptBesideTheHardware) {
    const std::string folder = testing::TempDir() + "/framework_speed";
    std::filesystem::remove_all(folder);
    const std::string path = folder + "/this-machine.json";
    const Machine machine{.model = "a processor", .architecture = "x86_64"};
    EXPECT_EQ(load_framework(path, machine).error().kind(), ErrorKind::not_found);
    const MachineSpeed hardware{
        .kernel = "avx2", .matmul_flops = {1e9, 2e9, 3e9, 4}, .triad_bytes = {1e9, 2e9, 3e9, 4}};
    ASSERT_TRUE(save_framework(path, machine, example()));
    ASSERT_TRUE(save_speed(path, machine, hardware, "2026-11-21"));
    const auto framework = load_framework(path, machine);
    ASSERT_TRUE(framework);
    EXPECT_EQ(framework->matmul.size(), 4u);
    EXPECT_EQ(load_speed(path, machine)->matmul_flops.max, 3e9);
    EXPECT_FALSE(load_framework(path, Machine{.model = "another"}));
}

TEST(FrameworkSpeed, APythonThatIsNotThereSaysSo) {
    const auto measured = measure_framework("/nowhere/python3", true, "2026-11-21");
    ASSERT_FALSE(measured);
    EXPECT_EQ(measured.error().kind(), ErrorKind::unavailable);
    const auto failing = measure_framework("/bin/false", true, "2026-11-21");
    ASSERT_FALSE(failing);
    EXPECT_EQ(failing.error().kind(), ErrorKind::unavailable);
}

// What the probe measured as seconds has to come out of the plan's counts of reads and writes as these seconds.
TEST(FrameworkSpeed, CountsOfPassesGiveTheMeasuredSecondsBack) {
    auto catalog = Catalog::embedded();
    ASSERT_TRUE(catalog);
    const RankRates rates =
        rates_of_rank(example(), "fp32", 1, 1, {.hidden = 128, .tokens = 512, .sequence = 64, .head = 32});
    use_rates(rates, example(), *catalog);
    const auto constant = [&](const char* name) { return catalog->constant_or_die(name); };
    const double memory = rates.memory_bytes_per_second;
    const double elements = constant("vector_hidden_passes") + 8 * constant("vector_ffn_passes");
    EXPECT_NEAR(3 * constant("vector_pass_constant_cpu") * 4 * elements / memory, rates.elementwise_s, 1e-15);
    EXPECT_NEAR(3 * (4 * 32 / rates.flops_per_second + 4 * constant("attention_unfused_passes") / memory), 4e-9, 1e-15);
    EXPECT_NEAR(constant("cpu_optimizer_bytes_adam") / memory, 5e-9, 1e-15);
    // What an older stoker measured has none of it, and the published counts stay.
    FrameworkSpeed older = example();
    older.attention.clear(), older.elementwise.clear(), older.optimizer_s = 0;
    auto other = Catalog::embedded();
    const auto published = Catalog::embedded();
    ASSERT_TRUE(other && published);
    use_rates(rates_of_rank(older, "fp32", 1, 1, {.hidden = 128, .tokens = 512, .sequence = 64, .head = 32}), older,
              *other);
    for (const char* name : {"attention_unfused_passes", "vector_pass_constant_cpu"})
        EXPECT_EQ(other->constant_or_die(name), published->constant_or_die(name)) << name;
}

TEST(FrameworkSpeed, ReplacesConstantsWithTheirSource) {
    auto catalog = Catalog::embedded();
    ASSERT_TRUE(catalog);
    use_rates(rates_of_rank(example(), "fp32", 2, 1, {.hidden = 128, .tokens = 512}), example(), *catalog);
    EXPECT_DOUBLE_EQ(catalog->constant_or_die("launch_us_cpu"), 1.0);
    EXPECT_DOUBLE_EQ(catalog->constant_or_die("loopback_gb_s"), 2.0);
    EXPECT_NE(catalog->constant("loopback_gb_s")->provenance.source.find("this machine"), std::string::npos);
}

}  // namespace
}  // namespace stoker

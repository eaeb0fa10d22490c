#include "doctor/health_text.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace stoker {
namespace {

HealthReport some_report() {
    HealthReport report;
    report.checks.push_back({.layer = HealthLayer::device,
                             .name = "disk-write",
                             .node = "n-1",
                             .verdict = HealthVerdict::fail,
                             .measured = 5e6,
                             .expected = 60e6,
                             .unit = "bytes/s",
                             .source = "observe/health.tsv",
                             .detail = "64 MiB",
                             .fix = "another disk"});
    report.checks.push_back({.layer = HealthLayer::network,
                             .name = "link-bandwidth",
                             .node = "n-1",
                             .peer = "10.0.0.5:7411",
                             .verdict = HealthVerdict::fail,
                             .measured = 24e6,
                             .expected = 875e6,
                             .unit = "bytes/s",
                             .source = "--link-gbps 10; fails below 0.7 of it",
                             .detail = "there and back",
                             .fix = "ethtool eth0"});
    report.checks.push_back({.layer = HealthLayer::network,
                             .name = "link-latency",
                             .peer = "10.0.0.5:7411",
                             .verdict = HealthVerdict::pass,
                             .measured = 42e-6,
                             .expected = 0.01,
                             .unit = "s"});
    report.checks.push_back({.layer = HealthLayer::device, .name = "gpu-count", .detail = "no GPU is declared"});
    return report;
}

// The network is told first and blamed first; what failed has its line, who says so and the fix; lines fit 100 columns.
TEST(HealthText, TheNetworkComesFirst) {
    const HealthReport report = some_report();
    ASSERT_NE(to_blame(report), nullptr);
    EXPECT_EQ(to_blame(report)->name, "link-bandwidth");
    const std::string text = health_text(report, {.node = "n-1", .level = "quick", .seconds = 2.1}, Style{});
    EXPECT_LT(text.find("network"), text.find("device"));
    for (const char* part : {"192 Mbit/s", "at least 7 Gbit/s expected", "--link-gbps 10", "fix: ethtool eth0", "FAIL",
                             "5 MB/s", "42 us", "at most 10 ms expected", "gpu-count: no GPU is declared"})
        EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
    for (const std::string_view line : split_lines(text)) EXPECT_LE(display_width(line), 100U) << line;
}

// Programs get every check with its figures in basic units, and who is to blame.
TEST(HealthText, JsonHasEverything) {
    const std::string json = health_json(some_report(), {.node = "n-1", .level = "quick", .seconds = 2.1}).dump();
    for (const char* part : {"\"verdict\": \"fail\"", "\"measured\": 24000000", "\"layer\": \"network\"",
                             "\"to_blame\"", "\"verdict\": \"skipped\""})
        EXPECT_NE(json.find(part), std::string::npos) << part << " is not in\n" << json;
}

// A warning is blamed only where nothing failed; where all is well, nothing is.
TEST(HealthText, WarningsComeAfterFailures) {
    HealthReport report;
    report.checks.push_back({.layer = HealthLayer::network, .name = "a", .verdict = HealthVerdict::warn});
    report.checks.push_back({.layer = HealthLayer::model, .name = "b", .verdict = HealthVerdict::pass});
    EXPECT_EQ(to_blame(report)->name, "a");
    report.checks.push_back({.layer = HealthLayer::model, .name = "c", .verdict = HealthVerdict::fail});
    EXPECT_EQ(to_blame(report)->name, "c");
    report.checks.clear();
    EXPECT_EQ(to_blame(report), nullptr);
}

}  // namespace
}  // namespace stoker

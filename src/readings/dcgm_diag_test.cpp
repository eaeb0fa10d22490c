// A GPU that DCGM fails must not be passed because its words were broken into two lines.
#include "readings/tool_test_help.h"

namespace stoker {
namespace {

using samples::error_of;
using samples::read;
using samples::verdict_of;

TEST(DcgmDiag, JsonNamesTestGpuAndWords) {
    const ToolReading reading = read(samples::kDcgmJson);
    EXPECT_EQ(reading.verdict(), HealthVerdict::fail);
    ASSERT_EQ(reading.checks.size(), 3U);
    EXPECT_EQ(reading.checks[0].verdict, HealthVerdict::warn);
    EXPECT_NE(reading.checks[0].fix.find("nvidia-smi -pm 1"), std::string::npos);
    EXPECT_EQ(reading.checks[1].peer, "GPU 1");
    EXPECT_NE(reading.checks[1].detail.find("row remapping failed"), std::string::npos);
    EXPECT_EQ(reading.fact("dcgm")->value, "3.3.8");
    EXPECT_EQ(reading.notes[2].line, 10U);
}

TEST(DcgmDiag, JsonOfVersion4) {
    const ToolReading reading = read(
        R"({"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [{"name": "memory", "results": [{"entity_group": "GPU", "entity_group_id": 1, "entity_id": 0, "status": "Pass"}, {"entity_group": "GPU", "entity_group_id": 1, "entity_id": 3, "status": "Fail", "warnings": [{"error_id": 83, "warning": "Detected 3 ECC errors"}]}]}]}]}})");
    EXPECT_EQ(reading.verdict(), HealthVerdict::fail);
    EXPECT_EQ(reading.checks[0].peer, "GPU 3");
    EXPECT_NE(reading.checks[0].detail.find("3 ECC errors"), std::string::npos);
}

TEST(DcgmDiag, TheTableWithItsBrokenLines) {
    const ToolReading reading = read(samples::kDcgmText);
    EXPECT_EQ(reading.verdict(), HealthVerdict::fail);
    EXPECT_EQ(reading.checks[0].peer, "GPU 1");
    EXPECT_NE(reading.checks[0].detail.find("42 PCIe replays per minute, which is above the limit of 8"),
              std::string::npos)
        << reading.checks[0].detail;
    EXPECT_EQ(reading.checks[1].detail, "3 tests passed, 1 did not run");
    EXPECT_EQ(reading.fact("driver")->value, "535.161.08");
}

TEST(DcgmDiag, TheTableOfVersion4) {
    const ToolReading reading = read(R"(Successfully ran diagnostic for group.
+---------------------------+------------------------------------------------+
| Diagnostic                | Result                                         |
+===========================+================================================+
|-----  Metadata  ----------+------------------------------------------------|
| DCGM Version              | 4.0.0                                          |
|-----  Deployment  --------+------------------------------------------------|
| software                  | Pass                                           |
|                           | GPU0: Pass                                     |
|                           | GPU1: Pass                                     |
+-----  Hardware  ----------+------------------------------------------------+
| memory                    | Fail                                           |
|                           | GPU0: Pass                                     |
|                           | GPU1: Fail                                     |
| Warning: GPU1             | Detected ECC errors                            |
+---------------------------+------------------------------------------------+
)");
    EXPECT_EQ(reading.verdict(), HealthVerdict::fail);
    bool named = false;
    for (const HealthCheck& check : reading.checks)
        named = named || (check.peer == "GPU 1" && check.detail.find("ECC errors") != std::string::npos);
    EXPECT_TRUE(named);
}

// Nothing ran: that is no pass.
TEST(DcgmDiag, SkippedIsNotPassed) {
    EXPECT_EQ(
        read(
            R"({"DCGM GPU Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [{"name": "GPU Memory", "results": [{"gpu_ids": "0", "status": "SKIP"}]}]}]}})")
            .verdict(),
        HealthVerdict::skipped);
    EXPECT_NE(error_of(R"({"DCGM GPU Diagnostic": {"version": "4.2"}})", Tool::dcgm_json).find("no test"),
              std::string::npos);
    EXPECT_NE(error_of(samples::kDcgmText.substr(0, 900), Tool::dcgm_text).find("file:"), std::string::npos);
}

}  // namespace
}  // namespace stoker

// What doctor --read prints is read on a terminal of 100 columns and by scripts: nothing is lost, nothing runs over.
#include "doctor/tool_text.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace stoker {
namespace {

ToolReport small_report() {
    ToolReport report;
    ToolReading reading{.tool = Tool::ib_bandwidth, .file = "ib.txt"};
    reading.notes = {
        {20, 1, HealthLayer::network, HealthVerdict::fail, "94.1 of 380 Gbit/s on mlx5_3", std::string(150, 'x')},
        {30, 2, HealthLayer::device, HealthVerdict::fail, "a taint", "tolerations:\n- key: sku\n  operator: Exists"}};
    reading.checks = {{.layer = HealthLayer::network,
                       .name = "ib-bandwidth",
                       .verdict = HealthVerdict::fail,
                       .measured = 1,
                       .expected = 2}};
    for (int i = 0; i < 40; ++i) reading.notes.push_back({31, 1, HealthLayer::device, HealthVerdict::pass, "well", ""});
    report.readings = {reading};
    report.conclusion = "the network is at fault: 94.1 of 380 Gbit/s on mlx5_3";
    report.open = {"whether the code is well"};
    return report;
}

TEST(ToolText, NotesConclusionAndWhatIsOpen) {
    const std::string text = tool_text(small_report(), {});
    EXPECT_NE(text.find("20:1     FAIL network  94.1 of 380"), std::string::npos) << text;
    EXPECT_NE(text.find("- key: sku\n"), std::string::npos) << text;
    EXPECT_NE(text.find("and 28 more that passed"), std::string::npos) << text;
    EXPECT_NE(text.find("not concluded\n  whether the code is well\n"), std::string::npos) << text;
}

TEST(ToolText, JsonHasEverything) {
    const std::string json = tool_json_answer(small_report()).dump();
    for (const char* part :
         {"\"verdict\": \"fail\"", "\"tool\": \"ib_write_bw\"", "\"line\": 20", "\"measured\": 1", "\"open\""})
        EXPECT_NE(json.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace stoker

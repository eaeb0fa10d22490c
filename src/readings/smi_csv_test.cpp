// Scripts save the CSV: its columns are known by their names, and a lost GPU is not taken for an idle one.
#include "readings/tool_test_help.h"

namespace stoker {
namespace {

using samples::error_of;
using samples::of_size;
using samples::read;
using samples::verdict_of;
using samples::worst;

TEST(SmiCsv, ColumnsAreReadByName) {
    const ToolReading reading = read(samples::kSmiCsv);
    EXPECT_EQ(reading.fact("driver")->value, "535.161.08");
    EXPECT_EQ(verdict_of(reading, "gpu-answers"), HealthVerdict::fail);
    EXPECT_EQ(worst(reading, "gpu-answers")->peer, "GPU 1");
    const ToolReading units = read("name, memory.total [MiB]\nTesla T4, 15360\n", of_size("Standard_NC4as_T4_v3"));
    EXPECT_EQ(units.verdict(), HealthVerdict::pass);
}

TEST(SmiCsv, ARowThatIsShortIsAnErrorWithItsLine) {
    EXPECT_NE(error_of("name, memory.total [MiB]\nTesla T4\n", Tool::nvidia_smi_csv).find("file:2:1"),
              std::string::npos);
    error_of("name, memory.total [MiB]\n", Tool::nvidia_smi_csv);
}

TEST(SmiCsv, OtherTablesAreNotTaken) {
    EXPECT_TRUE(is_smi_csv_header("timestamp, index, utilization.gpu [%], power.draw [W]"));
    EXPECT_FALSE(is_smi_csv_header("name, count"));
    EXPECT_FALSE(is_smi_csv_header("name, memory.total, price"));
    EXPECT_FALSE(is_smi_csv_header(""));
}

}  // namespace
}  // namespace stoker

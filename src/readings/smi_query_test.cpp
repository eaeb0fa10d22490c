// nvidia-smi -q is what people paste into tickets; as driver 580.159.04 wrote it of an H200 (27 November 2026), its
// serial number and identifiers invented.
#include <fstream>
#include <iterator>

#include "base/text.h"
#include "readings/tool_test_help.h"

namespace stoker {
namespace {

using samples::error_of;
using samples::of_size;
using samples::read;
using samples::replaced;
using samples::verdict_of;
using samples::worst;

std::string real(const char* name) {
    std::ifstream file(std::string("tests/gpu/h200/") + name, std::ios::binary);
    EXPECT_TRUE(file) << name;
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST(SmiQuery, AHealthyBoardPassesAsInTheXml) {
    const std::string text = real("nvidia-smi-q.txt");
    EXPECT_EQ(recognise(text), Tool::nvidia_smi_query);
    const ToolReading reading = read(text), xml = read(real("nvidia-smi-q.xml"));
    EXPECT_EQ(reading.fact("driver")->value, "580.159.04");
    EXPECT_EQ(reading.fact("model")->value, "NVIDIA H200");
    EXPECT_EQ(reading.conclusion, xml.conclusion);
    ASSERT_EQ(reading.checks.size(), xml.checks.size());
    for (std::size_t i = 0; i < xml.checks.size(); ++i) {
        EXPECT_EQ(reading.checks[i].name, xml.checks[i].name);
        EXPECT_EQ(reading.checks[i].verdict, xml.checks[i].verdict) << xml.checks[i].name;
    }
    EXPECT_EQ(verdict_of(reading, "gpu-faults"), HealthVerdict::pass);
}

TEST(SmiQuery, EachFaultIsFoundInItsPlace) {
    const std::string well = real("nvidia-smi-q.txt");
    struct Case {
        const char *what, *with, *check;
        HealthVerdict verdict;
    };
    for (const Case& each : {
             Case{"            DRAM Uncorrectable                         : 0",
                  "            DRAM Uncorrectable                         : 2", "gpu-ecc", HealthVerdict::fail},
             Case{"Remapping Failure Occurred                     : No",
                  "Remapping Failure Occurred                     : Yes", "gpu-remapping", HealthVerdict::fail},
             Case{"HW Thermal Slowdown                        : Not Active",
                  "HW Thermal Slowdown                        : Active", "gpu-clocks", HealthVerdict::warn},
             Case{"                Current                                : 16x",
                  "                Current                                : 4x", "gpu-pcie", HealthVerdict::warn},
             Case{"        Total                                          : 143771 MiB",
                  "        Total                                          : GPU is lost", "gpu-answers",
                  HealthVerdict::fail},
         })
        EXPECT_EQ(verdict_of(read(replaced(well, each.what, each.with)), each.check), each.verdict) << each.check;
    EXPECT_EQ(verdict_of(read(well, of_size("Standard_ND96isr_H200_v5")), "gpu-count"), HealthVerdict::fail);
    error_of(well.substr(0, 60), Tool::nvidia_smi_query);
}

// Who reads an H200 is not told to call it a node of H100s: of the catalogue's sizes those with this board are named.
TEST(SmiQuery, TheSizeThatItAsksForHasThisBoard) {
    for (const char* name : {"nvidia-smi.txt", "nvidia-smi-q.txt", "nvidia-smi-q.xml", "query.csv"}) {
        const std::string text = real(name);
        SCOPED_TRACE(name);
        const ToolReading reading = read(text, {.size = "", .catalog = &samples::catalog()});
        const HealthCheck* count = worst(reading, "gpu-count");
        ASSERT_NE(count, nullptr);
        EXPECT_NE(lower(count->fix).find("h200"), std::string::npos) << count->fix;
        EXPECT_EQ(lower(count->fix).find("h100"), std::string::npos) << count->fix;
    }
}

TEST(SmiTopology, OneBoardHasNoLinksToJudge) {
    const ToolReading reading = read(real("topo.txt"));
    EXPECT_EQ(reading.tool, Tool::smi_topology);
    EXPECT_EQ(reading.verdict(), HealthVerdict::skipped);
}

// A log in which nothing is wrong is an answer too: who saved it is told so, and not that it is not recognised.
TEST(KernelLog, OfAMachineThatIsWellSaysSo) {
    const std::string log = real("dmesg.txt");
    EXPECT_EQ(recognise(log), Tool::kernel_log);
    const ToolReading reading = read(log);
    EXPECT_EQ(verdict_of(reading, "gpu-xid"), HealthVerdict::pass);
    EXPECT_EQ(reading.fact("driver")->value, "580.159.04");
    const ToolReading none = read("[    0.000000] Linux version 6.1.0\n[    1.0] usb 1-1: new device\n");
    EXPECT_EQ(none.tool, Tool::kernel_log);
    EXPECT_EQ(verdict_of(none, "gpu-xid"), HealthVerdict::skipped);
}

}  // namespace
}  // namespace stoker

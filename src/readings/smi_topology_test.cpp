// One pair of GPUs without its links makes every collective as slow as that pair.
#include "readings/tool_test_help.h"

namespace stoker {
namespace {

using samples::error_of;
using samples::of_size;
using samples::read;
using samples::verdict_of;
using samples::worst;

TEST(SmiTopology, AGpuWithFewerLinksIsFound) {
    const ToolReading reading = read(samples::kTopology);
    EXPECT_EQ(verdict_of(reading, "gpu-links"), HealthVerdict::fail);
    EXPECT_NE(worst(reading, "gpu-links")->detail.find("GPU0-GPU3 is NV17"), std::string::npos)
        << worst(reading, "gpu-links")->detail;
    EXPECT_EQ(verdict_of(reading, "nic-links"), HealthVerdict::pass);
}

TEST(SmiTopology, PcieWhereNvlinkIsExpectedFails) {
    const std::string_view pcie =
        "\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\nGPU0\t X \tPHB\tSYS\t0-47\nGPU1\tPHB\t X \tSYS\t0-47\nmlx5_0\tSYS\tSYS\t "
        "X \t\n";
    EXPECT_EQ(verdict_of(read(pcie, of_size("Standard_ND96isr_H100_v5")), "gpu-links"), HealthVerdict::fail);
    EXPECT_EQ(verdict_of(read(pcie, of_size("Standard_ND96isr_H100_v5")), "nic-count"), HealthVerdict::fail);
    EXPECT_EQ(verdict_of(read(pcie), "gpu-links"), HealthVerdict::skipped);
    EXPECT_EQ(verdict_of(read(pcie), "nic-links"), HealthVerdict::warn);
}

TEST(SmiTopology, BridgedPairsAreWell) {
    const std::string_view pairs =
        "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\nGPU0\t X \tNV12\tSYS\tSYS\t0-47\nGPU1\tNV12\t X \tSYS\tSYS\t0-47\n"
        "GPU2\tSYS\tSYS\t X \tNV12\t0-47\nGPU3\tSYS\tSYS\tNV12\t X \t0-47\n";
    EXPECT_EQ(verdict_of(read(pairs), "gpu-links"), HealthVerdict::pass);
    EXPECT_EQ(verdict_of(read(pairs, of_size("Standard_NC96ads_A100_v4")), "gpu-links"), HealthVerdict::pass);
}

TEST(SmiTopology, MissingRowsAndColumnsAreErrors) {
    EXPECT_NE(error_of("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \n", Tool::smi_topology).find("1 of 2 columns"),
              std::string::npos);
    EXPECT_NE(error_of("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0-3\n", Tool::smi_topology).find("breaks off"),
              std::string::npos);
}

}  // namespace
}  // namespace stoker

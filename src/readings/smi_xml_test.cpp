// The XML has what the table has not: slowed clocks, lost PCIe lanes, rows that wait to be remapped.
#include "readings/tool_test_help.h"

namespace stoker {
namespace {

using samples::error_of;
using samples::of_size;
using samples::read;
using samples::verdict_of;
using samples::worst;

TEST(SmiXml, FaultsOfOneGpuAreFound) {
    const ToolReading reading = read(samples::kSmiXml);
    EXPECT_EQ(reading.fact("driver")->value, "535.161.08");
    EXPECT_EQ(reading.fact("gpus")->value, "2");
    for (const char* name : {"gpu-clocks", "gpu-pcie", "gpu-remapping"}) {
        EXPECT_EQ(verdict_of(reading, name), HealthVerdict::warn) << name;
        EXPECT_EQ(worst(reading, name)->peer, "GPU 1") << name;
    }
    EXPECT_EQ(worst(reading, "gpu-clocks")->detail, "GPU 1 is slowed down: hw_thermal_slowdown");
    for (const ToolNote& note : reading.notes)
        if (note.message == worst(reading, "gpu-pcie")->detail) {
            EXPECT_EQ(note.line, 26U);
        }
}

TEST(SmiXml, TheSizeIsHeldAgainstIt) {
    EXPECT_EQ(verdict_of(read(samples::kSmiXml, of_size("Standard_ND96isr_H100_v5")), "gpu-count"),
              HealthVerdict::fail);
    EXPECT_EQ(verdict_of(read(samples::kSmiXml, of_size("Standard_ND96isr_H100_v5")), "gpu-memory"),
              HealthVerdict::pass);
    EXPECT_EQ(verdict_of(read(samples::kSmiXml, of_size("Standard_NC4as_T4_v3")), "gpu-model"), HealthVerdict::fail);
}

TEST(SmiXml, WhatBreaksOffOrDefinesMoreIsRefused) {
    EXPECT_NE(error_of(samples::kSmiXml.substr(0, 2000), Tool::nvidia_smi_xml).find("file:"), std::string::npos);
    error_of(R"(<!DOCTYPE nvidia_smi_log [<!ENTITY a "b">]><nvidia_smi_log></nvidia_smi_log>)", Tool::nvidia_smi_xml);
    EXPECT_EQ(
        verdict_of(read("<?xml version=\"1.0\" ?><nvidia_smi_log><attached_gpus>0</attached_gpus></nvidia_smi_log>"),
                   "gpu-driver"),
        HealthVerdict::fail);
}

}  // namespace
}  // namespace stoker

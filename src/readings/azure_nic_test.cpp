#include <gtest/gtest.h>

#include "readings/tool_reader.h"
#include "readings/tool_test_help.h"

namespace stoker {
namespace {

// Whoever asks Azure whether it is on learns which interface lacks it, whichever way it was asked.
TEST(AzureNic, AcceleratedNetworkingThatIsOffFails) {
    const char* shown = R"({"name": "nic-1", "enableAcceleratedNetworking": false,
        "virtualMachine": {"id": "/subscriptions/x/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/train-0"}})";
    const char* raw = R"({"value": [{"name": "nic-0", "properties": {"enableAcceleratedNetworking": true}},
        {"name": "nic-1", "properties": {"enableAcceleratedNetworking": false}}]})";
    for (const char* text : {shown, raw}) {
        EXPECT_EQ(recognise(text), Tool::azure_nic);
        const auto reading = read_tool_output(Tool::azure_nic, text, "nic.json", {});
        ASSERT_TRUE(reading.ok()) << reading.error().text();
        EXPECT_EQ(reading->verdict(), HealthVerdict::fail);
        EXPECT_NE(reading->conclusion.find("nic-1"), std::string::npos) << reading->conclusion;
    }
    const auto well =
        read_tool_output(Tool::azure_nic, R"([{"name": "n", "enableAcceleratedNetworking": true}])", "n", {});
    ASSERT_TRUE(well.ok());
    EXPECT_EQ(well->verdict(), HealthVerdict::pass);
}

TEST(AzureNic, WhatSaysNeitherIsRefusedAtItsPlace) {
    for (const char* text : {R"({"name": "n", "enableAcceleratedNetworking": null})", "[]",
                             R"([{"name": "n"}, {"enableAcceleratedNetworking": true}])"})
        EXPECT_FALSE(read_tool_output(Tool::azure_nic, text, "nic.json", {}).ok()) << text;
}

}  // namespace
}  // namespace stoker

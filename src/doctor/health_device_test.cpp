#include "doctor/health_device.h"

#include <gtest/gtest.h>

#include <chrono>

namespace stoker {
namespace {

// Of a node that declares nothing, processors and memory are told and not judged, and no program is started for GPUs.
TEST(HealthDevice, NothingDeclaredStartsNothing) {
    HealthTarget target;
    target.program = [](const std::vector<std::string>&, Deadline) -> Result<ProgramAnswer> {
        ADD_FAILURE() << "asked for GPUs that nobody declared";
        return ProgramAnswer{};
    };
    Machine machine;
    machine.memory = Bytes(8e9);
    const auto parts =
        look_at_parts(target, machine, HealthLevel::quick, std::chrono::steady_clock::now() + std::chrono::minutes(1));
    ASSERT_EQ(parts.size(), 3U);
    for (const DeviceCheck& part : parts) {
        EXPECT_FALSE(part.check.measured.has_value()) << part.check.name;
        EXPECT_FALSE(part.check.detail.empty()) << part.check.name;
    }
}

// What the size must have goes before what the node says of itself.
TEST(HealthDevice, TheSizeGoesFirst) {
    HealthTarget target;
    target.size = "Standard_HB120rs_v3";
    target.node.cpu_milli = 4000;
    Machine machine;
    machine.logical_cores = machine.allowed_cores = 120;
    const auto parts =
        look_at_parts(target, machine, HealthLevel::quick, std::chrono::steady_clock::now() + std::chrono::minutes(1));
    for (const DeviceCheck& part : parts)
        if (part.check.name == "processors") {
            ASSERT_TRUE(part.expected.has_value());
            EXPECT_EQ(part.expected->value, 120);
            EXPECT_EQ(part.check.measured, 120);
        }
}

}  // namespace
}  // namespace stoker

#include "observe/gpu/rank_gpus.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

using M = GpuMetric;

std::optional<double> value_of(const std::vector<GpuReading>& readings, std::string_view name) {
    for (const auto& value : readings.at(0).values)
        if (value.first == name) return value.second;
    return std::nullopt;
}

GpuView view_of(double held_s, double read_at_s) {
    GpuDevice device;
    device.state = GpuState::ok, device.uuid = "GPU-1", device.index = 0;
    device.values[index_of(M::time_hw_thermal)] = held_s;
    device.read_at_s[index_of(M::time_hw_thermal)] = read_at_s;
    device.values[index_of(M::reason_hw_thermal)] = 0;
    GpuView view;
    view.devices.push_back(device);
    return view;
}

// A counter that is dear to ask is read every tenth second: nine looks would say that nothing holds the clock, and the
// tenth that everything does.
TEST(GpuReadings, ARateIsOverTheTimeBetweenTwoAnswers) {
    GpuReadings readings;
    EXPECT_EQ(value_of(readings.of(view_of(100, 1000), 1000.2), "gpu_held_heat"), 0.0);  // by the reason at this moment
    EXPECT_EQ(value_of(readings.of(view_of(100, 1000), 1001.2), "gpu_held_heat"), 0.0);
    EXPECT_NEAR(value_of(readings.of(view_of(104, 1010), 1010.9), "gpu_held_heat").value_or(-1), 0.4, 1e-9);
    EXPECT_NEAR(value_of(readings.of(view_of(104, 1010), 1015.9), "gpu_held_heat").value_or(-1), 0.4, 1e-9);
    EXPECT_NEAR(value_of(readings.of(view_of(104, 1020), 1020.9), "gpu_held_heat").value_or(-1), 0, 1e-9);
}

TEST(GpuReadings, WithoutATimeOfItsOwnACounterIsAsOldAsTheLook) {
    GpuReadings readings;
    readings.of(view_of(100, 0), 1000);
    EXPECT_NEAR(value_of(readings.of(view_of(101, 0), 1002), "gpu_held_heat").value_or(-1), 0.5, 1e-9);
}

}  // namespace
}  // namespace stoker

#include "observe/gpu/sysfs_gpus.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace stoker {
namespace {

namespace fs = std::filesystem;

// Files as the kernel's documentation has them (gpu/amdgpu/thermal, driver-misc, ras;
// ABI/testing/sysfs-driver-intel-*).
class SysfsGpusTest : public ::testing::Test {
protected:
    void SetUp() override {
        root_ = fs::temp_directory_path() / ("stoker-sysfs-" + std::to_string(::getpid()));
        fs::remove_all(root_);
        file("card0-DP-1/status", "connected");
        // A part of the processor, and another vendor's: neither is ours to tell.
        file("card7/device/uevent", "DRIVER=i915\nPCI_ID=8086:A7A0\nPCI_SLOT_NAME=0000:00:02.0\n");
        file("card8/device/uevent", "DRIVER=nvidia\nPCI_ID=10DE:2330\nPCI_SLOT_NAME=0000:1b:00.0\n");
    }
    void TearDown() override { fs::remove_all(root_); }
    void file(const std::string& path, const std::string& text) {
        const fs::path at = root_ / "sys/class/drm" / path;
        fs::create_directories(at.parent_path());
        std::ofstream(at) << text << '\n';
    }
    void mi300x() {
        const std::string device = "card1/device/", hwmon = device + "hwmon/hwmon4/";
        file(device + "uevent", "DRIVER=amdgpu\nPCI_CLASS=38000\nPCI_ID=1002:74A1\nPCI_SLOT_NAME=0000:43:00.0\n");
        file(device + "product_name", "AMD Instinct MI300X OAM");
        file(device + "unique_id", "a1b2c3d4e5f60718");
        file(device + "gpu_busy_percent", "97");
        file(device + "mem_busy_percent", "41");
        file(device + "mem_info_vram_total", "206141652992");
        file(device + "mem_info_vram_used", "103070826496");
        file(device + "current_link_speed", "32.0 GT/s PCIe");
        file(device + "max_link_speed", "32.0 GT/s PCIe");
        file(device + "current_link_width", "8");
        file(device + "max_link_width", "16");
        file(device + "pp_dpm_sclk", "0: 132Mhz\n1: 1745Mhz *\n2: 2100Mhz");
        file(device + "pcie_replay_count", "3");
        file(device + "ras/umc_err_count", "ue: 1\nce: 12");
        file(hwmon + "name", "amdgpu");
        file(hwmon + "temp1_label", "junction");
        file(hwmon + "temp1_input", "71000");
        file(hwmon + "temp1_crit", "100000");
        file(hwmon + "temp2_label", "mem");
        file(hwmon + "temp2_input", "58000");
        file(hwmon + "power1_input", "702000000");
        file(hwmon + "power1_cap", "750000000");
        file(hwmon + "freq1_label", "sclk");
        file(hwmon + "freq1_input", "1745000000");
    }
    void intel(const std::string& card, const std::string& driver, double energy_uj, double idle_ms) {
        const std::string device = card + "/device/", hwmon = device + "hwmon/hwmon5/";
        const bool xe = driver == "xe";
        const std::string gt = xe ? device + "tile0/gt0/" : card + "/gt/gt0/";
        file(device + "uevent",
             "DRIVER=" + driver + "\nPCI_ID=8086:0BD5\nPCI_SLOT_NAME=0000:" + (xe ? "4d" : "3a") + ":00.0\n");
        file(gt + (xe ? "freq0/act_freq" : "rps_act_freq_mhz"), "1550");
        file(gt + (xe ? "freq0/rp0_freq" : "rps_RP0_freq_mhz"), "1600");
        file(gt + (xe ? "gtidle/idle_residency_ms" : "rc6_residency_ms"), std::to_string(static_cast<long>(idle_ms)));
        file(hwmon + "name", driver);
        file(hwmon + "energy1_input", std::to_string(static_cast<long>(energy_uj)));
        file(hwmon + "power1_max", "600000000");
        if (xe) file(hwmon + "temp2_label", "pkg"), file(hwmon + "temp2_input", "49000");
    }
    fs::path root_;
};

using M = GpuMetric;

// Every figure in base units; the screens, NVIDIA's boards and the processor's own graphics are left out.
TEST_F(SysfsGpusTest, AmdIsReadInBaseUnits) {
    EXPECT_FALSE(has_sysfs_gpus(root_));
    mi300x();
    EXPECT_TRUE(has_sysfs_gpus(root_));
    const auto devices = SysfsGpus(root_).read(1);
    ASSERT_EQ(devices.size(), 1U);
    const GpuDevice& d = devices[0];
    EXPECT_EQ(d.name, "AMD Instinct MI300X OAM");
    EXPECT_EQ(d.uuid, "amd-a1b2c3d4e5f60718");
    EXPECT_EQ(d.pci, "0000:43:00.0");
    EXPECT_EQ(d.driver, "amdgpu");
    EXPECT_DOUBLE_EQ(*d.at(M::utilization), 0.97);
    EXPECT_EQ(d.at(M::memory_size), 206141652992.0);
    EXPECT_EQ(d.at(M::memory_free), 103070826496.0);
    EXPECT_EQ(d.at(M::temperature_gpu), 71.0);
    EXPECT_EQ(d.at(M::temperature_memory), 58.0);
    EXPECT_EQ(d.at(M::limit_slowdown), 100.0);
    EXPECT_EQ(d.at(M::power_instant), 702.0);
    EXPECT_EQ(d.at(M::power_limit), 750.0);
    EXPECT_EQ(d.at(M::clock_sm), 1745e6);
    EXPECT_EQ(d.at(M::clock_max_sm), 2100e6);
    EXPECT_EQ(d.at(M::pcie_generation), 5.0);
    EXPECT_EQ(d.at(M::pcie_width), 8.0);
    EXPECT_EQ(d.at(M::pcie_max_width), 16.0);
    EXPECT_EQ(d.at(M::ecc_uncorrected), 1.0);
    EXPECT_EQ(d.at(M::ecc_corrected), 12.0);
    EXPECT_EQ(d.at(M::pcie_replays), 3.0);
    // No file, no figure: never 0.
    EXPECT_FALSE(d.at(M::power_average).has_value());
    EXPECT_FALSE(d.at(M::tensor_active).has_value());
    EXPECT_FALSE(d.at(M::limit_memory).has_value());
}

// Intel counts energy and time asleep: power and use come with the second reading, and not from a counter that fell.
TEST_F(SysfsGpusTest, IntelRatesComeWithTheSecondReading) {
    for (const std::string driver : {"xe", "i915"}) {
        fs::remove_all(root_);
        SysfsGpus gpus(root_);
        intel("card2", driver, 5e6, 1000);
        const auto first = gpus.read(10);
        ASSERT_EQ(first.size(), 1U) << driver;
        EXPECT_EQ(first[0].at(M::clock_sm), 1550e6);
        EXPECT_EQ(first[0].at(M::clock_max_sm), 1600e6);
        EXPECT_EQ(first[0].at(M::power_limit), 600.0);
        EXPECT_EQ(first[0].at(M::energy), 5.0);
        EXPECT_FALSE(first[0].at(M::utilization).has_value());
        EXPECT_FALSE(first[0].at(M::power_average).has_value());
        EXPECT_EQ(first[0].at(M::temperature_gpu).has_value(), driver == "xe");
        intel("card2", driver, 605e6, 1500);
        const auto second = gpus.read(12);
        EXPECT_DOUBLE_EQ(*second[0].at(M::power_average), 300.0);
        EXPECT_DOUBLE_EQ(*second[0].at(M::utilization), 0.75);
        intel("card2", driver, 1e6, 0);
        const auto fallen = gpus.read(14);
        EXPECT_FALSE(fallen[0].at(M::power_average).has_value());
        EXPECT_FALSE(fallen[0].at(M::utilization).has_value());
    }
}

// What cannot be a number is none, and a card that goes is gone.
TEST_F(SysfsGpusTest, NonsenseIsAbsent) {
    mi300x();
    file("card1/device/gpu_busy_percent", "N/A");
    file("card1/device/ras/umc_err_count", "");
    file("card1/device/pp_dpm_sclk", "0 1745");
    SysfsGpus gpus(root_);
    const auto devices = gpus.read(1);
    ASSERT_EQ(devices.size(), 1U);
    for (const M metric : {M::utilization, M::ecc_corrected, M::clock_max_sm})
        EXPECT_FALSE(devices[0].at(metric).has_value());
    fs::remove_all(root_ / "sys/class/drm/card1");
    EXPECT_TRUE(gpus.read(2).empty());
}

}  // namespace
}  // namespace stoker

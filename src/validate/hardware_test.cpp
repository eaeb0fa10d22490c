// A printed device name that is taken for another device moves every figure of its rows.
#include "validate/hardware.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>

#include "sizing/collectives.h"
#include "validate/row.h"

namespace stoker::validate {
namespace {

class HardwareTest : public ::testing::Test {
protected:
    HardwareTest() : catalog_(*Catalog::embedded()), hardware_(catalog_) {}
    std::string name(std::string_view printed, double memory_gb = 0) {
        const NamedDevice& found = hardware_.find(printed, memory_gb);
        return found.accelerator < 0 ? found.refused
                                     : catalog_.accelerators()[static_cast<std::size_t>(found.accelerator)].name;
    }
    Catalog catalog_;
    Hardware hardware_;
};

// "Out of memory" on 40 GB is no news of a row that says A100.
TEST_F(HardwareTest, ANameOfSeveralDevicesMayMeanTheLargest) {
    EXPECT_NEAR(hardware_.find("A100", 0).most_memory, 85.9e9, 1e9);
    EXPECT_EQ(hardware_.find("A100", 40).most_memory, 0);
    EXPECT_EQ(hardware_.find("A100-40GB", 0).most_memory, 0);
    EXPECT_GE(hardware_.most_memory(), 180e9);
}

TEST_F(HardwareTest, VariantsArePartOfTheName) {
    EXPECT_EQ(name("A100-80GB"), "A100-SXM-80GB");
    EXPECT_EQ(name("A100-40GB-PCIe"), "A100-PCIe-40GB");
    EXPECT_EQ(name("A100", 80), "A100-SXM-80GB");
    EXPECT_EQ(name("H100 80GB HBM3"), "H100-SXM");
    EXPECT_EQ(name("H100-PCIe"), "H100-PCIe");
    EXPECT_EQ(name("V100-32GB"), "V100-SXM2-32GB");
    EXPECT_EQ(name("NVIDIA B200-SXM-180GB"), "B200-SXM");
    EXPECT_EQ(name("Photon 9"), "unknown_device:Photon 9");
}

TEST_F(HardwareTest, WhatIsLeftOfANameIsSaid) {
    EXPECT_TRUE(hardware_.find("H100-SXM", 80).assumed.empty());
    EXPECT_FALSE(hardware_.find("NVIDIA A100-SXM-80GB-500W", 0).assumed.empty());
}

TEST_F(HardwareTest, ASliceIsAShareOfItsDevice) {
    const NamedDevice& slice = hardware_.find("NVIDIA A30 (4x1g.6gb MIG)", 0);
    EXPECT_DOUBLE_EQ(slice.part, 0.25);
    EXPECT_DOUBLE_EQ(slice.part_memory, 6e9);
}

TEST_F(HardwareTest, AdaptersOfANodeAreCounted) {
    EXPECT_DOUBLE_EQ(gbps_of_node("1600 Gb/s per node RoCE"), 1600);
    EXPECT_DOUBLE_EQ(gbps_of_node("4x100 Gb/s RoCE per node"), 400);
    EXPECT_DOUBLE_EQ(gbps_of_node("4x Omni-Path per node"), 400);
    EXPECT_DOUBLE_EQ(gbps_of_node("Storage: 2x ConnectX-6 IB HDR 200Gb/sec, Compute: 8x ConnectX-6 IB HDR 200Gb/s"),
                     1600);
    EXPECT_DOUBLE_EQ(gbps_of_node("InfiniBand"), 0);
    EXPECT_DOUBLE_EQ(gbps_of_node(""), 0);
}

TEST_F(HardwareTest, LinksFollowWhatTheRowSays) {
    const Cluster switched = hardware_.cluster({.gpu_model = "A100-80GB", .gpus_per_node = 8, .gpus = 16});
    EXPECT_EQ(switched.nodes, 2);
    EXPECT_EQ(switched.device->scale_up_domain, 8);
    EXPECT_FALSE(switched.assumed.empty()) << "the network between the nodes was not stated";
    const Cluster bus = hardware_.cluster({.gpu_model = "A100-80GB-PCIe", .intra_link = "PCIe 4.0", .gpus = 4});
    EXPECT_EQ(bus.nodes, 1);
    EXPECT_EQ(bus.device->scale_up_domain, 1);
    EXPECT_LT(bus.device->inside.bytes_per_second, 0.3 * switched.device->inside.bytes_per_second);
    // Boards of eight whose switch is that of the host: a row that says so was told at nine times their links' rate.
    const Cluster apart =
        hardware_.cluster({.gpu_model = "H100-SXM", .intra_link = "PCIe switch, no NVLink", .gpus = 8});
    EXPECT_EQ(apart.device->scale_up_domain, 1);
    const Cluster rack = hardware_.cluster({.gpu_model = "GB200", .gpus = 64});
    EXPECT_EQ(rack.nodes, 16);
    EXPECT_DOUBLE_EQ(rack.device->ranks_joined(), 72);
}

// A link that is told much faster than anybody's nccl-tests hides every communication behind the products.
// What a row leaves unsaid is assumed of its device, never taken from the rows that stand before it in the file: a
// source was told a third faster in a file of many than alone.
TEST_F(HardwareTest, ARowIsNotToldTheNetworkOfAnother) {
    const ClusterText silent = {.gpu_model = "V100-SXM2-32GB", .gpus_per_node = 8, .gpus = 32};
    const double alone = Hardware(*Catalog::embedded()).cluster(silent).device->across.bytes_per_second;
    hardware_.cluster({.gpu_model = "V100-SXM2-32GB", .inter_link = "8x400 Gb/s", .gpus_per_node = 8, .gpus = 64});
    EXPECT_EQ(hardware_.cluster(silent).device->across.bytes_per_second, alone);
}

TEST_F(HardwareTest, AllReducesInsideANodeRunAsPublished) {
    std::ifstream file(STOKER_SOURCE_DIR "/data/validation/collectives.csv");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const Csv csv = *Csv::read(text, "collectives.csv");
    const std::map<std::string, std::string> devices = {{"V100-SXM2-16GB x8", "V100-SXM2-16GB"},
                                                        {"A100 8-GPU node", "A100-SXM-80GB"},
                                                        {"H200 8-GPU node", "H200-SXM"},
                                                        {"B200 8-GPU node", "B200-SXM"},
                                                        {"MI355X x8", "MI355X"}};
    std::map<std::string, std::vector<double>> ratios;
    for (std::size_t i = 0; i < csv.rows(); ++i) {
        const Row row(csv, i);
        const double bytes = *row.number("bytes"), gpus = *row.number("gpus");
        if (row.text("op") != "all_reduce" || row.text("nodes") != "1" || bytes < 64e6) continue;
        for (const auto& [fabric, name] : devices) {
            if (!row.text("fabric").starts_with(fabric)) continue;
            const Cluster node = hardware_.cluster({.gpu_model = name, .gpus = gpus});
            const double seconds = all_reduce_s(*node.device, make_group(*node.device, gpus, 1), bytes);
            ratios[name].push_back(all_reduce_bytes(gpus, bytes) / seconds / (*row.number("busbw_GBps") * 1e9));
        }
    }
    ASSERT_EQ(ratios.size(), devices.size());
    for (auto& [name, all] : ratios) {
        std::sort(all.begin(), all.end());
        EXPECT_NEAR(std::log(all[all.size() / 2]), 0, 0.25) << name << " " << all[all.size() / 2];
        EXPECT_GT(all.front(), 0.7) << name;
        EXPECT_LT(all.back(), 1.6) << name;
    }
}

TEST_F(HardwareTest, ANumberOfDevicesThatFillsNoNodeStillHasOne) {
    const Cluster few = hardware_.cluster({.gpu_model = "A100-80GB", .gpus_per_node = 8, .gpus = 2});
    EXPECT_EQ(few.nodes, 1);
    EXPECT_DOUBLE_EQ(few.device->devices_per_node, 2);
    const Cluster odd = hardware_.cluster({.gpu_model = "A100-80GB", .gpus_per_node = 8, .gpus = 12});
    EXPECT_DOUBLE_EQ(odd.nodes * odd.device->devices_per_node, 12);
}

}  // namespace
}  // namespace stoker::validate

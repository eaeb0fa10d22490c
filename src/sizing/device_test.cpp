#include "sizing/device.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

Accelerator a100() {
    Accelerator gpu;
    gpu.name = "A100";
    gpu.memory = gpu.usable_memory = Bytes(85e9);
    gpu.memory_bandwidth = BytesPerSecond(2e12);
    const auto peak = [&gpu](Precision p, double flops) {
        gpu.peak[static_cast<std::size_t>(p)] = FlopsPerSecond(flops);
        gpu.supports |= 1u << static_cast<unsigned>(p);
    };
    peak(Precision::fp32, 19.5e12);
    peak(Precision::tf32, 156e12);
    peak(Precision::fp16, 312e12);
    peak(Precision::bf16, 312e12);
    gpu.measured_bf16 = FlopsPerSecond(271e12);
    gpu.scale_up_bandwidth = BytesPerSecond(300e9);
    gpu.host_bandwidth = BytesPerSecond(31.5e9);
    gpu.power = Watts(400);
    gpu.sm_count = 108;
    return gpu;
}

struct Fixture {
    Catalog catalog;
    int add(NodeType node) { return catalog.add_node_type(std::move(node)); }
};

// The published matmul ceiling counts for the precision it was measured in, and its share of the peak for the others.
TEST(MakeDevice, TakesMeasuredCeilings) {
    Fixture f;
    NodeType node;
    node.accelerator = f.catalog.add_accelerator(a100());
    node.accelerators = 8;
    node.link_inside = f.catalog.add_link({"nvlink", BytesPerSecond(232e9), Seconds(40e-6), Bytes(10e6), {}});
    node.link_across = f.catalog.add_link({"hdr", BytesPerSecond(22.5e9), Seconds(5e-6), Bytes(0.5e6), {}});
    node.rdma_gbps_per_gpu = 200;
    node.scale_up_domain = 8;
    const Device device = make_device(f.catalog, f.add(node), {});
    EXPECT_TRUE(device.gpu);
    EXPECT_NEAR(device.matmul(Precision::bf16), 271e12, 1e6);
    EXPECT_NEAR(device.matmul(Precision::fp16), 271e12, 1e6);
    EXPECT_NEAR(device.matmul(Precision::tf32), 156e12 * 271 / 312, 1e6);
    EXPECT_EQ(device.matmul(Precision::fp8), 0);
    EXPECT_EQ(device.devices_per_node, 8);
    EXPECT_FALSE(device.across_shared_by_node);
    EXPECT_EQ(device.rdma, 1);
    EXPECT_DOUBLE_EQ(device.inside.bytes_per_second, 232e9);
    EXPECT_TRUE(device.measured);
    EXPECT_FALSE(device.scale_up_crosses_nodes);
}

// A third of a GPU has a third of everything that is divided, and is one rank.
TEST(MakeDevice, ScalesFractions) {
    Fixture f;
    NodeType node;
    node.accelerator = f.catalog.add_accelerator(a100());
    node.accelerators = 1.0 / 3;
    node.accelerator_memory = Bytes(28e9);
    const Device device = make_device(f.catalog, f.add(node), {});
    EXPECT_NEAR(device.matmul(Precision::bf16), 271e12 / 3, 1e6);
    EXPECT_NEAR(device.memory_bytes_per_s, 2e12 / 3, 1);
    EXPECT_NEAR(device.sm_count, 36, 1e-9);
    EXPECT_LE(device.memory_bytes, 28e9);
    EXPECT_EQ(device.ranks_per_node(), 1);
}

// 64 physical Ice Lake cores at 2.8 GHz and 64 FLOP per cycle are 11.5 TFLOP/s of FP32, half of which is reached.
TEST(MakeDevice, DescribesCpus) {
    Fixture f;
    Cpu cpu;
    cpu.ghz = 2.8;
    cpu.fp32_flop_per_cycle = 64;
    cpu.memory_bandwidth_per_core = BytesPerSecond(5e9);
    NodeType node;
    node.cpu = f.catalog.add_cpu(cpu);
    node.vcpus = 128;
    node.memory = Bytes(512e9);
    node.ethernet_gbps = 12.5;
    node.link_across = f.catalog.add_link({"ethernet", BytesPerSecond(1.4e9), Seconds(30e-6), Bytes(5e4), {}});
    const Device device = make_device(f.catalog, f.add(node), {});
    EXPECT_FALSE(device.gpu);
    EXPECT_NEAR(device.peak(Precision::fp32), 11.47e12, 0.01e12);
    EXPECT_NEAR(device.matmul(Precision::fp32), 5.73e12, 0.01e12);
    EXPECT_EQ(device.matmul(Precision::bf16), 0);
    EXPECT_NEAR(device.memory_bytes_per_s, 320e9, 1);
    EXPECT_EQ(device.ranks_per_node(), 1);
    EXPECT_TRUE(device.across_shared_by_node);
}

// A rack whose switch joins nodes: 72 ranks talk without a NIC.
TEST(MakeDevice, JoinsNodesOfARack) {
    Fixture f;
    NodeType node;
    node.accelerator = f.catalog.add_accelerator(a100());
    node.accelerators = 4;
    node.scale_up_domain = 72;
    const Device device = make_device(f.catalog, f.add(node), {});
    EXPECT_TRUE(device.scale_up_crosses_nodes);
    EXPECT_EQ(device.ranks_joined(), 72);
}

}  // namespace
}  // namespace stoker

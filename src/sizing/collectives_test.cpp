#include "sizing/collectives.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

Device eight_per_node() {
    Device device;
    device.devices_per_node = 8;
    device.scale_up_domain = 8;
    device.inside = {230e9, 5e-6, 10e6};
    device.across = {22.5e9, 5e-6, 0.5e6};
    device.across_shared_by_node = false;
    return device;
}

// Thakur et al. 2005: whatever the algorithm, each rank sends 2 (n-1)/n S for an all-reduce and (n-1)/n S for a gather.
TEST(Collectives, CountBytes) {
    EXPECT_DOUBLE_EQ(all_reduce_bytes(8, 100), 175);
    EXPECT_DOUBLE_EQ(gather_bytes(8, 100), 87.5);
    EXPECT_EQ(all_reduce_bytes(1, 100), 0);
}

// For large messages the time is those bytes over the bus bandwidth; the latency disappears.
TEST(Collectives, LargeMessagesRunAtBusBandwidth) {
    const Device device = eight_per_node();
    const Group group = make_group(device, 8, 1);
    const double bytes = 16e9;
    EXPECT_NEAR(all_reduce_s(device, group, bytes), all_reduce_bytes(8, bytes) / 230e9, 0.01 * bytes / 230e9);
    EXPECT_NEAR(all_gather_s(device, group, bytes), gather_bytes(8, bytes) / 230e9, 0.01 * bytes / 230e9);
    EXPECT_EQ(all_gather_s(device, group, bytes), reduce_scatter_s(device, group, bytes));
}

// Without a switch two of eight devices have a seventh of a device's links between them; told as all of them, tensor
// parallelism over two MI300X or Gaudi is promised seven times the link.
TEST(Collectives, APairOfAMeshHasTheLinksOfAPair) {
    Device device = eight_per_node();
    const double bytes = 16e9, switched = all_reduce_s(device, make_group(device, 2, 1), bytes);
    device.nvidia = false;
    EXPECT_NEAR(all_reduce_s(device, make_group(device, 2, 1), bytes), 7 * switched, 0.01 * 7 * switched);
    EXPECT_EQ(share_of_links(device, 8), 1);
    const double little = all_reduce_s(device, make_group(device, 2, 1), 1);
    device.nvidia = true;
    EXPECT_NEAR(all_reduce_s(device, make_group(device, 2, 1), 1), little, 1e-9) << "the first byte takes as long";
}

// Across nodes the NICs decide: eight of them carry an eighth of the tensor each.
TEST(Collectives, TwoLevelsUseEveryNic) {
    const Device device = eight_per_node();
    const double bytes = 16e9;
    const double flat = all_reduce_s(device, make_group(device, 64, 1), bytes);
    EXPECT_NEAR(flat, 2 * 63.0 / 64 * bytes / 8 / 22.5e9, 0.02 * flat);
    // Strided groups have one rank on each node and one NIC: eight times the bytes on it.
    EXPECT_GT(all_reduce_s(device, make_group(device, 8, 8), bytes), 7 * flat);
}

// nccl-tests on two nodes of eight A100: 171 to 180 GB/s of bus bandwidth from 1 GB on
// (data/validation/collectives.csv), which is what eight adapters of 200 Gb/s have; told by levels it was 248. Hopper's
// switches reduce: 390 to 487.
TEST(Collectives, TwoNodesAreARing) {
    Device device = eight_per_node();
    const double bytes = 10e9, bus = 2 * 15.0 / 16 * bytes;
    EXPECT_NEAR(bus / all_reduce_s(device, make_group(device, 16, 1), bytes), 180e9, 10e9);
    EXPECT_NEAR(bytes * 15 / 16 / all_gather_s(device, make_group(device, 16, 1), bytes), 180e9, 10e9);
    device.inside = {460e9, 5e-6, 17e6};
    device.across = {47.5e9, 5e-6, 1e6};
    device.hopper = true;
    const double switched = bus / all_reduce_s(device, make_group(device, 16, 1), bytes);
    EXPECT_GT(switched, 380e9);
    EXPECT_LT(switched, 500e9);
}

// A NIC that belongs to the node is shared by all its ranks, however they are grouped.
TEST(Collectives, SharedNicsAreDivided) {
    Device device = eight_per_node();
    device.across_shared_by_node = true;
    const double bytes = 1e9;
    const double own = all_reduce_s(eight_per_node(), make_group(eight_per_node(), 4, 8), bytes);
    EXPECT_NEAR(all_reduce_s(device, make_group(device, 4, 8), bytes), 8 * own, 0.05 * 8 * own);
    EXPECT_EQ(make_group(device, 4, 8).sharing, 8);
    EXPECT_EQ(make_group(device, 16, 1).per_node, 8);
}

// Where each doubling of the nodes costs a tenth, 64 nodes are slower than 8 by three of them, and one node not at all.
TEST(Collectives, ManyNodesAreSlower) {
    Device device = eight_per_node();
    const double alone = all_reduce_s(device, make_group(device, 8, 1), 1e9);
    const double few = all_reduce_s(device, make_group(device, 64, 1), 16e9),
                 many = all_reduce_s(device, make_group(device, 512, 1), 16e9);
    double loss = 1;
    for (double& each : device.across_loss) {
        each = loss;
        loss *= 1.1;
    }
    EXPECT_EQ(all_reduce_s(device, make_group(device, 8, 1), 1e9), alone);
    EXPECT_NEAR(all_reduce_s(device, make_group(device, 64, 1), 16e9) / few, 1.331, 0.02);
    EXPECT_NEAR(all_reduce_s(device, make_group(device, 512, 1), 16e9) / many, 1.772, 0.03);
}

// A bridge is fast inside its pair only: four GPUs use the PCIe tree (12 x slower on the A100 PCIe boxes of Azure).
TEST(Collectives, BridgedPairsFallToTheTree) {
    Device device = eight_per_node();
    device.devices_per_node = 4;
    device.pairs_only = true;
    device.pair = {193e9, 4e-6, 6.6e6};
    device.inside = {25e9, 8e-6, 2e6};
    const double two = all_reduce_s(device, make_group(device, 2, 1), 84e6),
                 four = all_reduce_s(device, make_group(device, 4, 1), 84e6);
    EXPECT_NEAR(two, 0.47e-3, 0.05e-3);
    EXPECT_NEAR(four, 5.49e-3, 0.6e-3);
}

// More bytes, more ranks on the same links or a slower link never take less time.
TEST(Collectives, AreMonotonic) {
    Device device = eight_per_node();
    Device faster = device;
    faster.across.bytes_per_second *= 2;
    faster.inside.bytes_per_second *= 2;
    for (const double size : {2.0, 4.0, 8.0, 16.0, 24.0, 512.0}) {
        const Group group = make_group(device, size, 1);
        double last[4] = {};
        for (double bytes = 1; bytes < 1e10; bytes *= 7) {
            const double now[4] = {all_reduce_s(device, group, bytes), all_gather_s(device, group, bytes),
                                   all_to_all_s(device, group, bytes), send_s(device, size <= 8, bytes)};
            const double fast[4] = {all_reduce_s(faster, group, bytes), all_gather_s(faster, group, bytes),
                                    all_to_all_s(faster, group, bytes), send_s(faster, size <= 8, bytes)};
            for (int i = 0; i < 4; ++i) {
                EXPECT_GE(now[i], last[i]);
                EXPECT_LE(fast[i], now[i]);
                last[i] = now[i];
            }
        }
    }
    EXPECT_EQ(all_reduce_s(device, {}, 1e9), 0);
}

}  // namespace
}  // namespace stoker

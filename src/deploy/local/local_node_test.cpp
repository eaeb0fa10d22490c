#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "deploy/local/local_driver.h"
#include "io/files.h"
#include "io/process.h"

namespace stoker {
namespace {

// This machine has a name, cores and memory, and a boot.
TEST(LocalNode, IsThisMachine) {
    const NodeInfo node = discover_local_node();
    EXPECT_FALSE(node.name.empty());
    EXPECT_GE(node.cpu_milli, 1000);
    EXPECT_GT(node.memory_bytes, 0);
    EXPECT_FALSE(node.boot_id.empty());
}

// GPUs are those of the kernel module, by UUID; one that has not been used yet has none, and its place stands for it.
TEST(LocalNode, GpusAreWhatTheKernelModuleLists) {
    std::string root = std::filesystem::temp_directory_path() / "stoker-node-XXXXXX";
    ASSERT_NE(::mkdtemp(root.data()), nullptr);
    const std::string gpus = root + "/proc/driver/nvidia/gpus/";
    for (const char* bus : {"0000:b1:00.0", "0000:06:00.0"}) std::filesystem::create_directories(gpus + bus);
    ASSERT_TRUE(write_file_atomic(gpus + "0000:06:00.0/information",
                                  "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 212\n"
                                  "GPU UUID: \t GPU-5c1f2e0a-1111-2222-3333-444455556666\nDevice Minor: \t 0\n"));
    ASSERT_TRUE(write_file_atomic(gpus + "0000:b1:00.0/information",
                                  "Model: \t\t NVIDIA H100 80GB HBM3\nGPU UUID: \t GPU-\?\?\?\?\?\?\?\?-\?\?\?\?\n"));
    const NodeInfo node = discover_local_node(root + "/");
    ASSERT_EQ(node.devices.size(), 2u);
    EXPECT_EQ(node.devices[0].id, "GPU-5c1f2e0a-1111-2222-3333-444455556666");
    EXPECT_EQ(node.devices[0].model, "NVIDIA H100 80GB HBM3");
    EXPECT_EQ(node.devices[1].id, "1");
    std::filesystem::remove_all(root);
}

// A server without a node file offers the machine it is on; nodes that say nothing else are of this boot.
TEST(LocalNode, AnEmptyOfferIsThisMachine) {
    const auto machine = complete_nodes({});
    ASSERT_EQ(machine.size(), 1U);
    EXPECT_GT(machine.front().cpu_milli, 0);
    const auto nodes = complete_nodes({{.name = "a", .cpu_milli = 1000}, {.name = "b", .boot_id = "other"}});
    ASSERT_EQ(nodes.size(), 2U);
    EXPECT_EQ(nodes.front().boot_id, boot_id());
    EXPECT_EQ(nodes.back().boot_id, "other");
}

}  // namespace
}  // namespace stoker

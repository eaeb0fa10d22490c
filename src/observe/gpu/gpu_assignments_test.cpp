// Whom a GPU was given to: what kubelet and Slurm's files say, joined to the right device or to none.
#include "observe/gpu/gpu_assignments.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace stoker {
namespace {

// A field of protocol buffers with bytes in it.
std::string field(int number, const std::string& bytes) {
    std::string out(1, static_cast<char>(number << 3 | 2));
    std::size_t size = bytes.size();
    for (; size >= 128; size >>= 7) out.push_back(static_cast<char>(size % 128 + 128));
    out.push_back(static_cast<char>(size));
    return out + bytes;
}
std::string devices(const std::string& resource, const std::vector<std::string>& ids) {
    std::string out = field(1, resource);
    for (const std::string& id : ids) out += field(2, id);
    return out;
}
std::string pod(const std::string& name, const std::string& container) {
    return field(1, field(1, name) + field(2, "team-a") + field(3, container));
}

GpuDevice board(int index, int minor = -1) {
    GpuDevice device;
    device.uuid = "GPU-0000000" + std::to_string(index), device.index = index, device.minor = minor;
    return device;
}

TEST(GpuAssignments, KubeletSaysWhichContainerHasWhichGpu) {
    const std::string answer =
        pod("train-0", field(1, "worker") + field(2, devices("nvidia.com/gpu", {"GPU-00000000", "GPU-00000001"})) +
                           std::string("\x18\x07", 2) /* cpu_ids: a number, passed over */) +
        pod("db-0", field(1, "main") + field(2, devices("hugepages-2Mi", {"GPU-00000002"}))) +
        pod("shared-0", field(1, "a") + field(2, devices("nvidia.com/gpu.shared", {"GPU-00000003::0"}))) +
        pod("shared-1", field(1, "b") + field(2, devices("nvidia.com/gpu.shared", {"GPU-00000003::7"}))) +
        pod("claimed-0",
            field(1, "c") + field(5, field(2, "one-gpu") + field(4, field(2, "gpu.nvidia.com") + field(4, "gpu-5"))));
    const auto read = read_pod_resources(answer);
    ASSERT_TRUE(read.ok()) << read.error().message();
    GpuAssignments told;
    told.sources.push_back({.name = "kubelet", .up = true, .assignments = *read});
    ASSERT_EQ(told.of(board(1)).size(), 1u);
    EXPECT_EQ(told.of(board(1))[0]->pod, "train-0");
    EXPECT_EQ(told.of(board(1))[0]->container, "worker");
    EXPECT_EQ(told.of(board(1))[0]->name_space, "team-a");
    EXPECT_TRUE(told.of(board(2)).empty());  // of another resource
    ASSERT_EQ(told.of(board(3)).size(), 2u);
    EXPECT_TRUE(told.of(board(3))[0]->shared);
    // By the number of its device file, which need not be its index.
    EXPECT_TRUE(told.of(board(5, 4)).empty());
    ASSERT_EQ(told.of(board(4, 5)).size(), 1u);
    EXPECT_EQ(told.of(board(4, 5))[0]->claim, "one-gpu");
}

TEST(GpuAssignments, AnInstanceIsNotItsBoard) {
    GpuDevice instance = board(0, 0);
    instance.uuid = "MIG-1", instance.parent_uuid = "GPU-00000000", instance.gpu_instance = 7;
    GpuAssignment of;
    const auto is = [&](const std::string& device, const std::string& job = "") {
        of.device = device, of.job = job;
        return is_assigned(of, instance);
    };
    EXPECT_TRUE(is("MIG-1"));
    EXPECT_TRUE(is("nvidia0/gi7"));
    EXPECT_TRUE(is("0.7", "42"));
    EXPECT_FALSE(is("GPU-00000000"));
    EXPECT_FALSE(is("nvidia0"));
    EXPECT_FALSE(is("0", "42"));
    EXPECT_FALSE(is("0.70", "42"));
    of.device = "0", of.job = "42";
    EXPECT_TRUE(is_assigned(of, board(0)));
}

TEST(GpuAssignments, WhatIsNoAnswerOfKubeletIsRefused) {
    const std::string good = pod("train-0", field(1, "worker") + field(2, devices("nvidia.com/gpu", {"GPU-00000000"})));
    ASSERT_TRUE(read_pod_resources(good).ok());
    EXPECT_TRUE(read_pod_resources("").ok());  // no pods
    for (std::size_t cut = 1; cut < good.size(); ++cut)
        EXPECT_FALSE(read_pod_resources(good.substr(0, cut)).ok()) << cut;
    EXPECT_FALSE(read_pod_resources("<html>").ok());
    EXPECT_FALSE(read_pod_resources(std::string(20, '\xff')).ok());
}

TEST(GpuAssignments, WhatASourceToldIsKeptWhileItIsSilent) {
    const std::string folder = testing::TempDir() + "gpu-jobs";
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/0") << "1234\n";
    std::ofstream(folder + "/README") << "no job\n";
    AssignmentOptions options;
    options.job_folder = folder;
    options.kubelet_socket = folder + "/nobody.sock";
    GpuAssignments told = look_at_assignments(options, {}, 10);
    ASSERT_EQ(told.sources.size(), 2u);
    EXPECT_FALSE(told.sources[0].up);
    EXPECT_FALSE(told.sources[0].read_at_s.has_value());
    EXPECT_TRUE(told.sources[1].up);
    ASSERT_EQ(told.of(board(0)).size(), 1u);
    EXPECT_EQ(told.of(board(0))[0]->job, "1234");
    std::filesystem::remove_all(folder);
    told = look_at_assignments(options, told, 20);
    EXPECT_FALSE(told.sources[1].up);
    EXPECT_EQ(told.sources[1].read_at_s, 10);
    ASSERT_EQ(told.of(board(0)).size(), 1u);
}

}  // namespace
}  // namespace stoker

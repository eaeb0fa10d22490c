// Pods, nodes and events in one file or in three give the same answer.
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "readings/tool_test_help.h"

namespace stoker {
namespace {

using samples::read;
using samples::verdict_of;
using samples::worst;

TEST(Kubernetes, PodsAreHeldAgainstTheNodesOfOtherFiles) {
    const auto report =
        read_tool_files({{"pods.json", std::string(samples::kPods)}, {"nodes.json", std::string(samples::kNodes)}}, {});
    ASSERT_TRUE(report.ok());
    const HealthCheck* check = worst(report->readings[0], "pod-pending");
    ASSERT_NE(check, nullptr);
    EXPECT_EQ(check->verdict, HealthVerdict::fail);
    EXPECT_NE(check->detail.find("[taint]"), std::string::npos) << check->detail;
    EXPECT_NE(check->detail.find("sku=gpu:NoSchedule"), std::string::npos) << check->detail;
    EXPECT_NE(report->conclusion.find("ml/train-0"), std::string::npos) << report->conclusion;
    EXPECT_EQ(report->readings[1].verdict(), HealthVerdict::pass);
    // Alone, what would say more is asked for.
    const ToolReading alone = read(samples::kPods);
    ASSERT_NE(alone.fact("open"), nullptr);
}

TEST(Kubernetes, NodesThatOfferNoneOrFewer) {
    EXPECT_EQ(
        verdict_of(
            read(
                R"({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "g", "labels": {"nvidia.com/gpu.present": "true"}}, "status": {"allocatable": {"cpu": "8"}}})"),
            "node-gpus"),
        HealthVerdict::fail);
    EXPECT_EQ(
        verdict_of(
            read(
                R"({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "g"}, "status": {"allocatable": {"nvidia.com/gpu": "7"}, "capacity": {"nvidia.com/gpu": "8"}}})"),
            "node-gpus"),
        HealthVerdict::warn);
}

// "Install the plug-in" where it is installed and found every GPU sick sends somebody the wrong way for an hour.
TEST(Kubernetes, AllDevicesUnhealthyIsNoMissingPlugin) {
    const ToolReading reading = read(R"({"apiVersion": "v1", "kind": "List", "items": [
      {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "g", "labels": {"nvidia.com/gpu.present": "true"}}, "status": {"allocatable": {"nvidia.com/gpu": "0"}, "capacity": {"nvidia.com/gpu": "4"}}},
      {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "t", "namespace": "ml"}, "spec": {"containers": [{"name": "c", "image": "x:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
       "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."}]}}]})");
    EXPECT_EQ(verdict_of(reading, "node-gpus"), HealthVerdict::fail);
    EXPECT_NE(worst(reading, "node-gpus")->detail.find("0 of 4"), std::string::npos)
        << worst(reading, "node-gpus")->detail;
    EXPECT_NE(reading.conclusion.find("unhealthy"), std::string::npos) << reading.conclusion;
    EXPECT_EQ(reading.conclusion.find("no device plugin"), std::string::npos) << reading.conclusion;
}

// Web servers that fill the processors of a GPU node keep the training away from GPUs that are free.
TEST(Kubernetes, WorkWithoutGpusOnAGpuNodeIsTold) {
    const char* kNode =
        R"({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "g"}, "status": {"allocatable": {"nvidia.com/gpu": "4"}, "capacity": {"nvidia.com/gpu": "4"}}})";
    const auto pod = [](const char* owner) {
        return fmt::format(
            R"({{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "web", "namespace": "shop", "ownerReferences": [{{"kind": "{}", "name": "o"}}]}}, "spec": {{"nodeName": "g", "containers": [{{"name": "c", "image": "nginx:1.27", "resources": {{"requests": {{"cpu": "4"}}}}}}]}}, "status": {{"phase": "Running"}}}})",
            owner);
    };
    const auto with = [&](const char* owner) {
        return read(fmt::format(R"({{"apiVersion": "v1", "kind": "List", "items": [{}, {}]}})", kNode, pod(owner)));
    };
    const ToolReading reading = with("ReplicaSet");
    ASSERT_NE(worst(reading, "node-tenants"), nullptr);
    EXPECT_NE(worst(reading, "node-tenants")->detail.find("shop/web"), std::string::npos);
    const ToolReading daemon = with("DaemonSet");
    EXPECT_EQ(worst(daemon, "node-tenants"), nullptr);
}

TEST(Kubernetes, EventsOfAJobThatGetsNoPod) {
    const ToolReading reading = read(R"({"apiVersion": "v1", "kind": "List", "items": [
      {"apiVersion": "v1", "kind": "Event", "involvedObject": {"kind": "Job", "name": "train", "namespace": "ml"}, "reason": "FailedCreate",
       "message": "Error creating: pods \"train-x\" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8"}]})");
    EXPECT_EQ(verdict_of(reading, "pod-pending"), HealthVerdict::fail);
    EXPECT_NE(reading.conclusion.find("[quota]"), std::string::npos);
}

// Accepted, and never enforced: 8 GPUs ran under a quota of 1.
TEST(Kubernetes, AQuotaOnLimitsIsTold) {
    const ToolReading reading = read(
        R"({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "gpus", "namespace": "ml"}, "spec": {"hard": {"limits.nvidia.com/gpu": "4"}}})");
    EXPECT_EQ(verdict_of(reading, "quota-enforced"), HealthVerdict::warn);
    EXPECT_EQ(worst(reading, "quota-enforced")->fix, "hard:\n  requests.nvidia.com/gpu: \"4\"");
}

// What a real Kubernetes 1.36 said (tests/kube/README.md): the file's name is what was done to it.
TEST(Kubernetes, RecordedClusters) {
    static const std::map<std::string, std::string> causes = {
        {"taint", "taint"},
        {"spot", "taint"},
        {"never-enough-gpus", "not-enough-gpus"},
        {"gpus-taken", "not-enough-gpus"},
        {"wrong-resource-name", "no-gpu-resource"},
        {"no-device-plugin", "no-gpu-resource"},
        {"selector", "selector"},
        {"affinity", "selector"},
        {"cordoned", "cordoned"},
        {"cpu-or-memory", "cpu-or-memory"},
        {"volume", "volume"},
        {"zone", "volume"},
        {"init", "cpu-or-memory"},
        {"other-pods", "other-pods"},
        {"quota", "quota"},
        {"priority", "refused"},
        {"account", "refused"},
        {"gate", "gate"},
        {"scheduler", "scheduler"},
        {"device-claim", "device-claim"},
    };
    std::size_t found = 0;
    for (const auto& entry : std::filesystem::directory_iterator(STOKER_SOURCE_DIR "/tests/kube/recorded")) {
        std::ifstream in(entry.path());
        std::stringstream text;
        text << in.rdbuf();
        const auto expected = causes.find(entry.path().stem().string());
        ASSERT_NE(expected, causes.end()) << entry.path();
        const ToolReading reading = read(text.str());
        EXPECT_NE(reading.conclusion.find(fmt::format("[{}]", expected->second)), std::string::npos)
            << entry.path() << ": " << reading.conclusion;
        ++found;
    }
    EXPECT_GE(found, 6U);
}

TEST(Kubernetes, PodsThatRunAreWell) {
    EXPECT_EQ(read(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "status": {"phase": "Running"}})")
                  .verdict(),
              HealthVerdict::pass);
    EXPECT_NE(
        samples::error_of(R"({"apiVersion": "v1", "kind": "List", "items": []})", Tool::kubernetes).find("empty list"),
        std::string::npos);
}

}  // namespace
}  // namespace stoker

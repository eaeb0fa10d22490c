// A toleration or a quantity that is read wrongly names the wrong cause.
#include "readings/kube_objects.h"

#include <gtest/gtest.h>

#include "readings/tool_samples.h"

namespace stoker {
namespace {

TEST(KubeObjects, QuantitiesAreRead) {
    EXPECT_EQ(kube_quantity("8"), 8);
    EXPECT_EQ(kube_quantity("500m"), 0.5);
    EXPECT_EQ(kube_quantity("2Gi"), 2147483648.0);
    EXPECT_EQ(kube_quantity("1e3"), 1000);
    EXPECT_EQ(kube_quantity("1Pi"), 1125899906842624.0);
    EXPECT_EQ(kube_quantity("lots"), 0);
}

// https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
TEST(KubeObjects, TolerationsFollowTheRules) {
    const KubeTaint taint{"sku", "gpu", "NoSchedule"};
    EXPECT_TRUE((KubeToleration{"sku", "Equal", "gpu", "NoSchedule"}.tolerates(taint)));
    EXPECT_TRUE((KubeToleration{"sku", "", "gpu", ""}.tolerates(taint)));
    EXPECT_TRUE((KubeToleration{"sku", "Exists", "", ""}.tolerates(taint)));
    EXPECT_TRUE((KubeToleration{"", "Exists", "", ""}.tolerates(taint)));
    EXPECT_FALSE((KubeToleration{"sku", "Equal", "cpu", ""}.tolerates(taint)));
    EXPECT_FALSE((KubeToleration{"sku", "Exists", "", "NoExecute"}.tolerates(taint)));
    EXPECT_FALSE((KubeToleration{"", "", "", ""}.tolerates(taint)));
}

TEST(KubeObjects, ExpressionsHold) {
    const std::map<std::string, std::string, std::less<>> labels{{"gpus", "8"}, {"zone", "1"}};
    EXPECT_TRUE((KubeExpression{"zone", "In", {"1", "2"}}.holds(labels)));
    EXPECT_FALSE((KubeExpression{"zone", "NotIn", {"1"}}.holds(labels)));
    EXPECT_TRUE((KubeExpression{"other", "DoesNotExist", {}}.holds(labels)));
    EXPECT_TRUE((KubeExpression{"gpus", "Gt", {"4"}}.holds(labels)));
    EXPECT_FALSE((KubeExpression{"gpus", "Lt", {"4"}}.holds(labels)));
}

// kubectl get -o yaml; two outputs in one file; and places that are those of the file.
TEST(KubeObjects, YamlIsReadLikeJson) {
    const std::string pod =
        "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: a\n    namespace: ml\n  spec:\n"
        "    containers:\n    - image: nvidia/cuda:12.4.1-base\n      name: c\n      resources:\n        limits:\n"
        "          nvidia.com/gpu: \"2\"\n    nodeName: g\n    resourceClaims:\n    - name: gpus\n  status:\n"
        "    containerStatuses:\n    - state:\n        waiting:\n          message: Back-off pulling\n"
        "          reason: ImagePullBackOff\n    phase: Pending\nkind: List\n";
    const std::string node = "apiVersion: v1\nkind: Node\nmetadata:\n  name: g\nspec: {}\nstatus: {}\n";
    KubeState state;
    const Status read = read_kube_objects("---\n" + pod + "---\n" + node + "---\n\n", "x", state);
    ASSERT_TRUE(read.ok()) << read.error().text();
    ASSERT_EQ(state.pods.size(), 1U);
    EXPECT_EQ(state.pods[0].gpus(), 2);
    EXPECT_EQ(state.pods[0].place.line, 4U);
    EXPECT_EQ(state.pods[0].waiting, "ImagePullBackOff");
    EXPECT_EQ(state.pods[0].device_claims, std::vector<std::string>{"gpus"});
    EXPECT_EQ(state.pods[0].gpu_images, std::vector<std::string>{"nvidia/cuda:12.4.1-base"});
    ASSERT_EQ(state.nodes.size(), 1U);
    EXPECT_EQ(state.nodes[0].place.line, 28U);
    const Status broken = read_kube_objects(node + "---\nkind: Pod\nspec: [\n", "x", state);
    ASSERT_FALSE(broken.ok());
    EXPECT_GE(broken.error().problems()[0].pos.line, 8U);
    EXPECT_FALSE(read_kube_objects("", "x", state).ok());
    std::string many;
    for (int i = 0; i < 300; ++i) many += node + "---\n";
    EXPECT_FALSE(read_kube_objects(many, "x", state).ok());
}

// https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers
TEST(KubeObjects, WhatAPodAsksForInAll) {
    KubeState state;
    ASSERT_TRUE(read_kube_objects(
                    R"({"kind": "Pod", "spec": {"overhead": {"cpu": "1"},
        "containers": [{"resources": {"requests": {"cpu": "4"}}}, {"resources": {"limits": {"cpu": "2", "nvidia.com/gpu": "1"}}}],
        "initContainers": [{"resources": {"requests": {"cpu": "20"}}}, {"resources": {"requests": {"cpu": "10", "memory": "1Gi"}}},
                           {"restartPolicy": "Always", "resources": {"requests": {"cpu": "3"}}}]}})",
                    "x", state)
                    .ok());
    const auto& asked = state.pods[0].requests;
    EXPECT_EQ(asked.find("cpu")->second, 21);
    EXPECT_EQ(asked.find("memory")->second, 1073741824.0);
    EXPECT_EQ(asked.find("nvidia.com/gpu")->second, 1);
}

TEST(KubeObjects, ListsAndSingleObjects) {
    KubeState state;
    ASSERT_TRUE(read_kube_objects(samples::kPods, "pods", state).ok());
    ASSERT_TRUE(read_kube_objects(samples::kNodes, "nodes", state).ok());
    ASSERT_TRUE(read_kube_objects(R"({"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"name": "a"}}]})",
                                  "api", state)
                    .ok());
    ASSERT_EQ(state.pods.size(), 2U);
    EXPECT_EQ(state.pods[0].full(), "ml/train-0");
    EXPECT_EQ(state.pods[0].gpu_resource(), "nvidia.com/gpu");
    EXPECT_EQ(state.pods[0].gpus(), 8);
    EXPECT_EQ(state.pods[0].place.line, 5U);
    ASSERT_EQ(state.nodes.size(), 2U);
    EXPECT_EQ(state.nodes[0].gpus(), 8);
    EXPECT_TRUE(state.nodes[0].looks_like_gpu());
    EXPECT_FALSE(state.nodes[1].looks_like_gpu());
    EXPECT_FALSE(read_kube_objects("[1, 2]", "x", state).ok());
    EXPECT_FALSE(read_kube_objects(samples::kPods.substr(0, 300), "x", state).ok());
}

}  // namespace
}  // namespace stoker

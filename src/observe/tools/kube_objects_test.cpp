// A toleration or a quantity that is read wrongly names the wrong cause.
#include "observe/tools/kube_objects.h"

#include <gtest/gtest.h>

#include "observe/tools/tool_samples.h"

namespace stoker {
namespace {

TEST(KubeObjects, QuantitiesAreRead) {
    EXPECT_EQ(kube_quantity("8"), 8);
    EXPECT_EQ(kube_quantity("500m"), 0.5);
    EXPECT_EQ(kube_quantity("2Gi"), 2147483648.0);
    EXPECT_EQ(kube_quantity("1e3"), 1);  // an exponent is a suffix that nobody writes for a GPU
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

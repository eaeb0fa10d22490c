// Help is asked for with kubectl describe: the same cause must come out as of the objects themselves.
#include "readings/kube_describe.h"

#include "readings/tool_test_help.h"

namespace stoker {
namespace {

constexpr std::string_view kDescribed = R"(Name:             train
Namespace:        ml
Node:             <none>
Labels:           app=train
Status:           Pending
IP:
Controlled By:    Job/train-job
Containers:
  main:
    Image:      nvidia/cuda:12.4.1-base-ubuntu22.04
    Port:       <none>
    Limits:
      nvidia.com/gpu:  8
    Requests:
      cpu:             4
      nvidia.com/gpu:  8
    Environment:       <none>
  side:
    Image:      x:1
    Requests:
      cpu:        500m
Volumes:
  data:
    Type:       PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)
    ClaimName:  datasets
Node-Selectors:              agentpool=h100
                             zone=1
Tolerations:                 node.kubernetes.io/not-ready:NoExecute op=Exists for 300s
                             sku=gpu:NoSchedule
Events:
  Type     Reason            Age                From               Message
  ----     ------            ----               ----               -------
  Warning  FailedScheduling  5s (x3 over 20s)   default-scheduler  0/2 nodes are available: 2 Insufficient nvidia.com/gpu. no new claims to deallocate
)";

constexpr std::string_view kDescribedNode = R"(Name:               aks-gpu-0
Roles:              <none>
Labels:             agentpool=gpu
                    node.kubernetes.io/instance-type=Standard_NC96ads_A100_v4
Taints:             sku=gpu:NoSchedule
                    nvidia.com/gpu:NoSchedule
Unschedulable:      false
Conditions:
  Type             Status  LastHeartbeatTime                 Reason            Message
  ----             ------  -----------------                 ------            -------
  MemoryPressure   False   Thu, 20 Nov 2025 10:00:00 +0000   KubeletHasEnough  kubelet has enough
  Ready            True    Thu, 20 Nov 2025 10:00:00 +0000   KubeletReady      kubelet is posting ready status
Capacity:
  cpu:             96
  nvidia.com/gpu:  4
Allocatable:
  cpu:             95
  nvidia.com/gpu:  0
System Info:
  Kubelet Version:            v1.31.2
)";

// Of a node the devices that the plug-in found unhealthy are what is looked for.
TEST(KubeDescribe, ANode) {
    KubeState state;
    EXPECT_TRUE(is_kube_describe(kDescribedNode));
    read_kube_describe(kDescribedNode, "x", state);
    ASSERT_EQ(state.nodes.size(), 1U);
    const KubeNode& node = state.nodes[0];
    EXPECT_EQ(node.name, "aks-gpu-0");
    EXPECT_TRUE(node.ready && !node.unschedulable && node.looks_like_gpu());
    ASSERT_EQ(node.taints.size(), 2U);
    EXPECT_EQ(node.taints[0].text() + " " + node.taints[1].text(), "sku=gpu:NoSchedule nvidia.com/gpu:NoSchedule");
    EXPECT_EQ(node.capacity.at("nvidia.com/gpu"), 4);
    EXPECT_EQ(node.allocatable.at("nvidia.com/gpu"), 0);
}

TEST(KubeDescribe, APod) {
    KubeState state;
    EXPECT_TRUE(is_kube_describe(kDescribed));
    read_kube_describe(kDescribed, "x", state);
    ASSERT_EQ(state.pods.size(), 1U);
    const KubePod& pod = state.pods[0];
    EXPECT_EQ(pod.full(), "ml/train");
    EXPECT_EQ(pod.phase, "Pending");
    EXPECT_TRUE(pod.node.empty());
    EXPECT_EQ(pod.owner_kind + " " + pod.owner, "Job train-job");
    EXPECT_EQ(pod.gpus(), 8);
    EXPECT_EQ(pod.requests.find("cpu")->second, 4.5);
    EXPECT_EQ(pod.selector.size(), 2U);
    EXPECT_EQ(pod.selector.find("zone")->second, "1");
    ASSERT_EQ(pod.tolerations.size(), 2U);
    EXPECT_TRUE(pod.tolerations[1].tolerates({"sku", "gpu", "NoSchedule"}));
    EXPECT_FALSE(pod.tolerations[0].tolerates({"sku", "gpu", "NoSchedule"}));
    EXPECT_EQ(pod.claims, std::vector<std::string>{"datasets"});
    EXPECT_EQ(pod.gpu_images, std::vector<std::string>{"nvidia/cuda:12.4.1-base-ubuntu22.04"});
    ASSERT_EQ(state.events.size(), 1U);
    EXPECT_EQ(state.events[0].reason, "FailedScheduling");
    EXPECT_TRUE(state.events[0].message.starts_with("0/2 nodes are available"));
    EXPECT_EQ(state.events[0].place.line, 33U);
    const ToolReading reading = samples::read(kDescribed);
    EXPECT_EQ(samples::verdict_of(reading, "pod-pending"), HealthVerdict::fail);
    EXPECT_NE(reading.conclusion.find("[not-enough-gpus]"), std::string::npos) << reading.conclusion;
}

TEST(KubeDescribe, SeveralPodsAndAJob) {
    std::string image(kDescribed);
    image = samples::replaced(image, "Node:             <none>", "Node:             gpu-0/10.0.0.4");
    image = samples::replaced(image, "    Port:       <none>\n",
                              "    State:          Waiting\n      Reason:       ImagePullBackOff\n    Ready:  False\n");
    const std::string job =
        "Name:             big\nNamespace:        ml\nPods Statuses:    0 Active / 0 Succeeded / 0 Failed\nPod "
        "Template:\n"
        "  Containers:\n   main:\n    Image:      x\n    Limits:\n      nvidia.com/gpu:  8\nEvents:\n"
        "  Type     Reason        Age   From            Message\n  ----     ------        ----  ----            "
        "-------\n"
        "  Warning  FailedCreate  1s    job-controller  Error creating: pods \"big-x\" is forbidden: no PriorityClass "
        "with "
        "name nosuch was found\n";
    const ToolReading reading = samples::read(image + "\n\n" + job);
    EXPECT_NE(reading.conclusion.find("[image]"), std::string::npos) << reading.conclusion;
    const bool refused = std::any_of(reading.checks.begin(), reading.checks.end(), [](const HealthCheck& check) {
        return check.detail.find("Job ml/big gets no pod [refused]") != std::string::npos;
    });
    EXPECT_TRUE(refused);
}

TEST(KubeDescribe, OtherTextIsNotTaken) {
    EXPECT_FALSE(is_kube_describe("Name: a\nValue: b\n"));
    EXPECT_EQ(recognise("Name:  a\nNamespace:  b\n"), Tool::unknown);
    for (std::size_t end = 0; end < kDescribed.size(); end += 3) {
        KubeState state;
        read_kube_describe(kDescribed.substr(0, end), "x", state);
        EXPECT_LE(state.pods.size(), 1U);
    }
}

}  // namespace
}  // namespace stoker

// Each of the causes of Pending is told from the others, and its remedy is what mends it.
#include "readings/kube_pending.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace stoker {
namespace {

KubePod waiting(double gpus = 1, std::string message = {}) {
    KubePod pod{.space = "ml", .name = "train-0", .phase = "Pending", .scheduler = "default-scheduler"};
    pod.requests["nvidia.com/gpu"] = gpus;
    pod.condition = std::move(message);
    return pod;
}
KubeNode gpu_node(std::string name, double gpus) {
    KubeNode node{.name = std::move(name)};
    node.labels["node.kubernetes.io/instance-type"] = "Standard_NC64as_T4_v3";
    node.labels["pool"] = "gpu";
    if (gpus > 0) node.allocatable["nvidia.com/gpu"] = gpus;
    return node;
}
KubePod running(std::string node, double gpus) {
    KubePod pod{.space = "ml", .name = "other-" + node, .phase = "Running", .node = std::move(node)};
    pod.requests["nvidia.com/gpu"] = gpus;
    return pod;
}
const char* kInsufficient =
    "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. no new claims to deallocate, preemption: 0/2 nodes are "
    "available: 2 Preemption is not helpful for scheduling.";

// 1: a taint that is not tolerated: the toleration is its own key and value.
TEST(KubePending, TaintNotTolerated) {
    KubeState state;
    state.nodes = {gpu_node("gpu-1", 4)};
    state.nodes[0].taints = {{"sku", "gpu", "NoSchedule"}};
    KubePod pod = waiting(1, "0/1 nodes are available: 1 node(s) had untolerated taint(s).");
    const PodWait why = why_pending(pod, state);
    EXPECT_EQ(why.cause, PendingCause::taint) << why.what;
    EXPECT_EQ(why.fix, "tolerations:\n- key: sku\n  operator: Equal\n  value: \"gpu\"\n  effect: NoSchedule");
    pod.tolerations = {{"sku", "Equal", "gpu", "NoSchedule"}};
    EXPECT_NE(why_pending(pod, state).cause, PendingCause::taint);
    // Without the nodes the cause is the same, and what is missing is said.
    const PodWait blind = why_pending(waiting(1, "0/1 nodes are available: 1 node(s) had untolerated taint(s)."), {});
    EXPECT_EQ(blind.cause, PendingCause::taint);
    EXPECT_NE(blind.open.find("nodes"), std::string::npos);
    // Kubernetes before 1.34 named it.
    const PodWait named =
        why_pending(waiting(1, "0/1 nodes are available: 1 node(s) had untolerated taint {sku: gpu}."), {});
    EXPECT_NE(named.fix.find("key: sku"), std::string::npos);
}

// Without the nodes: a pod that tolerates nothing of its own is kept off the GPU nodes, and the others have no GPU.
TEST(KubePending, ATaintAndTooFewGpus) {
    const char* both = "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s).";
    KubePod pod = waiting(8, both);
    pod.tolerations = {{"node.kubernetes.io/not-ready", "Exists", "", "NoExecute"},
                       {"nvidia.com/gpu", "Exists", "", "NoSchedule"}};
    EXPECT_EQ(why_pending(pod, {}).cause, PendingCause::taint);
    pod.tolerations.push_back({"sku", "Equal", "gpu", "NoSchedule"});
    EXPECT_EQ(why_pending(pod, {}).cause, PendingCause::not_enough);
}

// 2: no node offers the resource: the plugin, or GPU nodes at all, or its name.
TEST(KubePending, NoGpuResource) {
    KubeState state;
    state.nodes = {gpu_node("gpu-1", 0)};
    PodWait why = why_pending(waiting(1, kInsufficient), state);
    EXPECT_EQ(why.cause, PendingCause::no_resource);
    EXPECT_NE(why.what.find("device plugin"), std::string::npos) << why.what;
    EXPECT_NE(why.fix.find("gpu-operator"), std::string::npos);
    state.nodes[0].labels.clear();
    why = why_pending(waiting(1, kInsufficient), state);
    EXPECT_EQ(why.cause, PendingCause::no_resource);
    EXPECT_NE(why.fix.find("nodepool add"), std::string::npos);
    KubePod wrong = waiting(0);
    wrong.requests = {{"nvidia.com/gpus", 1}};
    state.nodes = {gpu_node("gpu-1", 4)};
    why = why_pending(wrong, state);
    EXPECT_EQ(why.cause, PendingCause::no_resource);
    EXPECT_NE(why.what.find("what is offered is nvidia.com/gpu"), std::string::npos) << why.what;
}

// 3: they are taken, or no node has as many.
TEST(KubePending, NotEnoughGpus) {
    KubeState state;
    state.nodes = {gpu_node("gpu-1", 4), gpu_node("gpu-2", 4)};
    state.pods = {running("gpu-1", 3), running("gpu-2", 4)};
    PodWait why = why_pending(waiting(2, kInsufficient), state);
    EXPECT_EQ(why.cause, PendingCause::not_enough);
    EXPECT_NE(why.what.find("at most 1 free"), std::string::npos) << why.what;
    why = why_pending(waiting(8, kInsufficient), state);
    EXPECT_EQ(why.cause, PendingCause::not_enough);
    EXPECT_NE(why.what.find("no node has more than 4"), std::string::npos) << why.what;
    state.pods = {running("gpu-1", 2), running("gpu-2", 2)};
    EXPECT_NE(why_pending(waiting(3, kInsufficient), state).what.find("fragmented"), std::string::npos);
    // Without the nodes it cannot be told from a missing plugin.
    EXPECT_FALSE(why_pending(waiting(2, kInsufficient), {}).open.empty());
}

// 4: a quota refuses the pod before it exists.
TEST(KubePending, Quota) {
    const KubeEvent event{
        .space = "ml",
        .kind = "Job",
        .name = "train",
        .reason = "FailedCreate",
        .message =
            "Error creating: pods \"train-x\" is forbidden: exceeded quota: gpus, requested: "
            "requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8"};
    const auto why = why_not_created(event, {});
    ASSERT_TRUE(why.has_value());
    EXPECT_EQ(why->cause, PendingCause::quota);
    EXPECT_NE(why->what.find("ml/gpus"), std::string::npos) << why->what;
    EXPECT_NE(why->fix.find("kubectl patch resourcequota gpus -n ml"), std::string::npos) << why->fix;
    EXPECT_NE(why->fix.find("\"requests.nvidia.com/gpu\":\"N\""), std::string::npos) << why->fix;
    EXPECT_FALSE(why_not_created({.reason = "FailedCreate", .message = "timed out"}, {}).has_value());
}

// 5: more nodes are needed and none is made.
TEST(KubePending, Autoscaler) {
    KubeState state;
    state.nodes = {gpu_node("gpu-1", 4)};
    state.pods = {running("gpu-1", 4)};
    state.events = {{.space = "ml",
                     .kind = "Pod",
                     .name = "train-0",
                     .reason = "NotTriggerScaleUp",
                     .message = "pod didn't trigger scale-up: 1 max node group size reached"}};
    PodWait why = why_pending(waiting(1, kInsufficient), state);
    EXPECT_EQ(why.cause, PendingCause::autoscaler) << why.what;
    EXPECT_NE(why.fix.find("--max-count"), std::string::npos);
    state.events[0].message = "pod didn't trigger scale-up: 1 in backoff after failed scale-up";
    EXPECT_NE(why_pending(waiting(1, kInsufficient), state).fix.find("list-usage"), std::string::npos);
    state.events[0] = {.space = "ml",
                       .kind = "Pod",
                       .name = "train-0",
                       .reason = "TriggeredScaleUp",
                       .message = "pod triggered scale-up: [{gpu 1->2 (max: 2)}]"};
    why = why_pending(waiting(1, kInsufficient), state);
    EXPECT_EQ(why.cause, PendingCause::not_enough);
    EXPECT_NE(why.fix.find("wait 5 to 10 minutes"), std::string::npos);
    // Another pod's event says nothing about this one.
    state.events[0].name = "another";
    EXPECT_EQ(why_pending(waiting(1, kInsufficient), state).fix.find("wait 5 to 10 minutes"), std::string::npos);
}

// 6: no node has the labels: what they have instead is the remedy.
TEST(KubePending, Selector) {
    KubeState state;
    state.nodes = {gpu_node("gpu-1", 4)};
    KubePod pod = waiting(1, "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.");
    pod.selector["pool"] = "gpus";
    PodWait why = why_pending(pod, state);
    EXPECT_EQ(why.cause, PendingCause::selector) << why.what;
    EXPECT_EQ(why.fix, "nodeSelector:\n  pool: gpu");
    EXPECT_EQ(why_pending(pod, {}).cause, PendingCause::selector);
    pod.selector.clear();
    pod.affinity = {{{"zone", "In", {"3"}}}};
    EXPECT_EQ(why_pending(pod, state).cause, PendingCause::selector);
    pod.affinity.push_back({{"pool", "In", {"gpu"}}});  // one term is enough
    EXPECT_NE(why_pending(pod, state).cause, PendingCause::selector);
}

TEST(KubePending, VolumesGatesAndTheRest) {
    EXPECT_EQ(
        why_pending(waiting(1, "0/2 nodes are available: 2 node(s) had volume node affinity conflict."), {}).cause,
        PendingCause::volume);
    EXPECT_EQ(
        why_pending(waiting(1, "0/2 nodes are available: persistentvolumeclaim \"missing\" not found. not found"), {})
            .cause,
        PendingCause::volume);
    EXPECT_EQ(
        why_pending(waiting(1, "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."), {}).cause,
        PendingCause::volume);
    KubePod gated = waiting();
    gated.gates = {"kueue.x-k8s.io/admission"};
    EXPECT_EQ(why_pending(gated, {}).cause, PendingCause::gate);
    KubePod elsewhere = waiting();
    elsewhere.scheduler = "volcano";
    EXPECT_EQ(why_pending(elsewhere, {}).cause, PendingCause::scheduler);
    KubePod bound = waiting();
    bound.node = "gpu-1";
    EXPECT_EQ(why_pending(bound, {}).cause, PendingCause::starting);
    KubeState state;
    state.nodes = {gpu_node("gpu-1", 4)};
    state.nodes[0].unschedulable = true;
    EXPECT_EQ(why_pending(waiting(), state).cause, PendingCause::cordoned);
    KubePod hungry = waiting();
    hungry.requests["cpu"] = 96;
    state.nodes[0].unschedulable = false;
    state.nodes[0].allocatable["cpu"] = 63;
    EXPECT_EQ(why_pending(hungry, state).cause, PendingCause::other_resource);
    EXPECT_EQ(why_pending(waiting(1, ""), {}).cause, PendingCause::unknown);
}

}  // namespace
}  // namespace stoker

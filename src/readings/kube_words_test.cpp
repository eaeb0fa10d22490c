// Sentences that do not come from the scheduler's filters: each has its own remedy.
#include "readings/kube_words.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

PodWait refused(std::string message) {
    const auto why = why_not_created(
        {.space = "ml", .kind = "Job", .name = "train", .reason = "FailedCreate", .message = std::move(message)}, {});
    EXPECT_TRUE(why.has_value());
    return why.value_or(PodWait{});
}

TEST(KubeWords, AdmissionRefusesThePodOfAController) {
    PodWait why = refused("Error creating: pods \"a-\" is forbidden: no PriorityClass with name nosuch was found");
    EXPECT_EQ(why.cause, PendingCause::refused);
    EXPECT_NE(why.fix.find("create priorityclass nosuch --value"), std::string::npos) << why.fix;
    why = refused(
        "Error creating: pods \"a-\" is forbidden: error looking up service account ml/nosuch: serviceaccount "
        "\"nosuch\" not found");
    EXPECT_NE(why.fix.find("kubectl create serviceaccount nosuch -n ml"), std::string::npos) << why.fix;
    why = refused("Error creating: admission webhook \"vpod.example\" denied the request: no team label");
    EXPECT_NE(why.what.find("vpod.example"), std::string::npos);
    EXPECT_NE(refused("Error creating: pods \"a\" is forbidden: violates PodSecurity \"restricted:latest\": privileged")
                  .fix.find("pod-security.kubernetes.io/enforce"),
              std::string::npos);
    EXPECT_EQ(refused("Error creating: pods \"a\" is forbidden: because").cause, PendingCause::refused);
}

TEST(KubeWords, DevicesThatNoDriverOffers) {
    KubePod pod{.name = "a", .device_claims = {"gpus"}};
    const auto why =
        by_device_claim(pod, "0/4 nodes are available: 4 cannot allocate all claims. still not schedulable");
    ASSERT_TRUE(why.has_value());
    EXPECT_EQ(why->cause, PendingCause::device_claim);
    EXPECT_NE(why->fix.find("resourceslices"), std::string::npos);
    EXPECT_FALSE(by_device_claim(pod, "1 node(s) had untolerated taint(s)").has_value());
    EXPECT_TRUE(by_device_claim(pod, "resourceclaim \"gpus\" not found").has_value());
    pod.device_claims.clear();
    EXPECT_FALSE(by_device_claim(pod, "resourceclaim").has_value());
}

TEST(KubeWords, OtherPodsAreInTheWay) {
    for (const char* said :
         {"0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules.",
          "0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules.",
          "0/1 nodes are available: 1 node(s) didn't match pod affinity rules.",
          "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints.",
          "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."}) {
        const auto why = by_other_pods(said);
        ASSERT_TRUE(why.has_value()) << said;
        EXPECT_EQ(why->cause, PendingCause::other_pods);
    }
    EXPECT_NE(
        by_other_pods("didn't match pod topology spread constraints (missing required label)")->fix.find("topologyKey"),
        std::string::npos);
    EXPECT_FALSE(by_other_pods("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.").has_value());
}

TEST(KubeWords, WhatTheKubeletSays) {
    KubePod pod{.space = "ml", .name = "a", .node = "g"};
    EXPECT_EQ(by_kubelet(pod).cause, PendingCause::starting);
    pod.waiting = "ContainerCreating";
    EXPECT_EQ(by_kubelet(pod).cause, PendingCause::starting);
    pod.waiting = "ImagePullBackOff";
    pod.waiting_for = "Back-off pulling image \"x.azurecr.io/t:1\"";
    EXPECT_EQ(by_kubelet(pod).cause, PendingCause::image);
    EXPECT_NE(by_kubelet(pod).what.find("x.azurecr.io"), std::string::npos);
    pod.waiting = "CreateContainerConfigError";
    pod.waiting_for = "secret \"hf\" not found";
    EXPECT_EQ(by_kubelet(pod).cause, PendingCause::container);
    pod.waiting = "RunContainerError";
    pod.waiting_for = "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, please update";
    EXPECT_NE(by_kubelet(pod).what.find("driver is too old"), std::string::npos);
}

}  // namespace
}  // namespace stoker

#include "readings/kube_fit.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

KubeNode node(std::string name, double gpus) {
    return {.name = std::move(name), .allocatable = {{"cpu", 90}, {"nvidia.com/gpu", gpus}, {"pods", 110}}};
}
KubePod wants(double gpus) {
    return {.requests = {{"cpu", 1}, {"nvidia.com/gpu", gpus}}};
}

// Two gangs that are told to begin where there is room for one of them wait for each other: nothing is given twice, and
// what does not fit as a whole takes nothing.
TEST(KubeRoom, GivesWhatIsFreeOnce) {
    KubeState state;
    state.nodes = {node("a", 8), node("b", 8), node("cordoned", 8), node("away", 8)};
    state.nodes[2].unschedulable = true;
    state.nodes[3].ready = false;
    KubePod other = wants(4);
    other.name = "other";
    other.node = "b";
    other.phase = "Running";
    state.pods = {other};
    KubeRoom room(state, "default");
    EXPECT_TRUE(room.has("other"));
    EXPECT_FALSE(room.take(wants(8), 2));
    EXPECT_TRUE(room.take(wants(4), 3));
    EXPECT_FALSE(room.take(wants(1), 1));
    EXPECT_FALSE(KubeRoom().take(wants(1), 1));
}

// The scheduler spreads: two halves lie on two nodes, and no whole one is left.
TEST(KubeRoom, IsSpreadAsTheSchedulerDoes) {
    KubeState state;
    state.nodes = {node("a", 8), node("b", 8)};
    KubeRoom room(state, "default");
    EXPECT_TRUE(room.take(wants(4), 2));
    EXPECT_FALSE(room.take(wants(8), 1));
}

// A node that the pod may not be put on is no room for it: by a taint, a label, or its name.
TEST(KubeRoom, IsOnNodesThatThePodMayBePutOn) {
    KubeState state;
    state.nodes = {node("a", 8), node("b", 8)};
    state.nodes[0].taints = {{"sku", "gpu", "NoSchedule"}};
    state.nodes[1].labels = {{"pool", "h100"}};
    EXPECT_FALSE(KubeRoom(state, "").take(wants(8), 2));
    KubePod tolerant = wants(8);
    tolerant.tolerations = {{"sku", "Exists", "", ""}};
    EXPECT_TRUE(KubeRoom(state, "").take(tolerant, 2));
    tolerant.selector = {{"pool", "h100"}};
    EXPECT_FALSE(KubeRoom(state, "").take(tolerant, 2));
    tolerant.selector = {};
    tolerant.affinity = {{{std::string(kNodeNameField), "NotIn", {"b"}}}};
    EXPECT_FALSE(KubeRoom(state, "").take(tolerant, 2));
    EXPECT_TRUE(KubeRoom(state, "").take(tolerant, 1));
}

// With a quota of a few GPUs many gangs would each get a part of it, and none all.
TEST(KubeRoom, EndsWithTheQuotaOfTheNamespace) {
    KubeState state;
    state.nodes = {node("a", 8), node("b", 8)};
    KubeQuota quota{
        .space = "ours", .hard = {{"requests.nvidia.com/gpu", 12}}, .used = {{"requests.nvidia.com/gpu", 2}}};
    state.quotas = {quota};
    KubeRoom room(state, "ours");
    EXPECT_TRUE(room.take(wants(2), 4));
    EXPECT_FALSE(room.take(wants(2), 2));
    EXPECT_TRUE(room.take(wants(2), 1));
    state.quotas[0].space = "theirs";
    EXPECT_TRUE(KubeRoom(state, "ours").take(wants(2), 8));
}

}  // namespace
}  // namespace stoker

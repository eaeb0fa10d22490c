// Which nodes of a Kubernetes take a pod, and how many pods there is room for.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "readings/kube_objects.h"

namespace stoker {

using KubeAmounts = std::map<std::string, double, std::less<>>;  // of resources

// By its labels and name: what the pod selects, and where it must not go.
bool matches_node(const KubePod& pod, const KubeNode& node);
// Those that keep it away, but for what a cordoned node and one that is not ready have.
std::vector<KubeTaint> taints_against(const KubePod& pod, const KubeNode& node);
// What the pods that run hold of each node.
std::map<std::string, KubeAmounts, std::less<>> used_by_nodes(const KubeState& state);

// What is free by the nodes, pods and quotas that were read, less what was taken since. Pods are spread as the
// scheduler does it when nothing else is said: on the node that keeps the largest share free. A guess: it knows of no
// volumes, no affinity between pods, and nothing that came later.
class KubeRoom {
public:
    KubeRoom() = default;  // none
    // space: the namespace whose quotas count.
    KubeRoom(const KubeState& state, const std::string& space);

    // Room of `count` such pods is taken; false: there is none for all of them, and nothing is taken.
    bool take(const KubePod& pod, int count);
    // The pod had a node when this was read.
    bool has(const std::string& pod_name) const { return placed_.count(pod_name) > 0; }

private:
    struct Place {
        KubeNode node;  // allocatable: what is free
        KubeAmounts all;
    };
    Place* best_for(const KubePod& pod, const KubeAmounts& wanted);

    std::vector<Place> places_;
    std::vector<KubeQuota> quotas_;  // hard: what is left
    std::set<std::string, std::less<>> placed_;
};

}  // namespace stoker

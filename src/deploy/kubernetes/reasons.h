// Why a gang waits: its pods, its Job, the nodes and the events read together (readings/kube_pending.h), in our causes
// by data/engines/kubernetes_reasons.tsv.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/cause.h"
#include "base/health.h"
#include "deploy/kubernetes/objects.h"
#include "readings/kube_objects.h"

namespace stoker::kubernetes {

struct WaitReason {
    Cause cause = Cause::engine_queue;
    bool never = false;  // until somebody changes the run or the cluster
    std::string detail;  // what is the matter
    std::string cure{};  // empty: as whoever found it says
    std::string text() const { return cure.empty() ? detail : detail + "; cure: " + cure; }
};
// The row of a word; of one that the table has not: engine_queue.
WaitReason read_reason(std::string_view reason);
// What the cluster knows of a node's health: what its kubelet says, and how many of its GPUs the device plug-in takes
// for sound. It measures nothing itself.
HealthReport report_of_node(const KubeNode& node, HealthLevel level);
// pods: of the gang, that are there. wanted: how many it has.
WaitReason why_it_waits(const JobView& job, const std::vector<PodView>& pods, int wanted, const KubeState& state,
                        bool behind, bool backed_out);

}  // namespace stoker::kubernetes

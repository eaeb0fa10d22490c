// A gang as the Job that is submitted: Indexed, one pod for each node, one container for each of its ranks. The shape
// is that of `stoker deploy --render` (deploy/render/kubernetes.cpp); what comes on top is what the engine needs to
// begin all ranks or none, and to know its own again.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "deploy/driver.h"
#include "deploy/kubernetes/kubernetes_options.h"
#include "deploy/kubernetes/objects.h"
#include "deploy/local/gang_files.h"
#include "readings/kube_objects.h"

namespace stoker::kubernetes {

// What the nodes of the cluster say, for the pods that want GPUs of them.
struct GpuPlace {
    std::string resource;                // "nvidia.com/gpu"; empty: no node has GPUs of this kind
    std::string label;                   // that tells the model; empty: any will do
    std::vector<std::string> products;   // its values
    std::vector<KubeTaint> tolerations;  // taints of these nodes that mark GPU pools, or are allowed by name
    std::string offered;                 // what there is, for a refusal
};
GpuPlace gpu_place(const std::vector<KubeNode>& nodes, const KubernetesOptions& options, const std::string& model);
// The name in the catalogue of what a node has; empty: it does not say.
std::string gpu_model_of(const KubeNode& node, const KubernetesOptions& options);
std::string gpu_resource_of(const KubeNode& node);

// rejected when no cluster could run it.
Outcome check_gang_for_kubernetes(const OperationId& operation, const GangSpec& gang, const KubernetesOptions& options);

// How ranks lie on pods: every pod has as many.
struct PodShape {
    int pods = 1, per_pod = 1;
    bool looked_at = false;  // by a container beside the ranks of each pod (look_script.h)
    // Programs begin when their pod is told to. Always, but for a Job of one pod that an earlier server made.
    bool told = true;
};
PodShape shape_of(const GangSpec& gang);

// Does the path lie where pods and server see the same?
bool is_shared(const KubernetesOptions& options, const std::string& path);

// place: of the largest rank; nothing of it is used for a gang without GPUs.
Json job_manifest(const OperationId& operation, const GangSpec& gang, const GpuPlace& place,
                  const KubernetesOptions& options);
// Through which pods find each other; one for the namespace.
Json rendezvous_service();
std::string container_name(int local_rank);
const ContainerView* container_of(const PodView& pod, int local_rank);  // null: nothing is said of it

// What a Job keeps of its gang for the next server, and back. `shape` is as it was submitted.
std::string kept_gang(const GangSpec& gang);
struct KeptGang {
    LaunchOrder order;  // ranks are empty but for their number
    PodShape shape;
};
Result<KeptGang> read_kept_gang(const OperationId& operation, std::string_view text);

}  // namespace stoker::kubernetes

// The pod of a Deployment, as Job, JobSet, PyTorchJob, MPIJob, RayJob, Deployment and LeaderWorkerSet have it: image,
// program, environment, devices, shared memory, tolerations. YAML text, indented by who takes it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "deploy/deployment.h"
#include "deploy/render/engine_flags.h"

namespace stoker {

// "nvidia.com/gpu"; empty: no plug-in of Kubernetes is known for the vendor.
std::string device_resource(const Deployment& deployment);
int devices_of_pod(const Deployment& deployment);
// The nodes of a gang, or of a replica, talk over InfiniBand, and their pods ask for its ports.
bool pod_takes_infiniband(const Deployment& deployment);  // 0: none

struct PodToWrite {
    std::vector<std::string> command;                              // argv
    std::vector<std::pair<std::string, std::string>> environment;  // beyond work_environment()
    std::vector<std::string> raw_environment;                      // items as YAML, without their first indent
    std::string subdomain, port, probe;                            // probe: a path that is asked at `port`
    std::string restart = "Never";
    bool checkpoints = false;  // the claim NAME-checkpoints at /checkpoints
    int share = 1;             // of so many pods on a node, that share it
    bool server = false;
    std::string image_of = "pytorch";  // whose image, where the file names none
};
// The fields of a PodSpec, from column 0.
std::string pod_spec(const Deployment& deployment, const PodToWrite& pod);

// The pod of one node of a training: torchrun and the file's program.
PodToWrite training_pod(const Deployment& deployment, std::string_view endpoint);
// Of one replica of a service.
PodToWrite serving_pod(const Deployment& deployment, std::string_view engine);
// Of one of several independent shares.
PodToWrite share_pod(const Deployment& deployment);

std::string labels(const std::string& name);       // two lines, from column 0
std::string labels(const Deployment& deployment);  // of its own objects
// The claim that the checkpoints of all nodes go to; empty: there are none.
std::string checkpoint_claim(const Deployment& deployment);

// Why no cluster of Kubernetes runs it; empty: one does.
std::string kube_refusal(const Deployment& deployment);
std::string kube_training_refusal(const Deployment& deployment);

}  // namespace stoker

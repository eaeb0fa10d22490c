// What a Kubernetes engine is told: which cluster, where in it, and on what terms. Read from server.yaml (engines.h).
#pragma once

#include <map>
#include <string>
#include <vector>

namespace stoker {

// A folder that the server and the pods see by the same name.
struct SharedFolder {
    std::string path;   // here and in the pods
    std::string claim;  // PersistentVolumeClaim of the namespace; empty: the node's own folder (hostPath)
    friend bool operator==(const SharedFolder&, const SharedFolder&) = default;
};

struct KubernetesOptions {
    std::string folder;      // of the engine, here: what it keeps of logs
    std::string kubeconfig;  // empty: KUBECONFIG, ~/.kube/config, or the account of the pod that this runs in
    std::string context;     // empty: the current one
    std::string space;       // namespace; empty: that of the context
    std::string image;       // of runs that name none
    std::string queue;       // LocalQueue of Kueue, which then admits; empty: gangs are admitted here, as room is free
    std::string service_account, priority_class;
    std::vector<std::string> pull_secrets;             // names of Secrets, which are not read
    std::map<std::string, std::string> node_selector;  // labels that the nodes must have
    std::vector<std::string> tolerate;                 // keys of taints that runs may ignore, beside those of GPU pools
    std::vector<SharedFolder> shared;
    std::map<std::string, std::string> gpu_models;  // what nodes call their GPU -> name in the catalogue
    int notice_s = 60;                              // between TERM and KILL at an eviction or a drain
    bool measures = true;                           // a container beside the ranks of a pod that tells what they use
    double gang_wait_s = 180;  // how long a gang may hold a part of its nodes before it gives them back
};

}  // namespace stoker

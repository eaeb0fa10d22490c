// What a cluster needs beside the work: namespace with priority, quota and network policy; the device plug-in; what
// measures the GPUs; weights on Blob. Taken by kustomize, aks and on-prem.
#pragma once

#include <string>
#include <vector>

#include "deploy/deployment.h"

namespace stoker {

// Namespace, PriorityClass, ResourceQuota and NetworkPolicy.
std::string namespace_guard(const Deployment& deployment, const std::string& name);
// Of the work's pods, whose class stands in the guard: patches of a kustomization.
std::string priority_patches(const Deployment& deployment, const std::string& name);

// device-plugin.yaml: NVIDIA's plug-in, with the toleration of the taint that our pools have. Nothing where the cluster
// brings it (GKE does), or the GPUs are not NVIDIA's.
bool needs_device_plugin(const Deployment& deployment);
// infiniband.yaml: what offers the InfiniBand ports of a node to pods, as rdma/shared_ib; nothing where none is used.
bool needs_infiniband_plugin(const Deployment& deployment);
// Both.
std::vector<FileToWrite> cluster_plugin_files(const Deployment& deployment);
// Puts NVIDIA's network operator into a cluster, which then reads infiniband.yaml.
std::string network_operator_words();
// What a new cluster wants before the work, as a template cannot say it. `group`: Azure's resource group.
struct ClusterStep {
    std::string reason, command;
};
std::vector<ClusterStep> cluster_steps(const Deployment& deployment, std::string_view group);
// Of AMD's devices, which no file here offers: what does. Empty for others.
std::string amd_operator_hint(const Deployment& deployment);
// They as comments at the head of a template.
std::string cluster_hint(const Deployment& deployment, std::string_view comment, std::string_view group);
// DCGM exporter, the monitors of Azure's Managed Prometheus for it and for a service, and its settings.
std::string azure_monitoring(const Deployment& deployment);

// scaling.yaml of AKS: replicas that follow the requests in flight through KEDA's add-on and Managed Prometheus, read
// by an identity of its own. Words in capitals are what only the cluster knows: the script of aks puts them in. Empty
// where nothing is scaled.
std::string azure_scaling(const Deployment& deployment);

// Weights in a Blob container, read through BlobFuse2 with its cache on the node's own disk: StorageClass and claim,
// and the patches that put the claim in the place of the pods' empty folder, and the service behind a load balancer.
// Empty where it is no service whose replicas take a node each.
std::string blob_weights(const Deployment& deployment, const std::string& name);
std::string azure_service_patches(const Deployment& deployment, const std::string& name);

// The kustomize target's files.
struct KustomizeParts {
    std::vector<FileToWrite> more;  // what else belongs to the base
    std::string patches;
    bool autoscaler = true;  // the service's own; false: something else sets its replicas
};
std::vector<FileToWrite> kustomize_tree(const Deployment& deployment, const KustomizeParts& parts);

// Puts the controller of LeaderWorkerSets into a cluster, for services whose replicas take several nodes; else empty.
std::string leader_worker_set_words(const Deployment& deployment);

}  // namespace stoker

// What kubectl get -o json or -o yaml tells of pods, nodes, events and quotas, as far as it decides why a pod waits.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "readings/tool_reader.h"

namespace stoker {

struct KubeTaint {
    std::string key, value, effect;
    std::string text() const { return value.empty() ? key + ":" + effect : key + "=" + value + ":" + effect; }
};
struct KubeToleration {
    std::string key, op, value, effect;
    bool tolerates(const KubeTaint& taint) const;
};
// The name of a node, as a key of node affinity's matchFields.
inline constexpr std::string_view kNodeNameField = "metadata.name";
struct KubeExpression {
    std::string key, op;
    std::vector<std::string> values;
    bool holds(const std::map<std::string, std::string, std::less<>>& labels) const;
    std::string text() const;
};

struct KubeNode {
    std::string file, name;
    ToolPlace place;
    std::map<std::string, std::string, std::less<>> labels;
    std::vector<KubeTaint> taints;
    bool unschedulable = false, ready = true;
    std::map<std::string, double, std::less<>> allocatable, capacity;  // cpu in cores, memory in bytes
    double gpus() const;                                               // allocatable, of any maker
    bool looks_like_gpu() const;  // by its labels, size or taints: a GPU is there, whatever is allocatable
};

struct KubePod {
    std::string file, space, name, phase, node, scheduler, owner_kind, owner;
    ToolPlace place;
    std::map<std::string, double, std::less<>> requests;
    std::vector<KubeToleration> tolerations;
    std::map<std::string, std::string, std::less<>> selector;
    std::vector<std::vector<KubeExpression>> affinity;  // terms, of which one must hold whole
    bool partial = false;  // of kubectl describe, which leaves out affinity, gates and more
    std::vector<std::string> gates, claims, device_claims;
    std::string condition, reason;        // of PodScheduled
    std::string waiting, waiting_for;     // reason and message of the first container that waits
    std::vector<std::string> gpu_images;  // of the containers that ask for GPUs
    std::string full() const { return space.empty() ? name : space + "/" + name; }
    std::string gpu_resource() const;  // "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"; empty: none
    double gpus() const;
};

struct KubeEvent {
    std::string file, space, kind, name, reason, message, source;
    ToolPlace place;
};
struct KubeQuota {
    std::string file, space, name;
    ToolPlace place;
    std::map<std::string, double, std::less<>> hard, used;
};

struct KubeState {
    std::vector<KubePod> pods;
    std::vector<KubeNode> nodes;
    std::vector<KubeEvent> events;
    std::vector<KubeQuota> quotas;
    std::size_t others = 0;  // objects of other kinds
};

// Of an object Pod, or of what a Job makes its pods from (spec.template).
KubePod kube_pod_of(const Node& object, const std::string& file);
bool is_gpu_resource(std::string_view name);
// "500m", "16Gi", "8"; 0 for what is none.
double kube_quantity(std::string_view text);
// Adds what the file holds: one object, or a List.
Status read_kube_objects(std::string_view text, const std::string& file, KubeState& state);

}  // namespace stoker

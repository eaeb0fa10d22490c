// Which node pools of a bundle a pod may go to, for the rules that join taints and tolerations.
#pragma once

#include "lint/rules/common_containers.h"

namespace stoker::lint {

struct Taint {
    std::string_view key, value, effect;
};
std::optional<Taint> taint_of(std::string_view text);  // key=value:Effect, key:Effect

bool is_gpu_pool(const Resource& pool, const Knowledge& knowledge);
std::vector<const Resource*> gpu_pools(const Bundle& bundle, const Knowledge& knowledge);
// The pool that the pod names in its selector, or all GPU pools that its selector does not rule out.
std::vector<const Resource*> candidate_pools(const Workload& workload, const std::vector<const Resource*>& pools);
// The first taint of the pool that keeps the pod away; null: none does, or one of them is not known.
// `extended`: a taint named like a resource that the pod asks for is tolerated by the API server
// (ExtendedResourceToleration).
const Value* repelling_taint(const Workload& workload, const Resource& pool, bool extended);
bool is_device_plugin(const Workload& workload);  // NVIDIA's, as a DaemonSet

}  // namespace stoker::lint

// kubectl describe pod, job, replicaset: what people paste when they ask for help.
#pragma once

#include <string>
#include <string_view>

#include "readings/kube_objects.h"

namespace stoker {

bool is_kube_describe(std::string_view text);
// Adds the pods, and the events of all objects. What describe does not print (affinity, gates, the scheduler's name) is
// absent.
void read_kube_describe(std::string_view text, const std::string& file, KubeState& state);

}  // namespace stoker

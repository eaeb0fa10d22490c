// Why a pod waits by the words of others than the scheduler's filters: volumes, devices, admission, the kubelet.
#pragma once

#include <optional>
#include <string>

#include "readings/kube_pending.h"

namespace stoker {

std::string in_space(const std::string& space);  // " -n SPACE"; empty: nothing

// The scheduler's reasons without what it says about making room, in quotes.
std::string words_of_scheduler(const std::string& message);

// `message`: what the scheduler says about the pod.
std::optional<PodWait> by_volume(const KubePod& pod, const std::string& message);
std::optional<PodWait> by_device_claim(const KubePod& pod, const std::string& message);
std::optional<PodWait> by_other_pods(const std::string& message);
PodWait by_kubelet(const KubePod& pod);  // it has a node

}  // namespace stoker

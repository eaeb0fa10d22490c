// The service before the model, as Kubernetes has it: pods of its own on nodes without GPUs, scaled by their own CPUs.
#pragma once

#include <string>
#include <string_view>

#include "deploy/deployment.h"

namespace stoker {

// Name of its objects; who calls comes to its Service.
std::string front_name(const Deployment& deployment);
// Deployment, Service, disruption budget and autoscaler, each behind a `---`; empty where there is none.
std::string front_manifests(const Deployment& deployment);
// Of its own pool.
inline constexpr std::string_view kFrontPool = "front";

}  // namespace stoker

// What other targets take of the kubernetes one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "deploy/deployment.h"

namespace stoker {

// All objects of the work, with `---` between them. `autoscaler`: of a service also its own.
std::string kubernetes_manifests(const Deployment& deployment, bool autoscaler = true);
// A training or independent shares. `more_labels`: lines "key: value".
std::string indexed_job(const Deployment& deployment, std::string_view more_labels, bool suspended);

// What an autoscaler of a service goes by; none: one replica does, or its engine tells nothing to go by.
struct ScalingSignal {
    std::string metric;         // of the engine, requests in flight
    double most_in_flight = 0;  // of one replica, within the limits (Little's law)
    int least = 1;              // replicas that stay
};
std::optional<ScalingSignal> scaling_signal(const Deployment& deployment);
// The ScaledObject of KEDA that goes by it. `prometheus`: lines of its trigger that say where the metric is asked for,
// as YAML from column 0; `space`: the namespace, empty where who applies it says it.
std::string scaled_object(const Deployment& deployment, const ScalingSignal& signal, std::string_view prometheus,
                          std::string_view space);
// Deployment, Service and disruption budget of a service on single nodes.
std::string service_manifests(const Deployment& deployment);
std::string manifest_metadata(const Deployment& deployment, std::string_view name);

}  // namespace stoker

// Why a pod waits: the cause among those that there are, from its own words, the nodes and the events.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "readings/kube_objects.h"

namespace stoker {

enum class PendingCause : std::uint8_t {
    taint,           // nodes would do and have a taint that the pod does not tolerate
    no_resource,     // no node offers the resource: no GPU node, no driver, no device plugin, or another name
    not_enough,      // nodes offer it, and too few are free, or none has as many
    quota,           // a ResourceQuota refuses it
    autoscaler,      // more nodes are needed and the autoscaler cannot make one
    selector,        // no node has the labels
    volume,          // a claim that is missing, unbound or in another zone
    other_resource,  // processors, memory, pods
    cordoned,        // nodes are unschedulable or not ready
    other_pods,      // pods that are there or not there: affinity between pods, spreading, ports of the host
    gate,            // a scheduling gate, or a queue that holds it back
    scheduler,       // nobody schedules it
    device_claim,    // a claim on devices (DRA) that no device meets
    refused,         // admission refuses the pod: a PriorityClass or account that is missing, a webhook
    image,           // it is bound, and its image does not come
    container,       // it is bound, and a container cannot be made
    starting,        // it is bound, and pulls an image or waits for a volume
    unknown
};
constexpr std::array<std::pair<PendingCause, std::string_view>, 18> enum_names(PendingCause) {
    return {{{PendingCause::taint, "taint"},
             {PendingCause::no_resource, "no-gpu-resource"},
             {PendingCause::not_enough, "not-enough-gpus"},
             {PendingCause::quota, "quota"},
             {PendingCause::autoscaler, "autoscaler"},
             {PendingCause::selector, "selector"},
             {PendingCause::volume, "volume"},
             {PendingCause::other_resource, "cpu-or-memory"},
             {PendingCause::cordoned, "cordoned"},
             {PendingCause::other_pods, "other-pods"},
             {PendingCause::gate, "gate"},
             {PendingCause::scheduler, "scheduler"},
             {PendingCause::device_claim, "device-claim"},
             {PendingCause::refused, "refused"},
             {PendingCause::image, "image"},
             {PendingCause::container, "container"},
             {PendingCause::starting, "starting"},
             {PendingCause::unknown, "unknown"}}};
}
std::string_view word_of(PendingCause cause);

struct PodWait {
    PendingCause cause = PendingCause::unknown;
    std::string what, fix;  // fix: a command, or the lines of YAML
    std::string open;       // what would say more
};
// Of a pod whose phase is Pending. `state` holds everything that was given.
PodWait why_pending(const KubePod& pod, const KubeState& state);
// Of an event that says that a controller (a Job, a ReplicaSet) could not make a pod.
std::optional<PodWait> why_not_created(const KubeEvent& event, const KubeState& state);

}  // namespace stoker

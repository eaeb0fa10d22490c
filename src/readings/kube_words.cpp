// The words of Kubernetes 1.36: pkg/scheduler/framework/plugins/volumebinding and dynamicresources,
// plugin/pkg/admission, pkg/kubelet/images and kuberuntime (reasons of a container that waits).
#include "readings/kube_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace stoker {
namespace {

// What the API server answered to a controller that wanted to make a pod.
std::optional<PodWait> by_admission(const KubeEvent& event) {
    PodWait why{.cause = PendingCause::refused};
    const std::string quoted = fmt::format("\"{}\"", printable(event.message, 240));
    if (const auto name = trim(between(event.message, "no PriorityClass with name ", " was found")); !name.empty()) {
        why.what = fmt::format("its pod names the PriorityClass {}, which is not there", printable(name, 60));
        why.fix = fmt::format(
            "kubectl get priorityclasses, and one of these in priorityClassName; or make it: kubectl create "
            "priorityclass {} --value=1000",
            printable(name, 60));
    } else if (const auto account = between(event.message, "serviceaccount \"", "\" not found"); !account.empty()) {
        why.what = fmt::format("its pod runs as the service account {}, which is not there", printable(account, 60));
        why.fix = fmt::format("kubectl create serviceaccount {}{}", printable(account, 60), in_space(event.space));
    } else if (const auto hook = between(event.message, "admission webhook \"", "\" denied"); !hook.empty()) {
        why.what = fmt::format("the admission webhook {} refuses its pod: {}", printable(hook, 60), quoted);
        why.fix = "what the webhook says; kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations";
    } else if (contains(event.message, "violates PodSecurity")) {
        why.what = "the namespace's pod security level refuses its pod: " + quoted;
        why.fix = fmt::format(
            "securityContext as the message says, or kubectl label namespace {} --overwrite "
            "pod-security.kubernetes.io/enforce=privileged",
            event.space.empty() ? "NAMESPACE" : event.space);
    } else if (contains(event.message, "forbidden") || contains(event.message, "is invalid")) {
        why.what = "the API server refuses its pod: " + quoted;
        why.fix = fmt::format("kubectl describe {} {}{}", lower(event.kind), event.name, in_space(event.space));
    } else {
        return std::nullopt;
    }
    return why;
}

}  // namespace

std::string in_space(const std::string& space) {
    return space.empty() ? std::string() : " -n " + space;
}

std::string words_of_scheduler(const std::string& message) {
    std::size_t end = message.size();
    for (const std::string_view after : {" preemption:", " no new claims to deallocate", " still not schedulable"})
        end = std::min(end, message.find(after));
    return fmt::format("\"{}\"", printable(trim(std::string_view(message).substr(0, end)), 160));
}

std::optional<PodWait> by_volume(const KubePod& pod, const std::string& message) {
    PodWait why{.cause = PendingCause::volume};
    const std::string quoted = words_of_scheduler(message);
    if (contains(message, "volume node affinity conflict") || contains(message, "NoVolumeZoneConflict") ||
        contains(message, "match PersistentVolume's node affinity")) {
        why.what = "its volume is in another zone than the nodes that would take it: " + quoted;
        why.fix =
            "a StorageClass with volumeBindingMode: WaitForFirstConsumer and a new claim, or a GPU pool in the "
            "volume's zone: "
            "kubectl get pv -o custom-columns=NAME:.metadata.name,ZONE:.spec.nodeAffinity";
    } else if (contains(message, "unbound immediate PersistentVolumeClaims")) {
        why.what = "its claim is bound to no volume: " + quoted;
        why.fix = "kubectl describe pvc " + (pod.claims.empty() ? std::string("CLAIM") : pod.claims.front()) +
                  ": a storage class that is there, and its provisioner";
    } else if (contains(message, "persistentvolumeclaim") && contains(message, "not found")) {
        why.what = "a claim that it mounts is not there: " + quoted;
        why.fix = fmt::format(
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: {}\nspec:\n  accessModes: "
            "[ReadWriteOnce]\n  resources:\n    requests:\n      storage: 100Gi",
            pod.claims.empty() ? std::string("NAME") : pod.claims.front());
    } else {
        return std::nullopt;
    }
    return why;
}

std::optional<PodWait> by_device_claim(const KubePod& pod, const std::string& message) {
    if (!contains(message, "cannot allocate all claims") &&
        (pod.device_claims.empty() || (!contains(message, "resourceclaim") && !contains(message, "ResourceClaim"))))
        return std::nullopt;
    PodWait why{.cause = PendingCause::device_claim};
    const std::string quoted = words_of_scheduler(message);
    const bool absent = contains(message, "not found") || contains(message, "to create the");
    const std::string names = pod.device_claims.empty()
                                  ? std::string()
                                  : fmt::format(" (spec.resourceClaims: {})", cut(join(pod.device_claims, ", "), 60));
    why.what = fmt::format(
        "{}{}: {}",
        absent ? "a claim on devices that it names is not there" : "no node has free devices for its claims", names,
        quoted);
    why.fix = fmt::format(
        "kubectl get resourceslices,deviceclasses shows what drivers offer (no slice: no DRA driver on the nodes); "
        "kubectl get resourceclaims{} -o yaml shows who holds it and what is asked for",
        in_space(pod.space));
    return why;
}

std::optional<PodWait> by_other_pods(const std::string& message) {
    struct Rule {
        std::string_view words, what, fix;
    };
    static constexpr Rule rules[] = {
        {"anti-affinity rules", "pods that run already keep it from the nodes that would do (podAntiAffinity)",
         "as many nodes as there are such pods, or preferredDuringSchedulingIgnoredDuringExecution in podAntiAffinity"},
        {"pod affinity rules", "the pods that it wants to be near run on no node that would do (podAffinity)",
         "kubectl get pods -A -o wide --show-labels: start those first, or take podAffinity out"},
        {"topology spread constraints (missing", "no node that would do has the label of its topologySpreadConstraints",
         "a topologyKey that the nodes have (topology.kubernetes.io/zone, kubernetes.io/hostname)"},
        {"topology spread constraints",
         "on the nodes that would do it would be spread unevenly (topologySpreadConstraints)",
         "nodes in the other zones too, a larger maxSkew, or whenUnsatisfiable: ScheduleAnyway"},
        {"free ports", "another pod holds its hostPort on the nodes that would do",
         "take hostPort out (a Service reaches the pod without it), or as many nodes as there are such pods"},
    };
    for (const Rule& rule : rules)
        if (contains(message, rule.words))
            return PodWait{.cause = PendingCause::other_pods,
                           .what = fmt::format("{}: {}", rule.what, words_of_scheduler(message)),
                           .fix = std::string(rule.fix)};
    return std::nullopt;
}

// It has a node: what the kubelet says.
PodWait by_kubelet(const KubePod& pod) {
    const std::string describe = fmt::format("kubectl describe pod {}{}", pod.name, in_space(pod.space));
    const std::string said = pod.waiting + (pod.waiting_for.empty() ? "" : ": " + printable(pod.waiting_for, 160));
    if (pod.waiting == "ErrImagePull" || pod.waiting == "ImagePullBackOff" || pod.waiting == "InvalidImageName" ||
        pod.waiting == "ErrImageNeverPull")
        return {.cause = PendingCause::image,
                .what = fmt::format("it has a node ({}) and its image does not come: \"{}\"", pod.node, said),
                .fix =
                    "look at registry, name and tag; of a private registry the nodes need a right: az aks update -g "
                    "GROUP -n CLUSTER --attach-acr REGISTRY, or imagePullSecrets; " +
                    describe};
    if (contains(pod.waiting_for, "unsatisfied condition"))
        return {.cause = PendingCause::container,
                .what = fmt::format("it has a node ({}) whose driver is too old for its image: \"{}\"", pod.node, said),
                .fix =
                    "a newer driver on the nodes (GPU operator: driver.version; AKS: a newer node image), or an image "
                    "for an older CUDA"};
    if (pod.waiting == "CreateContainerConfigError")
        return {.cause = PendingCause::container,
                .what = fmt::format("it has a node ({}) and names something that is not there: \"{}\"", pod.node, said),
                .fix = "make the ConfigMap or Secret that it names: " + describe};
    if (pod.waiting == "CreateContainerError" || pod.waiting == "RunContainerError")
        return {.cause = PendingCause::container,
                .what = fmt::format("it has a node ({}) and a container cannot be made: \"{}\"", pod.node, said),
                .fix = describe};
    return {.cause = PendingCause::starting,
            .what = fmt::format("it has a node ({}) and its containers do not run yet: {}", pod.node,
                                pod.waiting.empty() || pod.waiting == "ContainerCreating"
                                    ? std::string("an image that is pulled, or a volume")
                                    : said),
            .fix = describe};
}

std::optional<PodWait> why_not_created(const KubeEvent& event, const KubeState& state) {
    (void)state;
    const std::size_t at = event.message.find("exceeded quota:");
    if (at == std::string::npos) return event.reason == "FailedCreate" ? by_admission(event) : std::nullopt;
    // "exceeded quota: gpus, requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=8, limited: ...=8"
    const std::string_view rest = std::string_view(event.message).substr(at);
    const std::string name(trim(between(rest, "exceeded quota:", ",")));
    const std::string requested(trim(between(rest, "requested:", ", used:"))),
        used(trim(between(rest, "used:", ", limited:"))), limited(trim(between(rest, "limited:", "")));
    PodWait why{.cause = PendingCause::quota};
    why.what = fmt::format("the ResourceQuota {}{} refuses its pod: requested {}, used {}, limit {}",
                           event.space.empty() ? "" : event.space + "/", printable(name, 60), printable(requested, 80),
                           printable(used, 80), printable(limited, 80));
    const std::string_view resource = std::string_view(limited).substr(0, limited.find('='));
    why.fix = fmt::format(
        "wait until others end, or raise it: kubectl patch resourcequota {}{} --type merge -p "
        "'{{\"spec\":{{\"hard\":{{\"{}\":\"N\"}}}}}}'",
        printable(name, 60), in_space(event.space), printable(resource, 60));
    return why;
}

}  // namespace stoker

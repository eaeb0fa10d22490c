// The words of the scheduler: Kubernetes 1.34 to 1.36 (pkg/scheduler/framework/types.go, FitError; plugins/*), recorded
// from a cluster of tests/kube (tests/e2e/kube_pending_test.py); of the autoscaler: kubernetes/autoscaler,
// cluster-autoscaler/processors/ status/eventing_scale_up_processor.go.
#include "readings/kube_pending.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "readings/kube_fit.h"
#include "readings/kube_words.h"

namespace stoker {
namespace {

// All that was said about the pod: the condition, and the events on it or on what owns it.
struct Heard {
    std::string scheduler;   // FailedScheduling, or the condition's message
    std::string autoscaler;  // NotTriggerScaleUp, FailedScaleUp
    bool scaling = false;    // TriggeredScaleUp
};

Heard heard_of(const KubePod& pod, const KubeState& state) {
    Heard heard;
    heard.scheduler = pod.condition;
    for (const KubeEvent& event : state.events) {
        if (event.name != pod.name || (!event.space.empty() && !pod.space.empty() && event.space != pod.space))
            continue;
        if (event.reason == "FailedScheduling" && heard.scheduler.empty()) heard.scheduler = event.message;
        if (event.reason == "NotTriggerScaleUp" || event.reason == "FailedScaleUp" || event.reason == "ScaleUpFailed")
            heard.autoscaler = event.message;
        if (event.reason == "TriggeredScaleUp") heard.scaling = true;
    }
    return heard;
}

// Why one node does not take the pod. The order is from what is nearest to fitting.
struct NodeFit {
    const KubeNode* node = nullptr;
    bool cordoned = false, mismatched = false, lacks_resource = false, too_small = false, taken = false, other = false;
    std::vector<KubeTaint> taints;
    double free = 0, all = 0;
    std::string other_name;
    int faults() const {
        return cordoned + mismatched + lacks_resource + too_small + taken + other + (taints.empty() ? 0 : 1);
    }
};

NodeFit fit_of(const KubePod& pod, const KubeNode& node,
               const std::map<std::string, KubeAmounts, std::less<>>& used_by_node) {
    NodeFit fit{.node = &node};
    fit.cordoned = node.unschedulable || !node.ready;
    fit.mismatched = !matches_node(pod, node);
    fit.taints = taints_against(pod, node);
    static const KubeAmounts nothing;
    const auto known = used_by_node.find(node.name);
    const KubeAmounts& used = known == used_by_node.end() ? nothing : known->second;
    const std::string gpu = pod.gpu_resource();
    for (const auto& [name, wanted] : pod.requests) {
        const auto found = node.allocatable.find(name);
        const double all = found == node.allocatable.end() ? 0 : found->second;
        const auto held = used.find(name);
        const double free = all - (held == used.end() ? 0 : held->second);
        if (name == gpu) {
            fit.all = all;
            fit.free = std::max(free, 0.0);
            fit.lacks_resource = all <= 0;
            fit.too_small = all > 0 && wanted > all;
            fit.taken = all >= wanted && wanted > free;
        } else if (wanted > free && (found != node.allocatable.end() || name.find('/') != std::string::npos)) {
            fit.other = true;
            if (fit.other_name.empty()) fit.other_name = name;
        }
    }
    return fit;
}

std::string toleration_yaml(const std::vector<KubeTaint>& taints) {
    std::string yaml = "tolerations:";
    for (const KubeTaint& taint : taints) {
        yaml += fmt::format("\n- key: {}\n  operator: {}", taint.key, taint.value.empty() ? "Exists" : "Equal");
        if (!taint.value.empty()) yaml += fmt::format("\n  value: \"{}\"", taint.value);
        yaml += "\n  effect: " + taint.effect;
    }
    return yaml;
}

std::string selector_text(const KubePod& pod) {
    std::vector<std::string> parts;
    for (const auto& [key, value] : pod.selector) parts.push_back(key + "=" + value);
    for (const auto& term : pod.affinity)
        for (const KubeExpression& each : term) parts.push_back(each.text());
    return cut(join(parts, ", "), 120);
}

// The release that K8S011 takes for the newest (data/lint/facts.tsv; NVIDIA/k8s-device-plugin CHANGELOG.md, 2026-08).
const char* kPluginFix =
    "kubectl get pods -A | grep -i -e device-plugin -e gpu-operator; install one: helm install gpu-operator "
    "nvidia/gpu-operator -n gpu-operator --create-namespace, or kubectl create -f "
    "https://raw.githubusercontent.com/NVIDIA/k8s-device-plugin/v0.20.0/deployments/static/nvidia-device-plugin.yml; "
    "then kubectl describe node NODE | grep nvidia.com/gpu";

const char* kSickFix =
    "kubectl logs -A -l app.kubernetes.io/name=nvidia-device-plugin --tail 50 names the device and its Xid; on the "
    "node "
    "dmesg | grep -i xid and nvidia-smi -q -d ECC,ROW_REMAPPER; a driver that was updated under the plugin needs a "
    "restart of the node";

// No node offers the resource: which of the reasons.
PodWait no_resource(const KubePod& pod, const KubeState& state) {
    PodWait why{.cause = PendingCause::no_resource};
    const std::string wanted = pod.gpu_resource();
    std::size_t gpu_nodes = 0, sick_nodes = 0;
    double sick = 0;
    std::string offered;
    const KubeNode* tainted = nullptr;
    for (const KubeNode& node : state.nodes) {
        gpu_nodes += node.looks_like_gpu() ? 1U : 0U;
        if (node.looks_like_gpu() && !node.taints.empty()) tainted = &node;
        // The plug-in told of them, and takes none of them for well.
        if (const auto all = node.capacity.find(wanted); all != node.capacity.end() && all->second > 0) {
            sick_nodes += 1;
            sick += all->second;
        }
        for (const auto& [name, value] : node.allocatable)
            if (value > 0 && is_gpu_resource(name) && !contains(offered, name))
                offered += (offered.empty() ? "" : ", ") + name;
    }
    if (!offered.empty()) {
        why.what = fmt::format("no node offers {}; what is offered is {}", wanted, offered);
        why.fix = fmt::format("resources:\n  limits:\n    {}: {:g}", offered.substr(0, offered.find(',')), pod.gpus());
    } else if (sick_nodes > 0) {
        why.what = fmt::format("{} of {} {} {:g} {} and offer{} none: the device plugin takes every one for unhealthy",
                               counted(sick_nodes, "node"), state.nodes.size(), sick_nodes == 1 ? "has" : "have", sick,
                               wanted, sick_nodes == 1 ? "s" : "");
        why.fix = kSickFix;
    } else if (gpu_nodes > 0) {
        why.what = fmt::format("{} of {} and none offers {}: no device plugin, or no driver on the node",
                               counted(gpu_nodes, "node"), state.nodes.size(), wanted) +
                   " (by their labels they have GPUs)";
        why.fix = kPluginFix;
        if (tainted != nullptr)
            why.fix += fmt::format("; the plugin's DaemonSet must tolerate {}", tainted->taints.front().text());
    } else {
        why.what =
            fmt::format("none of {} has a GPU: {} is offered nowhere", counted(state.nodes.size(), "node"), wanted);
        why.fix =
            "add a pool of GPU nodes: az aks nodepool add -g GROUP --cluster-name CLUSTER -n gpu --node-vm-size "
            "Standard_NC4as_T4_v3 --node-count 1 --node-taints sku=gpu:NoSchedule";
    }
    return why;
}

PodWait not_enough(const KubePod& pod, const std::vector<NodeFit>& fits) {
    PodWait why{.cause = PendingCause::not_enough};
    double most = 0, free = 0, total_free = 0;
    std::size_t offering = 0;
    for (const NodeFit& fit : fits) {
        most = std::max(most, fit.all);
        free = std::max(free, fit.free);
        total_free += fit.free;
        offering += fit.all > 0 ? 1U : 0U;
    }
    if (pod.gpus() > most) {
        why.what =
            fmt::format("it asks for {:g} {} and no node has more than {:g}", pod.gpus(), pod.gpu_resource(), most);
        why.fix = fmt::format(
            "resources:\n  limits:\n    {}: {:g}\n(and {:g} such pods, as a Job with parallelism or a JobSet), or a "
            "larger size",
            pod.gpu_resource(), most, std::max(1.0, pod.gpus() / std::max(most, 1.0)));
    } else {
        why.what =
            fmt::format("it asks for {:g} {}; {} offering it have at most {:g} free together on one, {:g} in all",
                        pod.gpus(), pod.gpu_resource(), counted(offering, "node"), free, total_free);
        why.fix =
            "wait for a job to end, or more nodes: az aks nodepool scale -g GROUP --cluster-name CLUSTER -n POOL "
            "--node-count N; kubectl get pods -A -o wide --field-selector status.phase=Running shows who holds them";
        if (total_free >= pod.gpus()) why.what += ": they are free on different nodes (fragmented)";
    }
    return why;
}

PodWait by_taint(const KubePod& pod, const std::vector<KubeTaint>& taints, std::size_t nodes) {
    PodWait why{.cause = PendingCause::taint};
    std::vector<std::string> names;
    for (const KubeTaint& taint : taints) names.push_back(taint.text());
    why.what = fmt::format("{} would take it and {} a taint that it does not tolerate: {}", counted(nodes, "node"),
                           nodes == 1 ? "has" : "have", join(names, ", "));
    why.fix = toleration_yaml(taints);
    (void)pod;
    return why;
}

// A label's value as YAML that is text: 1 and true are none.
std::string label_yaml(std::string_view value) {
    const bool plain = !value.empty() && std::isalpha(static_cast<unsigned char>(value.front())) != 0;
    for (const std::string_view word : {"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
        if (equals_ignore_case(value, word)) return fmt::format("\"{}\"", value);
    return plain ? std::string(value) : fmt::format("\"{}\"", value);
}

// The nodes that would do but for their labels; all, when there is none.
std::vector<const KubeNode*> nodes_with_gpus(const KubePod& pod, const KubeState& state) {
    std::vector<const KubeNode*> enough, all;
    const std::string gpu = pod.gpu_resource();
    for (const KubeNode& node : state.nodes) {
        all.push_back(&node);
        const auto found = node.allocatable.find(gpu);
        if (!gpu.empty() && found != node.allocatable.end() && found->second >= pod.gpus()) enough.push_back(&node);
    }
    return enough.empty() ? all : enough;
}

// What the nodes have for a key; nothing when one of them has a value that is wanted.
struct LabelValues {
    bool met = false;
    std::vector<std::string> there;
};
LabelValues values_of_label(const std::vector<const KubeNode*>& nodes, const std::string& key,
                            const std::vector<std::string>& wanted) {
    LabelValues values;
    for (const KubeNode* node : nodes) {
        const auto found = node->labels.find(key);
        if (found == node->labels.end()) continue;
        values.met = values.met || std::find(wanted.begin(), wanted.end(), found->second) != wanted.end();
        if (std::find(values.there.begin(), values.there.end(), found->second) == values.there.end())
            values.there.push_back(found->second);
    }
    return values;
}

PodWait by_selector(const KubePod& pod, const KubeState& state) {
    PodWait why{.cause = PendingCause::selector};
    why.what = "no node with what it asks for has the labels of its selector or affinity: " + selector_text(pod);
    // The value that nodes have for the same key says what was meant.
    const auto nodes = nodes_with_gpus(pod, state);
    const auto propose = [&](const std::string& key, const std::vector<std::string>& wanted, bool expression) {
        const LabelValues values = values_of_label(nodes, key, wanted);
        if (values.met || !why.fix.empty() || wanted.empty()) return;
        if (values.there.empty()) {
            why.what += fmt::format("; no node has the label {}", key);
            why.fix = fmt::format("kubectl label node NODE {}={}, or take it out of {}", key, wanted.front(),
                                  expression ? "nodeAffinity" : "nodeSelector");
            return;
        }
        why.what += fmt::format("; for {} nodes have {}", key, cut(join(values.there, ", "), 60));
        const std::string value = label_yaml(values.there.front());
        why.fix = expression ? fmt::format("matchExpressions:\n- key: {}\n  operator: In\n  values: [{}]", key, value)
                             : fmt::format("nodeSelector:\n  {}: {}", key, value);
    };
    for (const auto& [key, value] : pod.selector) propose(key, {value}, false);
    // Of several terms one is enough: a proposal for the first would only be one of many.
    if (pod.affinity.size() == 1)
        for (const KubeExpression& each : pod.affinity.front())
            if (each.op == "In") propose(each.key, each.values, true);
    if (why.fix.empty())
        why.fix = "kubectl get nodes --show-labels; then nodeSelector or nodeAffinity with what is there";
    return why;
}

PodWait by_autoscaler(const std::string& message, PodWait behind) {
    PodWait why{.cause = PendingCause::autoscaler};
    why.what = fmt::format("{}; the autoscaler adds no node: \"{}\"", behind.what, printable(message, 160));
    if (contains(message, "max node group size reached") || contains(message, "max limit reached"))
        why.fix =
            "raise the pool's most: az aks nodepool update -g GROUP --cluster-name CLUSTER -n POOL "
            "--update-cluster-autoscaler --min-count 0 --max-count N";
    else if (contains(message, "backoff"))
        why.fix =
            "the last attempt to make a node failed (quota or capacity): az vm list-usage --location REGION -o table, "
            "az vm list-skus --location REGION --size SIZE --all -o table; kubectl -n kube-system get events | grep -i "
            "scaleup";
    else if (contains(message, "taint"))
        why.fix = behind.fix.empty() ? "a toleration for the pool's taint" : behind.fix;
    else if (contains(message, "quota") || contains(message, "Quota"))
        why.fix = "ask for quota: portal, Subscriptions -> Usage + quotas, the family of the pool's size";
    else if (contains(message, "affinity") || contains(message, "selector"))
        why.fix =
            "no pool's nodes would have the labels: set them on the pool (az aks nodepool update --labels KEY=VALUE)";
    else if (contains(message, "Insufficient"))
        why.fix = "no pool's size has what one pod asks for: a larger size, or ask for less";
    else
        why.fix =
            "kubectl -n kube-system get cm cluster-autoscaler-status -o yaml; is there a pool of GPU nodes with "
            "autoscaling on?";
    return why;
}

// From the scheduler's sentence alone.
PodWait by_words(const KubePod& pod, const std::string& message) {
    PodWait why;
    const std::string gpu = pod.gpu_resource();
    const std::string quoted = words_of_scheduler(message);
    const bool tainted = contains(message, "untolerated taint") || contains(message, "had taint");
    // Kubernetes adds those of node.kubernetes.io itself, and AKS the one that is named like the resource.
    const bool tolerates_own = std::any_of(
        pod.tolerations.begin(), pod.tolerations.end(),
        [&](const KubeToleration& each) { return !each.key.starts_with("node.kubernetes.io/") && each.key != gpu; });
    const bool short_of_gpus = !gpu.empty() && contains(message, "Insufficient " + gpu);
    // Of both, the taint: nodes with GPUs mostly have one, and nodes without GPUs are short of them.
    if (short_of_gpus && !(tainted && !tolerates_own)) {
        why.cause = PendingCause::not_enough;
        why.what = fmt::format("no node has {:g} {} free: {}", pod.gpus(), gpu, quoted);
        if (!is_gpu_resource(gpu)) {
            why.cause = PendingCause::no_resource;
            why.what = fmt::format("{} is no resource that a device plugin offers: {}", gpu, quoted);
            why.fix = fmt::format("resources:\n  limits:\n    nvidia.com/gpu: {:g}", pod.gpus());
        } else {
            why.fix =
                "kubectl describe nodes | grep -A8 Allocatable: none at all means no device plugin, else they are "
                "taken";
            why.open = "whether the GPUs are taken or no node offers any: add kubectl get nodes -o json";
        }
        if (tainted) why.what += "; other nodes have a taint that it does not tolerate";
    } else if (tainted) {
        why.cause = PendingCause::taint;
        why.what = "nodes have a taint that it does not tolerate: " + quoted;
        const std::string_view named = between(message, "taint {", "}");  // before 1.34: {sku: gpu}
        const std::size_t colon = named.find(':');
        if (colon != std::string_view::npos) {
            const std::string value(trim(named.substr(colon + 1)));
            why.fix = toleration_yaml({{std::string(trim(named.substr(0, colon))), value, "NoSchedule"}});
        } else {
            why.fix = toleration_yaml({{"sku", "gpu", "NoSchedule"}}) +
                      "\n(with the taint's own key and value: kubectl get nodes -o "
                      "custom-columns=NAME:.metadata.name,TAINTS:.spec.taints)";
            why.open = "which taint: add kubectl get nodes -o json";
        }
    } else if (contains(message, "node affinity/selector") || contains(message, "node selector")) {
        why.cause = PendingCause::selector;
        why.what = "no node has the labels of its selector or affinity (" + selector_text(pod) + "): " + quoted;
        why.fix = "kubectl get nodes --show-labels; then nodeSelector or nodeAffinity with what is there";
    } else if (auto others = by_other_pods(message)) {
        why = std::move(*others);
    } else if (contains(message, "Insufficient ")) {
        why.cause = PendingCause::other_resource;
        why.what = "no node has enough of another resource free: " + quoted;
        why.fix = "ask for less processor or memory for each GPU: kubectl describe node NODE shows what is allocatable";
    } else if (contains(message, "were unschedulable") || contains(message, "not-ready")) {
        why.cause = PendingCause::cordoned;
        why.what = "nodes are cordoned or not ready: " + quoted;
        why.fix = "kubectl get nodes; kubectl uncordon NODE";
    } else {
        if (message.empty() && pod.partial)
            why.open = "why it waits: of several pods at once kubectl describe prints no events; describe each alone";
        why.what = message.empty() ? std::string("nothing is said about why") : "the scheduler says: " + quoted;
        why.fix = fmt::format("kubectl describe pod {}{}", pod.name, in_space(pod.space));
    }
    return why;
}

// With the nodes at hand: the cause is what keeps it from the node that is nearest to taking it.
PodWait by_nodes(const KubePod& pod, const KubeState& state, const Heard& heard) {
    std::vector<NodeFit> fits;
    const auto used = used_by_nodes(state);
    for (const KubeNode& node : state.nodes) fits.push_back(fit_of(pod, node, used));
    const std::string gpu = pod.gpu_resource();
    if (!gpu.empty() && std::all_of(fits.begin(), fits.end(), [](const NodeFit& fit) { return fit.lacks_resource; }))
        return no_resource(pod, state);
    const NodeFit* nearest = nullptr;
    for (const NodeFit& fit : fits) {
        if (fit.lacks_resource) continue;
        if (nearest == nullptr || fit.faults() < nearest->faults() ||
            (fit.faults() == nearest->faults() && fit.free > nearest->free))
            nearest = &fit;
    }
    if (nearest == nullptr) return by_words(pod, heard.scheduler);
    if (nearest->faults() == 0) {
        if (auto others = by_other_pods(heard.scheduler)) return *others;
        PodWait why = by_words(pod, heard.scheduler);
        why.what += fmt::format("; node {} has what it asks for, as far as these files show", nearest->node->name);
        if (why.cause == PendingCause::not_enough || why.cause == PendingCause::unknown)
            why.open = "who holds the GPUs: add kubectl get pods -A -o json, of the same minute as the nodes";
        if (pod.partial) return by_words(pod, heard.scheduler);
        // Words that the nodes contradict are older than the nodes.
        if (why.cause == PendingCause::taint || why.cause == PendingCause::selector) {
            why.cause = PendingCause::unknown;
            why.fix = fmt::format("look again: kubectl describe pod {}{}", pod.name, in_space(pod.space));
        }
        return why;
    }
    std::size_t alike = 0;
    for (const NodeFit& fit : fits)
        alike += !fit.lacks_resource && fit.faults() == nearest->faults() && fit.taints.size() == nearest->taints.size()
                     ? 1U
                     : 0U;
    PodWait why;
    std::string also;
    if (!nearest->taints.empty()) {
        why = by_taint(pod, nearest->taints, alike);
        if (nearest->taken || nearest->too_small) also = "; its GPUs are not free either";
        if (nearest->mismatched) also += "; nor has it the labels of the selector: " + selector_text(pod);
    } else if (nearest->mismatched) {
        why = by_selector(pod, state);
    } else if (nearest->too_small || nearest->taken) {
        why = not_enough(pod, fits);
    } else if (nearest->cordoned) {
        why.cause = PendingCause::cordoned;
        why.what = fmt::format("node {} would take it and is {}", nearest->node->name,
                               nearest->node->unschedulable ? "cordoned" : "not ready");
        why.fix = nearest->node->unschedulable ? "kubectl uncordon " + nearest->node->name
                                               : "kubectl describe node " + nearest->node->name;
    } else {
        why.cause = PendingCause::other_resource;
        why.what = fmt::format("node {} has too little {} free for the {:g} that it asks for", nearest->node->name,
                               nearest->other_name, pod.requests.find(nearest->other_name)->second);
        why.fix = fmt::format("ask for less: resources.requests.{}; kubectl describe node {}", nearest->other_name,
                              nearest->node->name);
    }
    why.what += also;
    return why;
}

}  // namespace

std::string_view word_of(PendingCause cause) {
    return enum_names(cause)[static_cast<std::size_t>(cause)].second;
}

PodWait why_pending(const KubePod& pod, const KubeState& state) {
    if (!pod.node.empty()) return by_kubelet(pod);
    if (!pod.gates.empty() || pod.reason == "SchedulingGated")
        return {
            .cause = PendingCause::gate,
            .what = "a scheduling gate holds it back: " +
                    (pod.gates.empty() ? std::string("unnamed") : join(pod.gates, ", ")),
            .fix = fmt::format(
                "its owner removes it; kueue.x-k8s.io: kubectl get workloads -A says what it waits for. When nobody "
                "does: kubectl patch pod {}{} --type json -p "
                "'[{{\"op\":\"remove\",\"path\":\"/spec/schedulingGates\"}}]'",
                pod.name, in_space(pod.space))};
    const Heard heard = heard_of(pod, state);
    if (contains(heard.scheduler, "exceeded quota")) {
        KubeEvent event{.space = pod.space, .kind = "Pod", .name = pod.name, .message = heard.scheduler};
        if (auto why = why_not_created(event, state)) return *why;
    }
    if (auto why = by_volume(pod, heard.scheduler)) return *why;
    if (auto why = by_device_claim(pod, heard.scheduler)) return *why;
    if (heard.scheduler.empty() && heard.autoscaler.empty() && !pod.scheduler.empty() &&
        pod.scheduler != "default-scheduler")
        return {
            .cause = PendingCause::scheduler,
            .what = fmt::format("nobody says anything about it: its scheduler \"{}\" may not run", pod.scheduler),
            .fix = fmt::format("kubectl get pods -A | grep {}; or make it again without spec.schedulerName, for the "
                               "default-scheduler",
                               pod.scheduler)};
    PodWait why = state.nodes.empty() ? by_words(pod, heard.scheduler) : by_nodes(pod, state, heard);
    const bool more_nodes = why.cause == PendingCause::not_enough || why.cause == PendingCause::no_resource ||
                            why.cause == PendingCause::other_resource || why.cause == PendingCause::unknown;
    if (!heard.autoscaler.empty() && (more_nodes || state.nodes.empty()) && !heard.scaling) {
        // A taint or a selector is the pod's own fault, whatever the autoscaler says.
        if (more_nodes || why.cause == PendingCause::unknown) return by_autoscaler(heard.autoscaler, std::move(why));
    }
    if (heard.scaling && more_nodes) {
        why.what += "; the autoscaler is adding a node (TriggeredScaleUp)";
        why.fix = "wait 5 to 10 minutes for the node and its driver, then look again";
    }
    return why;
}

}  // namespace stoker

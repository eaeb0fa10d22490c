// kubectl get pods, nodes, events, resourcequotas -o json or -o yaml: the pods that wait, and nodes whose GPUs are not
// offered.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "readings/kube_pending.h"

namespace stoker {
namespace {

void judge_node(ReadingBuilder& out, const KubeNode& node) {
    const auto gpu = [](const auto& entry) { return is_gpu_resource(entry.first) && entry.second > 0; };
    const bool offers = std::any_of(node.allocatable.begin(), node.allocatable.end(), gpu);
    if (!node.ready)
        out.check("node-ready", node.place,
                  {.verdict = HealthVerdict::fail,
                   .message = fmt::format("node {} is not ready", node.name),
                   .fix = "kubectl describe node " + node.name + "; journalctl -u kubelet on it",
                   .peer = node.name});
    // Told by a plugin before, and not offered: that is about devices, not about a plugin that is missing.
    const bool registered = std::any_of(node.capacity.begin(), node.capacity.end(), gpu);
    if (!offers && !registered && node.looks_like_gpu())
        out.check("node-gpus", node.place,
                  {.verdict = HealthVerdict::fail,
                   .message = fmt::format(
                       "node {} has GPUs by its labels and offers none: no device plugin, no driver, or the "
                       "plugin does not tolerate its taints",
                       node.name),
                   .fix = fmt::format(
                       "kubectl get pods -A -o wide --field-selector spec.nodeName={} | grep -i nvidia; nvidia-smi "
                       "on the node",
                       node.name),
                   .peer = node.name});
    for (const auto& [name, all] : node.capacity) {
        if (!is_gpu_resource(name)) continue;
        const auto found = node.allocatable.find(name);
        const double left = found == node.allocatable.end() ? 0 : found->second;
        if (left < all)
            out.check(
                "node-gpus", node.place,
                {.verdict = left > 0 ? HealthVerdict::warn : HealthVerdict::fail,
                 .message = fmt::format("node {} offers {:g} of {:g} {}: the device plugin found {} unhealthy",
                                        node.name, left, all, name,
                                        left > 0  ? "the others"
                                        : all > 1 ? "every one of them"
                                                  : "it"),
                 .fix =
                     "kubectl logs of the device plugin on it; dmesg | grep -i xid; nvidia-smi -q -d ECC,ROW_REMAPPER",
                 .peer = node.name,
                 .measured = left,
                 .expected = all,
                 .unit = "count",
                 .source = "the node's own capacity"});
        else if (left > 0)
            out.check("node-gpus", node.place,
                      {.verdict = HealthVerdict::pass,
                       .message = fmt::format("node {} offers {:g} {}", node.name, left, name),
                       .peer = node.name,
                       .measured = left,
                       .unit = "count"});
    }
    for (const KubeTaint& taint : node.taints) out.fact("taint of " + node.name, taint.text());
}

// Work without a GPU where GPUs are paid for: what it takes of processors and memory keeps GPU work away.
void judge_tenants(ReadingBuilder& out, const KubeNode& node, const KubeState& state) {
    if (node.gpus() <= 0) return;
    double cpus = 0;
    std::vector<std::string> names;
    for (const KubePod& pod : state.pods) {
        // What a DaemonSet or the system puts on each node belongs there.
        if (pod.node != node.name || pod.phase != "Running" || pod.gpus() > 0 || pod.owner_kind == "DaemonSet" ||
            pod.owner_kind == "Node" || pod.space == "kube-system" || pod.space == "gpu-operator" || pod.partial)
            continue;
        const auto asked = pod.requests.find("cpu");
        cpus += asked == pod.requests.end() ? 0 : asked->second;
        names.push_back(pod.full());
    }
    if (names.empty()) return;
    const std::size_t count = names.size();
    if (count > 3) names.resize(3);
    out.check("node-tenants", node.place,
              {.verdict = HealthVerdict::warn,
               .message = fmt::format("node {} with {:g} GPUs runs {} that ask{} for none ({:g} CPUs in all): {}{}",
                                      node.name, node.gpus(), counted(count, "pod"), count == 1 ? "s" : "", cpus,
                                      join(names, ", "), count > 3 ? ", ..." : ""),
               .fix = fmt::format("kubectl taint nodes {} sku=gpu:NoSchedule keeps them off (AKS: --node-taints of the "
                                  "pool), and GPU pods tolerate it",
                                  node.name),
               .peer = node.name,
               .measured = static_cast<double>(count),
               .expected = 0,
               .unit = "count"});
}

// Only requests.* of an extended resource is counted by a ResourceQuota.
void judge_quota(ReadingBuilder& out, const KubeQuota& quota) {
    for (const auto& [name, hard] : quota.hard) {
        const bool limits = name.starts_with("limits."), bare = is_gpu_resource(name);
        if ((limits && is_gpu_resource(std::string_view(name).substr(7))) || bare) {
            const std::string_view resource = limits ? std::string_view(name).substr(7) : std::string_view(name);
            out.check("quota-enforced", quota.place,
                      {.verdict = HealthVerdict::warn,
                       .message = fmt::format("the ResourceQuota {}/{} limits {}, which is never enforced", quota.space,
                                              quota.name, name),
                       .fix = fmt::format("hard:\n  requests.{}: \"{:g}\"", resource, hard)});
            continue;
        }
        const auto used = quota.used.find(name);
        if (used != quota.used.end() && contains(name, ".com/") && used->second >= hard)
            out.tell(quota.place, HealthLayer::device,
                     fmt::format("the ResourceQuota {}/{} is used up: {:g} of {:g} {}", quota.space, quota.name,
                                 used->second, hard, name));
    }
}

}  // namespace

Result<ToolReading> read_kubernetes(std::string_view text, const std::string& file, const ToolContext& context) {
    ReadingBuilder out(Tool::kubernetes, file);
    KubeState own;
    TRY_VOID(read_kube_objects(text, file, own));
    const KubeState& all = context.cluster != nullptr ? *context.cluster : own;
    std::size_t waiting = 0;
    bool asked = false;
    std::string first;
    for (const KubePod& pod : own.pods) {
        if (pod.phase != "Pending") continue;
        ++waiting;
        const PodWait why = why_pending(pod, all);
        std::string message = fmt::format("pod {} waits [{}]: {}", pod.full(), word_of(why.cause), why.what);
        if (!why.open.empty()) {
            out.fact("open", why.open);
            asked = true;
        }
        if (first.empty()) first = message;
        out.check("pod-pending", pod.place,
                  {.verdict = why.cause == PendingCause::starting ? HealthVerdict::warn : HealthVerdict::fail,
                   .message = std::move(message),
                   .fix = why.fix,
                   .peer = pod.full()});
        out.fact("cause of " + pod.full(), std::string(word_of(why.cause)));
    }
    std::set<std::string> told;
    for (const KubeEvent& event : own.events) {
        const auto why = why_not_created(event, all);
        // A controller tries again and again: once for each object.
        if (!why || !told.insert(event.space + "/" + event.name).second) continue;
        // The event outlives its cause by an hour.
        const bool has_pods = std::any_of(all.pods.begin(), all.pods.end(), [&](const KubePod& pod) {
            return pod.space == event.space && pod.owner == event.name && pod.owner_kind == event.kind;
        });
        std::string message =
            fmt::format("{} {}{} {} [{}]: {}", event.kind, event.space.empty() ? "" : event.space + "/", event.name,
                        has_pods ? "has pods and got no others" : "gets no pod", word_of(why->cause), why->what);
        if (first.empty() && !has_pods) first = message;
        out.fact("cause of " + (event.space.empty() ? "" : event.space + "/") + event.name,
                 std::string(word_of(why->cause)));
        out.check("pod-pending", event.place,
                  {.verdict = has_pods ? HealthVerdict::warn : HealthVerdict::fail,
                   .message = std::move(message),
                   .fix = why->fix,
                   .peer = event.name});
    }
    for (const KubeNode& node : own.nodes) {
        judge_node(out, node);
        judge_tenants(out, node, all);
    }
    for (const KubeQuota& quota : own.quotas) judge_quota(out, quota);
    for (const KubePod& pod : own.pods)
        for (const std::string& image : pod.gpu_images) out.needs_cuda_of_image(image, pod.place);
    if (!own.pods.empty() && waiting == 0)
        out.check("pod-pending", own.pods.front().place,
                  {.verdict = HealthVerdict::pass,
                   .message = fmt::format("{}, none Pending", counted(own.pods.size(), "pod"))});
    if (waiting > 0 && all.nodes.empty() && !asked)
        out.fact("open", "which node lacks what: add kubectl get nodes -o json");
    if (own.pods.empty() && own.nodes.empty() && own.events.empty() && own.quotas.empty())
        return out.broken({1, 1}, own.others == 0 ? "an empty list" : "objects of other kinds only",
                          "kubectl get pods,nodes,events,resourcequotas -A -o json > cluster.json");
    std::string conclusion = fmt::format("{}, {}, {}", counted(own.pods.size(), "pod"),
                                         counted(own.nodes.size(), "node"), counted(own.events.size(), "event"));
    if (!first.empty())
        conclusion =
            (waiting > 1 ? fmt::format("{} wait; the first: ", counted(waiting, "pod")) : std::string()) + first;
    return out.finish(std::move(conclusion));
}

}  // namespace stoker

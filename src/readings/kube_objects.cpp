// Fields: https://kubernetes.io/docs/reference/kubernetes-api/ (Pod, Node, Event, ResourceQuota), v1.
#include "readings/kube_objects.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "formats/kube_quantity.h"
#include "readings/kube_describe.h"

namespace stoker {
namespace {

using Labels = std::map<std::string, std::string, std::less<>>;

void take_labels(const Node* node, Labels& into) {
    if (node == nullptr || !node->is_mapping()) return;
    for (const Member& each : node->members) into[each.key] = node_text(each.value.get());
}
void take_quantities(const Node* node, std::map<std::string, double, std::less<>>& into, bool add) {
    if (node == nullptr || !node->is_mapping()) return;
    for (const Member& each : node->members) {
        const double value = kube_quantity(node_text(each.value.get()));
        into[each.key] = add ? into[each.key] + value : value;
    }
}
const std::vector<std::unique_ptr<Node>>& items_of(const Node* node) {
    static const std::vector<std::unique_ptr<Node>> none;
    return node != nullptr && node->is_sequence() ? node->items : none;
}
std::string word_at(const Node* node, std::initializer_list<std::string_view> path) {
    return std::string(text_at(node, path));
}

constexpr std::size_t kMostKubeParts = 256;
constexpr ReadLimits kKubeLimits{.max_bytes = 64u << 20, .max_nodes = 8'000'000};

struct KubePart {
    std::string_view text;
    std::uint32_t line = 0;  // lines before it
};
// The documents of a YAML file: kubectl writes one, people put several outputs into one file. A line that begins with
// --- ends a document whatever it stands in (YAML 1.2.2, section 9.1.2). Empty ones are left out.
std::vector<KubePart> yaml_parts(std::string_view text) {
    std::vector<KubePart> parts;
    std::size_t begin = 0;
    std::uint32_t line = 0, first = 0;
    const auto add = [&](std::size_t end) {
        const std::string_view part = text.substr(begin, end - begin);
        if (!trim(part).empty() || (parts.empty() && end == text.size())) parts.push_back({part, first});
    };
    for (std::size_t at = 0; at < text.size() && parts.size() <= kMostKubeParts; ++line) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        if (trim(text.substr(at, end - at)) == "---" && text[at] == '-') {
            add(at);
            begin = std::min(end + 1, text.size());
            first = line + 1;
        }
        at = end + 1;
    }
    add(text.size());
    return parts;
}

KubeNode node_of(const Node& root, const std::string& file) {
    KubeNode node{.file = file, .name = word_at(&root, {"metadata", "name"}), .place = place_of(root.pos)};
    take_labels(node_at(&root, {"metadata", "labels"}), node.labels);
    for (const auto& taint : items_of(node_at(&root, {"spec", "taints"})))
        node.taints.push_back(
            {word_at(taint.get(), {"key"}), word_at(taint.get(), {"value"}), word_at(taint.get(), {"effect"})});
    node.unschedulable = text_at(&root, {"spec", "unschedulable"}) == "true";
    take_quantities(node_at(&root, {"status", "allocatable"}), node.allocatable, false);
    take_quantities(node_at(&root, {"status", "capacity"}), node.capacity, false);
    for (const auto& condition : items_of(node_at(&root, {"status", "conditions"})))
        if (text_at(condition.get(), {"type"}) == "Ready") node.ready = text_at(condition.get(), {"status"}) == "True";
    return node;
}

KubeEvent event_of(const Node& root, const std::string& file) {
    // events.k8s.io/v1 says regarding and note for what v1 calls involvedObject and message.
    const Node* object = root.find("involvedObject") != nullptr ? root.find("involvedObject") : root.find("regarding");
    const std::string_view message = text_at(&root, {"message"});
    return {file,
            word_at(object, {"namespace"}),
            word_at(object, {"kind"}),
            word_at(object, {"name"}),
            word_at(&root, {"reason"}),
            std::string(message.empty() ? text_at(&root, {"note"}) : message),
            word_at(&root, {"source", "component"}),
            place_of(root.pos)};
}

KubeQuota quota_of(const Node& root, const std::string& file) {
    KubeQuota quota{.file = file,
                    .space = word_at(&root, {"metadata", "namespace"}),
                    .name = word_at(&root, {"metadata", "name"}),
                    .place = place_of(root.pos)};
    take_quantities(node_at(&root, {"spec", "hard"}), quota.hard, false);
    take_quantities(node_at(&root, {"status", "used"}), quota.used, false);
    return quota;
}

void take_object(const Node& root, const std::string& file, KubeState& state, int depth) {
    if (!root.is_mapping() || depth > 2) return;
    const std::string_view kind = text_at(&root, {"kind"});
    const Node* items = root.find("items");
    if (items != nullptr && items->is_sequence()) {
        for (const auto& item : items->items) {
            // The items of a PodList, as the API answers, carry no kind of their own, as those of the other lists.
            if (item->is_mapping() && item->find("kind") == nullptr) {
                if (kind == "PodList") state.pods.push_back(kube_pod_of(*item, file));
                if (kind == "NodeList") state.nodes.push_back(node_of(*item, file));
                if (kind == "EventList") state.events.push_back(event_of(*item, file));
                if (kind == "ResourceQuotaList") state.quotas.push_back(quota_of(*item, file));
            } else {
                take_object(*item, file, state, depth + 1);
            }
        }
        return;
    }
    if (kind == "Pod") {
        state.pods.push_back(kube_pod_of(root, file));
    } else if (kind == "Node") {
        state.nodes.push_back(node_of(root, file));
    } else if (kind == "Event") {
        state.events.push_back(event_of(root, file));
    } else if (kind == "ResourceQuota") {
        state.quotas.push_back(quota_of(root, file));
    } else {
        ++state.others;
    }
}

}  // namespace

KubePod kube_pod_of(const Node& root, const std::string& file) {
    KubePod pod{.file = file,
                .space = word_at(&root, {"metadata", "namespace"}),
                .name = word_at(&root, {"metadata", "name"}),
                .phase = word_at(&root, {"status", "phase"}),
                .node = word_at(&root, {"spec", "nodeName"}),
                .scheduler = word_at(&root, {"spec", "schedulerName"}),
                .place = place_of(root.pos)};
    const auto& owners = items_of(node_at(&root, {"metadata", "ownerReferences"}));
    if (!owners.empty()) {
        pod.owner_kind = word_at(owners.front().get(), {"kind"});
        pod.owner = word_at(owners.front().get(), {"name"});
    }
    for (const auto& container : items_of(node_at(&root, {"spec", "containers"}))) {
        std::map<std::string, double, std::less<>> own;
        take_quantities(node_at(container.get(), {"resources", "limits"}), own, false);
        take_quantities(node_at(container.get(), {"resources", "requests"}), own, false);
        if (std::any_of(own.begin(), own.end(), [](const auto& each) { return is_gpu_resource(each.first); }))
            pod.gpu_images.push_back(word_at(container.get(), {"image"}));
        for (const auto& [name, value] : own) pod.requests[name] += value;
    }
    // Containers that prepare run before the others, one by one; with restartPolicy Always they run beside them.
    std::map<std::string, double, std::less<>> before;
    for (const auto& container : items_of(node_at(&root, {"spec", "initContainers"}))) {
        std::map<std::string, double, std::less<>> own;
        take_quantities(node_at(container.get(), {"resources", "limits"}), own, false);
        take_quantities(node_at(container.get(), {"resources", "requests"}), own, false);
        const bool beside = text_at(container.get(), {"restartPolicy"}) == "Always";
        for (const auto& [name, value] : own) {
            if (beside)
                pod.requests[name] += value;
            else
                before[name] = std::max(before[name], value);
        }
    }
    for (const auto& [name, value] : before) pod.requests[name] = std::max(pod.requests[name], value);
    take_quantities(node_at(&root, {"spec", "overhead"}), pod.requests, true);
    for (const auto& each : items_of(node_at(&root, {"spec", "tolerations"})))
        pod.tolerations.push_back({word_at(each.get(), {"key"}), word_at(each.get(), {"operator"}),
                                   word_at(each.get(), {"value"}), word_at(each.get(), {"effect"})});
    take_labels(node_at(&root, {"spec", "nodeSelector"}), pod.selector);
    const Node* terms = node_at(&root, {"spec", "affinity", "nodeAffinity",
                                        "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
    for (const auto& term : items_of(terms)) {
        auto& expressions = pod.affinity.emplace_back();
        // matchFields knows one field, the name.
        for (const std::string_view list : {"matchExpressions", "matchFields"})
            for (const auto& each : items_of(node_at(term.get(), {list}))) {
                KubeExpression expression{word_at(each.get(), {"key"}), word_at(each.get(), {"operator"}), {}};
                for (const auto& value : items_of(node_at(each.get(), {"values"})))
                    expression.values.emplace_back(node_text(value.get()));
                expressions.push_back(std::move(expression));
            }
    }
    for (const auto& gate : items_of(node_at(&root, {"spec", "schedulingGates"})))
        pod.gates.push_back(word_at(gate.get(), {"name"}));
    for (const auto& volume : items_of(node_at(&root, {"spec", "volumes"})))
        if (const auto claim = text_at(volume.get(), {"persistentVolumeClaim", "claimName"}); !claim.empty())
            pod.claims.emplace_back(claim);
    for (const auto& claim : items_of(node_at(&root, {"spec", "resourceClaims"})))
        pod.device_claims.push_back(word_at(claim.get(), {"name"}));
    for (const std::string_view list : {"initContainerStatuses", "containerStatuses"})
        for (const auto& status : items_of(node_at(&root, {"status", list})))
            if (pod.waiting.empty()) {
                pod.waiting = word_at(status.get(), {"state", "waiting", "reason"});
                pod.waiting_for = word_at(status.get(), {"state", "waiting", "message"});
                // Until the first container is through, the others wait for nothing but it.
                if (pod.waiting == "PodInitializing") pod.waiting.clear();
            }
    for (const auto& condition : items_of(node_at(&root, {"status", "conditions"})))
        if (text_at(condition.get(), {"type"}) == "PodScheduled" && text_at(condition.get(), {"status"}) == "False") {
            pod.condition = word_at(condition.get(), {"message"});
            pod.reason = word_at(condition.get(), {"reason"});
        }
    return pod;
}

bool is_gpu_resource(std::string_view name) {
    return name == "nvidia.com/gpu" || name == "amd.com/gpu" || name == "gpu.intel.com/i915" ||
           name == "gpu.intel.com/xe" || name.starts_with("nvidia.com/mig-") || name == "nvidia.com/gpu.shared";
}

double kube_quantity(std::string_view text) {
    const auto quantity = parse_kube_quantity(text);
    return quantity ? *quantity : 0;
}

bool KubeToleration::tolerates(const KubeTaint& taint) const {
    if (!effect.empty() && effect != taint.effect) return false;
    if (key.empty()) return op == "Exists";
    if (key != taint.key) return false;
    return op == "Exists" || value == taint.value;
}

bool KubeExpression::holds(const Labels& labels) const {
    const auto found = labels.find(key);
    const bool there = found != labels.end();
    const bool among = there && std::find(values.begin(), values.end(), found->second) != values.end();
    if (op == "In") return among;
    if (op == "NotIn") return !among;
    if (op == "Exists") return there;
    if (op == "DoesNotExist") return !there;
    if (op == "Gt" || op == "Lt") {
        const double label = there ? tool_number(found->second).value_or(0) : 0;
        const double wanted = values.empty() ? 0 : tool_number(values.front()).value_or(0);
        return there && !values.empty() && (op == "Gt" ? label > wanted : label < wanted);
    }
    return true;  // an operator that is newer than this
}

std::string KubeExpression::text() const {
    return values.empty() ? fmt::format("{} {}", key, op) : fmt::format("{} {} {}", key, op, join(values, ", "));
}

double KubeNode::gpus() const {
    double sum = 0;
    for (const auto& [resource, value] : allocatable)
        if (is_gpu_resource(resource)) sum += value;
    return sum;
}

bool KubeNode::looks_like_gpu() const {
    for (const auto& [label, value] : labels) {
        if (label == "nvidia.com/gpu.present" || label == "feature.node.kubernetes.io/pci-10de.present" ||
            label == "accelerator" || label == "kubernetes.azure.com/accelerator" ||
            label == "cloud.google.com/gke-accelerator")
            return value != "false";
        if (label == "node.kubernetes.io/instance-type" || label == "beta.kubernetes.io/instance-type") {
            // Azure's N series, AWS's p and g, Google's a2, a3, g2.
            for (const std::string_view prefix : {"Standard_NC", "Standard_ND", "Standard_NV", "p2.", "p3.", "p4", "p5",
                                                  "g4", "g5.", "g6", "a2-", "a3-", "a4-", "g2-"})
                if (value.starts_with(prefix)) return true;
        }
    }
    return std::any_of(taints.begin(), taints.end(), [](const KubeTaint& taint) {
        return taint.key == "nvidia.com/gpu" || (taint.key == "sku" && taint.value == "gpu");
    });
}

std::string KubePod::gpu_resource() const {
    for (const auto& [resource, value] : requests)
        if (value > 0 && is_gpu_resource(resource)) return resource;
    // A name that no plugin offers ("nvidia.com/gpus") is accepted by the API server.
    for (const auto& [resource, value] : requests)
        if (value > 0 && (resource.starts_with("nvidia.com/") || resource.starts_with("amd.com/"))) return resource;
    return {};
}

double KubePod::gpus() const {
    const auto found = requests.find(gpu_resource());
    return found == requests.end() ? 0 : found->second;
}

Status read_kube_objects(std::string_view text, const std::string& file, KubeState& state) {
    if (is_kube_describe(trim(text))) {
        read_kube_describe(text, file, state);
        return done();
    }
    const std::string_view begin = trim(text.substr(0, 4096));
    std::vector<KubePart> parts{{text, 0}};
    const bool yaml = !begin.starts_with('{') && !begin.starts_with('[');
    if (yaml) parts = yaml_parts(text);
    if (parts.size() > kMostKubeParts)
        return Error(ErrorKind::invalid, fmt::format("more than {} documents", kMostKubeParts), SourcePos{file, 1, 1},
                     "kubectl get pods,nodes,events -A -o yaml writes one List");
    for (const KubePart& part : parts) {
        auto document = yaml ? Document::parse_yaml(part.text, file, kKubeLimits) : tool_json(part.text, file);
        if (!document) {
            std::vector<Problem> problems = document.error().problems();
            for (Problem& each : problems) each.pos.line += each.pos.line > 0 ? part.line : 0;
            return Error(document.error().kind(), std::move(problems));
        }
        if (!document->root().is_mapping() || text_at(&document->root(), {"kind"}).empty())
            return Error(ErrorKind::invalid, "this is no object of Kubernetes: it has no kind",
                         SourcePos{file, part.line + 1, 1}, "kubectl get pods -A -o json > pods.json");
        const std::size_t pods = state.pods.size(), nodes = state.nodes.size(), events = state.events.size(),
                          quotas = state.quotas.size();
        take_object(document->root(), file, state, 0);
        const auto shift = [&](auto& list, std::size_t from) {
            for (std::size_t i = from; i < list.size(); ++i) list[i].place.line += part.line;
        };
        shift(state.pods, pods);
        shift(state.nodes, nodes);
        shift(state.events, events);
        shift(state.quotas, quotas);
    }
    return done();
}

}  // namespace stoker

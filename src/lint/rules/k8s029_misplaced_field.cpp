// The API server refuses unknown fields when it is asked to be strict, as kubectl asks. From other clients (Helm, Argo
// CD, operators) it drops them with a warning: a limit or a toleration one level off is simply not there.
#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "lint/rules/common_containers.h"

namespace stoker::lint {

namespace {

constexpr std::array<std::string_view, 8> kK8s029OfPod = {"tolerations", "nodeSelector",     "affinity",
                                                          "volumes",     "runtimeClassName", "hostIPC",
                                                          "hostNetwork", "schedulerName"};

constexpr std::array<std::string_view, 8> kK8s029Kinds = {"Pod", "Deployment", "StatefulSet", "DaemonSet",
                                                          "Job", "CronJob",    "ReplicaSet",  "ReplicationController"};

bool k8s029_has_schema(const Workload& workload) {
    for (const std::string_view kind : kK8s029Kinds)
        if (workload.kind == kind && !workload.api_version.starts_with("batch.volcano")) return true;
    // The template of an operator's kind, as Kubernetes has it.
    const Node& pod = *workload.pod;
    return pod.key == "spec" && pod.parent && pod.parent->key.ends_with("emplate") && pod.find("containers");
}

bool k8s029_about_devices(const Workload& workload, const Knowledge& knowledge) {
    if (names_device(workload) || accelerator_intent(*workload.pod, knowledge)) return true;
    for (const Container& each : workload.containers) {
        for (const Node& child : children(each.node)) {
            if (is_accelerator_resource(child.key)) return true;
            for (const Node& inner : children(&child)) {
                if (is_accelerator_resource(inner.key) || inner.find("nvidia.com/gpu")) return true;
                for (const Node& deep : children(&inner))
                    if (deep.key == "key" && deep.text == "nvidia.com/gpu") return true;
            }
        }
        if (each.image.known() && is_gpu_image(each.image.text)) return true;
    }
    return false;
}

// `limits:` beside `resources:`: its lines go one level in.
void k8s029_indent(const Node& limits, const Node* resources, Finding* finding, Report& report) {
    if (resources && resources->shape != Shape::null) return;
    const Source& source = *limits.source;
    const Span lines = lines_of(source, limits.whole());
    std::vector<Edit> edits;
    const std::string before(source.text({source.line_at(limits.key_span.begin).begin, limits.key_span.begin}));
    if (before.find_first_not_of(' ') != std::string::npos) return;
    for (std::uint32_t at = lines.begin; at < lines.end;) {
        edits.push_back({{at, at},
                         at == lines.begin && !resources ? before + "resources:" + std::string(source.line_end()) + "  "
                                                         : std::string("  ")});
        const std::size_t end = source.text().find('\n', at);
        at = end == std::string_view::npos ? lines.end : static_cast<std::uint32_t>(end + 1);
    }
    report.fix(finding, source, FixClass::safe, "put it under resources", std::move(edits));
}

// A manifest that has lost its indentation: keys of a pod and of its containers stand beside `kind`, and `spec` and
// `metadata` hold nothing. The API server refuses it where it looks, and drops all of it where it does not.
void k8s029_flat(const File& file, Report& report) {
    for (const Node* root : file.tree.roots) {
        const Node* kind = root->find("kind");
        const Node* version = root->find("apiVersion");
        if (!kind || !version || !kind->is_scalar()) continue;
        const bool known = std::any_of(kK8s029Kinds.begin(), kK8s029Kinds.end(),
                                       [&](std::string_view each) { return kind->text == each; });
        const Node* spec = root->find("spec");
        if (!known || (spec && spec->shape != Shape::null)) continue;
        const Node* first = nullptr;
        std::size_t astray = 0;
        for (const Node& child : children(root))
            for (const std::string_view name :
                 {"containers", "image", "resources", "limits", "requests", "nvidia.com/gpu", "restartPolicy",
                  "tolerations", "nodeSelector", "volumes", "command", "args"})
                if (child.key == name) {
                    ++astray;
                    if (!first) first = &child;
                }
        if (astray < 2) continue;
        report.add(*first->source, first->key_span, fmt::format("k8s:{}", kind->text),
                   fmt::format("{} stands at the top beside kind, and so do {} other keys of a pod: the manifest has "
                               "lost its indentation, and nothing of it is kept",
                               first->key, astray - 1));
    }
}

}  // namespace

void check_k8s029(const File& file, Report& report) {
    k8s029_flat(file, report);
    each_pod(file, [&](const Workload& workload) {
        if (!k8s029_has_schema(workload)) return;
        std::optional<bool> about_devices;  // asked for when something is misplaced, which is rare
        for (const Container& container : workload.containers) {
            const auto tell = [&](const Node& node, std::string message) -> Finding* {
                if (!about_devices) about_devices = k8s029_about_devices(workload, report.knowledge());
                if (!*about_devices) return nullptr;
                return report.add(*node.source, node.key_span, container.address, std::move(message));
            };
            const Node* resources = container.node->find("resources");
            for (const Node& child : children(container.node)) {
                if (child.key == "limits" || child.key == "requests") {
                    Finding* finding =
                        tell(child, fmt::format("{} stands beside resources, not under it: it is ignored", child.key));
                    if (finding) k8s029_indent(child, resources, finding, report);
                } else if (is_accelerator_resource(child.key)) {
                    tell(child, fmt::format("{} stands outside resources.limits: it is ignored", child.key));
                }
                for (const std::string_view name : kK8s029OfPod)
                    if (child.key == name)
                        tell(child, fmt::format("{} is a field of the pod, not of a container: it is ignored", name));
            }
            for (const Node& child : children(resources)) {
                if (is_accelerator_resource(child.key))
                    tell(child,
                         fmt::format("{} stands under resources, not under its limits: it is ignored", child.key));
                if (child.key != "limits" && child.key != "requests") continue;
                for (const Node& inner : children(&child))
                    if (inner.key == "tolerations" || inner.key == "nodeSelector" || inner.key == "limits" ||
                        inner.key == "requests")
                        tell(inner,
                             fmt::format("{} stands inside resources.{}: it is no quantity", inner.key, child.key));
            }
        }
    });
}

}  // namespace stoker::lint

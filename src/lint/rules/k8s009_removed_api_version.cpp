#include <array>
#include <charconv>

#include <fmt/format.h>

#include "base/text.h"
#include "lint/rules/common_containers.h"

namespace stoker::lint {

namespace {

// Kubernetes' "Deprecated API Migration Guide" (kubernetes.io/docs/reference/using-api/deprecation-guide, read
// 2026-11).
struct K8s009Removed {
    std::string_view version, kind;  // no kind: all of the group version
    int minor;                       // 1.minor no longer serves it
    std::string_view instead;
    bool same_schema;
};
constexpr std::array<K8s009Removed, 42> kK8s009Removed = {{
    {"extensions/v1beta1", "Deployment", 16, "apps/v1", false},
    {"extensions/v1beta1", "DaemonSet", 16, "apps/v1", false},
    {"extensions/v1beta1", "ReplicaSet", 16, "apps/v1", false},
    {"extensions/v1beta1", "NetworkPolicy", 16, "networking.k8s.io/v1", true},
    {"extensions/v1beta1", "PodSecurityPolicy", 16, "", false},
    {"extensions/v1beta1", "Ingress", 22, "networking.k8s.io/v1", false},
    {"apps/v1beta1", "", 16, "apps/v1", false},
    {"apps/v1beta2", "", 16, "apps/v1", false},
    {"networking.k8s.io/v1beta1", "Ingress", 22, "networking.k8s.io/v1", false},
    {"networking.k8s.io/v1beta1", "IngressClass", 22, "networking.k8s.io/v1", true},
    {"admissionregistration.k8s.io/v1beta1", "MutatingWebhookConfiguration", 22, "admissionregistration.k8s.io/v1",
     false},
    {"admissionregistration.k8s.io/v1beta1", "ValidatingWebhookConfiguration", 22, "admissionregistration.k8s.io/v1",
     false},
    {"apiextensions.k8s.io/v1beta1", "", 22, "apiextensions.k8s.io/v1", false},
    {"apiregistration.k8s.io/v1beta1", "", 22, "apiregistration.k8s.io/v1", true},
    {"authentication.k8s.io/v1beta1", "TokenReview", 22, "authentication.k8s.io/v1", true},
    {"authorization.k8s.io/v1beta1", "", 22, "authorization.k8s.io/v1", false},
    {"certificates.k8s.io/v1beta1", "CertificateSigningRequest", 22, "certificates.k8s.io/v1", false},
    {"coordination.k8s.io/v1beta1", "Lease", 22, "coordination.k8s.io/v1", true},
    {"rbac.authorization.k8s.io/v1beta1", "", 22, "rbac.authorization.k8s.io/v1", true},
    {"rbac.authorization.k8s.io/v1alpha1", "", 22, "rbac.authorization.k8s.io/v1", true},
    {"scheduling.k8s.io/v1beta1", "PriorityClass", 22, "scheduling.k8s.io/v1", true},
    {"storage.k8s.io/v1beta1", "CSIDriver", 22, "storage.k8s.io/v1", true},
    {"storage.k8s.io/v1beta1", "CSINode", 22, "storage.k8s.io/v1", true},
    {"storage.k8s.io/v1beta1", "StorageClass", 22, "storage.k8s.io/v1", true},
    {"storage.k8s.io/v1beta1", "VolumeAttachment", 22, "storage.k8s.io/v1", true},
    {"batch/v1beta1", "CronJob", 25, "batch/v1", true},
    {"batch/v2alpha1", "CronJob", 21, "batch/v1", false},
    {"discovery.k8s.io/v1beta1", "EndpointSlice", 25, "discovery.k8s.io/v1", false},
    {"events.k8s.io/v1beta1", "Event", 25, "events.k8s.io/v1", false},
    {"autoscaling/v2beta1", "HorizontalPodAutoscaler", 25, "autoscaling/v2", false},
    {"policy/v1beta1", "PodDisruptionBudget", 25, "policy/v1", false},
    {"policy/v1beta1", "PodSecurityPolicy", 25, "", false},
    {"node.k8s.io/v1beta1", "RuntimeClass", 25, "node.k8s.io/v1", true},
    {"autoscaling/v2beta2", "HorizontalPodAutoscaler", 26, "autoscaling/v2", true},
    {"flowcontrol.apiserver.k8s.io/v1beta1", "", 26, "flowcontrol.apiserver.k8s.io/v1", false},
    {"storage.k8s.io/v1beta1", "CSIStorageCapacity", 27, "storage.k8s.io/v1", true},
    {"flowcontrol.apiserver.k8s.io/v1beta2", "", 29, "flowcontrol.apiserver.k8s.io/v1", false},
    {"flowcontrol.apiserver.k8s.io/v1beta3", "", 32, "flowcontrol.apiserver.k8s.io/v1", false},
    {"settings.k8s.io/v1alpha1", "PodPreset", 20, "", false},
    {"policy/v1beta1", "Eviction", 25, "policy/v1", true},
    {"auditregistration.k8s.io/v1alpha1", "AuditSink", 19, "", false},
    {"scheduling.k8s.io/v1alpha1", "PriorityClass", 17, "scheduling.k8s.io/v1", true},
}};

int k8s009_target(const CheckOptions& options) {
    const std::string_view text = options.kubernetes;
    int minor = 33;
    if (text.starts_with("1.")) std::from_chars(text.data() + 2, text.data() + text.size(), minor);
    return minor;
}

void k8s009_judge(const Source& source, Span span, std::string_view version, std::string_view kind, std::string address,
                  Report& report) {
    if (version.find("beta") == std::string_view::npos && version.find("alpha") == std::string_view::npos) return;
    // crd/v1beta1/x.yaml beside crd/v1/x.yaml: for clusters that still serve it, as the folder says.
    if (source.path().find("/" + std::string(version.substr(version.find('/') + 1)) + "/") != std::string::npos) return;
    for (const K8s009Removed& row : kK8s009Removed) {
        if (row.version != version || (!row.kind.empty() && row.kind != kind)) continue;
        if (k8s009_target(report.options()) < row.minor) return;
        Finding* finding =
            report.add(source, span, std::move(address),
                       fmt::format("{} is no longer served since Kubernetes 1.{}: {} cannot be created", version,
                                   row.minor, kind.empty() ? std::string_view("the object") : kind));
        if (!finding) return;
        finding->advice = row.instead.empty() ? std::string("there is no successor: drop the object")
                                              : fmt::format("use {}", row.instead);
        if (row.same_schema)
            report.fix(finding, source, FixClass::safe, fmt::format("set apiVersion: {}", row.instead),
                       {{span, std::string(row.instead)}});
        return;
    }
}

// A template is not read as YAML: its lines are looked at. One that asks the cluster what it serves knows better.
void k8s009_in_template(const File& file, Report& report) {
    const std::string_view text = file.source().text();
    if (text.find("Capabilities") != std::string_view::npos) return;
    constexpr std::string_view kKey = "apiVersion:";
    for (std::size_t at = text.find(kKey); at != std::string_view::npos; at = text.find(kKey, at + 1)) {
        const Span line = file.source().line_at(static_cast<std::uint32_t>(at));
        if (line.begin != at) continue;
        std::string_view value = trim(text.substr(at + kKey.size(), line.end - at - kKey.size()));
        if (value.size() > 1 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0])
            value = value.substr(1, value.size() - 2);
        if (value.empty() || value.find_first_of("{# ") != std::string_view::npos) continue;
        std::string_view kind;
        std::size_t next = line.end;
        for (int rows = 0; rows < 6 && next < text.size() && kind.empty(); ++rows) {
            const Span row = file.source().line_at(static_cast<std::uint32_t>(next + 1));
            const std::string_view words = file.source().text(row);
            if (words.starts_with("kind:")) kind = trim(words.substr(5));
            next = row.end;
        }
        const auto begin = static_cast<std::uint32_t>(value.data() - text.data());
        k8s009_judge(file.source(), {begin, begin + static_cast<std::uint32_t>(value.size())}, value, kind,
                     fmt::format("helm:{}/{}", kind, file.source().place(begin).line), report);
    }
}

// Only annotations: nothing is created of that, it is laid over an object that says the rest.
bool k8s009_is_patch(const Node& object) {
    if (!object.at({"metadata", "annotations"})) return false;
    for (const Node& child : children(&object))
        if (child.key != "apiVersion" && child.key != "kind" && child.key != "metadata") return false;
    return true;
}

}  // namespace

void check_k8s009(const File& file, Report& report) {
    for_each_part(file, [&](const File& part) {
        if (part.kinds.has(Kind::helm) && part.workloads.empty() && part.guests.empty())
            return k8s009_in_template(part, report);
        const Node* before = nullptr;
        for (const Workload& workload : part.workloads) {
            if (workload.object == before) continue;  // several pods of one object
            before = workload.object;
            if (k8s009_is_patch(*workload.object)) continue;
            const Node* version = workload.object->find("apiVersion");
            if (version && version->known)
                k8s009_judge(*version->source, version->span, version->text, workload.kind, workload.address, report);
        }
    });
}

}  // namespace stoker::lint

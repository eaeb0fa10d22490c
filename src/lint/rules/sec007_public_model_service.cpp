#include "lint/rules/common_containers.h"

namespace stoker::lint {

namespace {

bool sec007_is_internal(const Workload& service) {
    if (service.object->at({"spec", "loadBalancerSourceRanges"})) return true;
    for (const Node& each : children(service.object->at({"metadata", "annotations"})))
        if (each.key.find("internal") != std::string_view::npos || contains_nocase(each.text, "internal") ||
            !each.known)
            return true;
    return false;
}

bool sec007_selects(const Node& selector, const Workload& workload) {
    const Node* labels = workload.pod_metadata ? workload.pod_metadata->find("labels") : nullptr;
    if (!labels || !selector.first) return false;
    for (const Node& each : children(&selector)) {
        const Node* label = labels->find(each.key);
        if (!label || !label->known || !each.known || label->text != each.text) return false;
    }
    return true;
}

bool sec007_has_guard(const Workload& workload) {
    for (const Container& each : workload.containers)
        if (each.image.present())
            for (const std::string_view name :
                 {"oauth2-proxy", "authservice", "envoy", "istio", "kube-rbac-proxy", "nginx"})
                if (contains_nocase(each.image.text, name)) return true;
    return false;
}

constexpr std::string_view kSec007Internal = "service.beta.kubernetes.io/azure-load-balancer-internal: \"true\"";

// The annotation that makes a load balancer of Azure internal, in front of the first key of its metadata.
std::optional<Edit> sec007_make_internal(const Workload& service) {
    const Node* metadata = service.object->find("metadata");
    if (!metadata || !metadata->first) return std::nullopt;
    const Node* annotations = metadata->find("annotations");
    if (annotations && annotations->first) return line_before(*annotations->first, kSec007Internal);
    if (annotations) return std::nullopt;
    return line_before(*metadata->first, "annotations:\n  " + std::string(kSec007Internal));
}

// The annotation means nothing to other clouds: the fix is safe only where the bundle says that it is for Azure.
bool sec007_is_azure(const Bundle& bundle) {
    for (const File* file : bundle.files)
        for (const std::string_view word : {"kubernetes.azure.com", "azure-", "azurecr.io", "azurerm_", "az aks"})
            if (file->source().text().find(word) != std::string_view::npos) return true;
    return false;
}

}  // namespace

void check_sec007(const Bundle& bundle, Report& report) {
    each_object(bundle, [&](const Workload& service) {
        if (service.kind != "Service" || service.api_version != "v1" || sec007_is_internal(service)) return;
        const Node *type = service.object->at({"spec", "type"}), *selector = service.object->at({"spec", "selector"});
        if (!type || !selector || (type->text != "LoadBalancer" && type->text != "NodePort")) return;
        each_object(bundle, [&](const Workload& workload) {
            if (!workload.pod || !asks_accelerator(workload) || sec007_has_guard(workload)) return;
            if (workload.name_space != service.name_space || !sec007_selects(*selector, workload)) return;
            Finding* finding =
                report.add(*type->source, type->span, service.address,
                           "a public Service in front of a GPU workload: anyone who finds the address uses "
                           "it");
            if (!finding) return;
            finding->advice = "make it ClusterIP or internal, or put authentication in front of it";
            report.relate(finding, *workload.object->source, workload.object->find("kind")->span,
                          "the workload behind it");
            if (type->text != "LoadBalancer") return;
            if (const auto edit = sec007_make_internal(service))
                report.fix(finding, *type->source, sec007_is_azure(bundle) ? FixClass::safe : FixClass::unsafe,
                           "make the load balancer of Azure internal", {*edit});
        });
    });
}

}  // namespace stoker::lint

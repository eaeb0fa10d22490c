// kustomize: the manifests of the kubernetes target as a base with namespace, quota and network policy, and two
// overlays.
#include <fmt/format.h>

#include <cmath>

#include "deploy/render/kube_pod.h"
#include "deploy/render/kubernetes.h"
#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

std::string guard(const Deployment& d, const std::string& name) {
    std::string out = fmt::format("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {}\n---\n", name);
    const std::string resource = d.nodes.gpus > 0 ? device_resource(d) : "";
    if (!resource.empty())
        out += fmt::format(
            "# What the plan counts on, and no device more. Of devices Kubernetes enforces requests.* only.\n"
            "apiVersion: v1\nkind: ResourceQuota\nmetadata:\n  name: devices\nspec:\n  hard:\n    requests.{}: "
            "\"{}\"\n---\n",
            resource, static_cast<int>(std::ceil(d.nodes.gpus)) * d.nodes.count);
    out +=
        "# Pods of the namespace talk to each other; from outside only the service port is reached.\n"
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata:\n  name: inside\nspec:\n  podSelector: {}\n"
        "  policyTypes: [Ingress]\n  ingress:\n  - from: [{podSelector: {}}]\n";
    if (d.serving && d.kind == WorkloadKind::inference) out += "  - ports: [{port: http, protocol: TCP}]\n";
    return out;
}

std::string overlay(const Deployment& d, const std::string& name, std::string_view stage) {
    std::string out = fmt::format(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: {}-{}\n", name, stage);
    out += "resources: [../../base]\n";
    out += fmt::format("labels: [{{pairs: {{stage: {}}}}}]\n", stage);
    if (stage == "test" && d.serving && d.kind == WorkloadKind::inference && d.serving->nodes_per_replica == 1)
        out += fmt::format("# One replica is enough to try it.\nreplicas: [{{name: {}, count: 1}}]\n",
                           dns_label(d.name, 50));
    return out;
}

}  // namespace

std::string kustomize_refusal(const Deployment& d) {
    return kubernetes_refusal(d);
}

std::vector<FileToWrite> kustomize_files(const Deployment& d) {
    const std::string name = dns_label(d.name, 50);
    std::string base = fmt::format("{}#   kubectl apply -k overlays/prod\n", head_comment(d));
    base += fmt::format(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: {}\n"
        "resources: [guard.yaml, {}.yaml]\n",
        name, d.name);
    return {{fmt::format("base/{}.yaml", d.name), kubernetes_manifests(d)},
            {"base/guard.yaml", guard(d, name)},
            {"base/kustomization.yaml", base},
            {"overlays/prod/kustomization.yaml", overlay(d, name, "prod")},
            {"overlays/test/kustomization.yaml", overlay(d, name, "test")}};
}

}  // namespace stoker

// kustomize: the manifests of the kubernetes target as a base with namespace, priority, quota and network policy, and
// two overlays.
#include <fmt/format.h>

#include "deploy/render/kube_cluster.h"
#include "deploy/render/kube_front.h"
#include "deploy/render/kubernetes.h"
#include "deploy/render/pools.h"
#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

std::string overlay(const Deployment& d, const std::string& name, std::string_view stage, bool autoscaler) {
    std::string out = fmt::format(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: {}-{}\n", name, stage);
    out += "resources: [../../base]\n";
    out += fmt::format("labels: [{{pairs: {{stage: {}}}}}]\n", stage);
    if (stage != "test" || !d.serving || d.kind != WorkloadKind::inference) return out;
    const std::string model = dns_label(d.name, 50);
    std::vector<std::string> single, scaled;
    for (const Deployment& pool : pools_of(d))
        if (d.serving->nodes_per_replica == 1) single.push_back(model + std::string(pool_suffix(pool)));
    // Their least is more than one.
    if (d.serving->nodes_per_replica == 1 && autoscaler && scaling_signal(d)) scaled.push_back(model);
    if (d.front) single.push_back(front_name(d)), scaled.push_back(front_name(d));
    std::string replicas;
    for (const std::string& each : single)
        replicas += fmt::format("{}{{name: {}, count: 1}}", replicas.empty() ? "" : ", ", each);
    if (!replicas.empty()) out += fmt::format("# One replica is enough to try it.\nreplicas: [{}]\n", replicas);
    if (!scaled.empty()) out += "patches:\n";
    for (const std::string& each : scaled)
        out += fmt::format(
            "- patch: |-\n    $patch: delete\n    apiVersion: autoscaling/v2\n    kind: "
            "HorizontalPodAutoscaler\n"
            "    metadata: {{name: {}}}\n",
            each);
    return out;
}

}  // namespace

std::string kustomize_refusal(const Deployment& d) {
    return kubernetes_refusal(d);
}

std::vector<FileToWrite> kustomize_tree(const Deployment& d, const KustomizeParts& parts) {
    const std::string name = dns_label(d.name, 50);
    std::string resources = fmt::format("guard.yaml, {}.yaml", d.name);
    for (const FileToWrite& file : parts.more) resources += ", " + file.path;
    std::string base = fmt::format("{}#   kubectl apply -k overlays/prod\n", head_comment(d));
    base += fmt::format(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: {}\n"
        "resources: [{}]\npatches:\n",
        name, resources);
    std::vector<FileToWrite> files{{fmt::format("base/{}.yaml", d.name), kubernetes_manifests(d, parts.autoscaler)},
                                   {"base/guard.yaml", namespace_guard(d, name)},
                                   {"base/kustomization.yaml", base + priority_patches(d, name) + parts.patches},
                                   {"overlays/prod/kustomization.yaml", overlay(d, name, "prod", parts.autoscaler)},
                                   {"overlays/test/kustomization.yaml", overlay(d, name, "test", parts.autoscaler)}};
    for (const FileToWrite& file : parts.more) files.push_back({"base/" + file.path, file.content});
    return files;
}

std::vector<FileToWrite> kustomize_files(const Deployment& d) {
    return kustomize_tree(d, {});
}

}  // namespace stoker

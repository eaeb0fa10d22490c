#include <array>

#include <fmt/format.h>

#include "lint/rules/common_containers.h"

namespace stoker::lint {

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kK8s010Labels = {{
    {"beta.kubernetes.io/os", "kubernetes.io/os"},
    {"beta.kubernetes.io/arch", "kubernetes.io/arch"},
    {"beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"},
    {"failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"},
    {"failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"},
}};

}  // namespace

void check_k8s010(const File& file, Report& report) {
    // Most say nothing of it; what a kustomization or chart makes comes from other files.
    if (!file.call && file.source().text().find("beta.kubernetes.io/") == std::string_view::npos) return;
    if (!work_of(file, report.knowledge()).gpu) return;
    each_pod(file, [&](const Workload& workload) {
        const auto judge = [&](const Source& source, Span span, std::string_view label) {
            for (const auto& [old, current] : kK8s010Labels) {
                if (label != old) continue;
                Finding* finding =
                    report.add(source, span, workload.address,
                               fmt::format("the node label {} is deprecated: {} took its place", old, current));
                report.fix(finding, source, FixClass::safe, fmt::format("use {}", current),
                           {{span, std::string(current)}});
            }
        };
        each_selector(*workload.pod, [&](const Node& key, const Node&) {
            if (key.key == "key")
                judge(*key.source, key.span, key.text);
            else
                judge(*key.source, key.key_span, key.key);
        });
        for (const Node& term : children(
                 workload.pod->at({"affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution"})))
            for (const Node& expression : children(term.at({"preference", "matchExpressions"})))
                if (const Node* key = expression.find("key")) judge(*key->source, key->span, key->text);
        for (const char* side : {"podAffinity", "podAntiAffinity"})
            for (const Node& term :
                 children(workload.pod->at({"affinity", side, "requiredDuringSchedulingIgnoredDuringExecution"})))
                if (const Node* key = term.find("topologyKey")) judge(*key->source, key->span, key->text);
        for (const Node& spread : children(workload.pod->find("topologySpreadConstraints")))
            if (const Node* key = spread.find("topologyKey")) judge(*key->source, key->span, key->text);
    });
}

}  // namespace stoker::lint

// What a cluster runs is what Argo CD and Flux make of a repository: the chart alone is right, and production is not.
#include <gtest/gtest.h>

#include "lint/checked_tree_test.h"

namespace stoker::lint {
namespace {

const std::vector<std::pair<std::string, std::string>> kChart = {
    {"charts/t/Chart.yaml", "apiVersion: v2\nname: t\nversion: 1.0.0\n"},
    {"charts/t/values.yaml", "image: {tag: 1.0.0}\n"},
    {"charts/t/values-eu.yaml", "image: {tag: 1.1.0}\n"},
    {"charts/t/templates/pod.yaml",
     "apiVersion: v1\nkind: Pod\nmetadata: {name: t}\nspec:\n  containers:\n    - name: t\n"
     "      image: \"{{ .Values.global.registry | default \"acme.io\" }}/t:{{ "
     ".Values.image.tag }}\"\n      resources: {limits: {nvidia.com/gpu: 1}}\n"}};

std::size_t floating_tags(const std::string& path, const std::string& text) {
    CheckedTree tree{kChart, {}};
    tree.texts.emplace_back(path, text);
    return tree.findings("IMG001").size();
}
std::string argo(const std::string& source) {
    return "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: t}\nspec:\n  source:\n    path: "
           "charts/t\n    helm:\n" +
           source;
}

TEST(GitOps, AHelmReleaseOfAFolderHasItsValues) {
    const std::string head =
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: t}\nspec:\n  chart: {spec: {chart: "
        "./charts/t, sourceRef: {kind: ";
    const std::string tail = ", name: r}}}\n  values: {image: {tag: latest}}\n";
    EXPECT_EQ(floating_tags("clusters/prod/t.yaml", head + "GitRepository" + tail), 1u);
    EXPECT_EQ(floating_tags("clusters/prod/t.yaml", head + "HelmRepository" + tail), 0u) << "a chart from elsewhere";
}

TEST(GitOps, AnApplicationLaysItsValuesOverOneAnother) {
    EXPECT_EQ(floating_tags("apps/t.yaml", argo("      valuesObject: {image: {tag: latest}}\n")), 1u);
    EXPECT_EQ(floating_tags("apps/t.yaml", argo("      values: |\n        image: {tag: latest}\n")), 1u);
    EXPECT_EQ(floating_tags("apps/t.yaml", argo("      parameters: [{name: image.tag, value: latest}]\n")), 1u);
    EXPECT_EQ(floating_tags("apps/t.yaml", argo("      valuesObject: {image: {tag: latest}}\n"
                                                "      parameters: [{name: image.tag, value: 1.2.0}]\n")),
              0u);
    EXPECT_EQ(floating_tags("apps/t.yaml", argo("      valueFiles: [values-eu.yaml]\n")), 0u);
}

TEST(GitOps, AnApplicationSetIsOneForEachElement) {
    const auto set = [](const std::string& hole) {
        return "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: t}\nspec:\n  generators:\n    "
               "- list:\n"
               "        elements: [{tag: 1.0.0}, {tag: latest}]\n  template:\n    spec:\n      source:\n        path: "
               "charts/t\n"
               "        helm: {parameters: [{name: image.tag, value: \"" +
               hole + "\"}]}\n";
    };
    EXPECT_EQ(floating_tags("apps/t.yaml", set("{{ .tag }}")), 1u);
    EXPECT_EQ(floating_tags("apps/t.yaml", set("{{tag}}")), 1u);
    EXPECT_EQ(floating_tags("apps/t.yaml", set("{{ .name }}")), 0u);
}

TEST(GitOps, AnUmbrellaGivesItsChartsWhatStandsBelowTheirNames) {
    CheckedTree tree{kChart, {}};
    tree.texts.emplace_back("platform/Chart.yaml",
                            "apiVersion: v2\nname: p\nversion: 1.0.0\ndependencies:\n"
                            "  - {name: t, alias: chat, version: 1.x, repository: \"file://../charts/t\"}\n");
    tree.texts.emplace_back("platform/values.yaml", "global: {registry: ghcr.io}\nchat: {image: {tag: main}}\n");
    EXPECT_EQ(tree.findings("IMG001").size(), 1u);
    tree.texts.back().second = "t: {image: {tag: main}}\n";
    EXPECT_EQ(tree.findings("IMG001").size(), 0u) << "under its alias";
}

TEST(GitOps, VariablesOfAKustomizationOfFluxAreFilledIn) {
    const auto tree_with = [](const std::string& given) {
        return CheckedTree{{{"clusters/k.yaml",
                             "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: "
                             "{name: s}\nspec:\n  path: ./serving\n  postBuild: {substitute: {" +
                                 given + "}}\n"},
                            {"serving/pod.yaml",
                             "apiVersion: v1\nkind: Pod\nmetadata: {name: t}\nspec:\n  containers:\n    - "
                             "name: t\n      image: acme.io/t:${tag:=1.0.0}\n      resources: {limits: "
                             "{nvidia.com/gpu: 1}}\n"}},
                           {}};
    };
    EXPECT_EQ(tree_with("tag: latest").findings("IMG001").size(), 1u);
    EXPECT_EQ(tree_with("tag: 1.1.0").findings("IMG001").size(), 0u);
    EXPECT_EQ(tree_with("other: latest").findings("IMG001").size(), 0u);
}

}  // namespace
}  // namespace stoker::lint

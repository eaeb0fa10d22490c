// What an overlay makes of a right manifest is what will run: a patch, a component or a generated ConfigMap with a
// mistake must be told, at its place.
#include <gtest/gtest.h>

#include "lint/checked_tree_test.h"

namespace stoker::lint {
namespace {

constexpr const char* kPlainPod = R"(apiVersion: v1
kind: Pod
metadata: { name: t, labels: { tier: gpu } }
spec:
  containers:
    - name: t
      image: ghcr.io/acme/t:1.4.2
      envFrom: [{ configMapRef: { name: tuning } }]
      resources: { limits: { nvidia.com/gpu: 1 } }
)";

CheckedTree kustomized(std::string kustomization, std::vector<std::pair<std::string, std::string>> more) {
    CheckedTree tree{{{"kustomization.yaml", "resources: [pod.yaml]\n" + kustomization}, {"pod.yaml", kPlainPod}}, {}};
    tree.texts.insert(tree.texts.end(), more.begin(), more.end());
    return tree;
}

TEST(ReadKustomization, PatchesOfAFileOfJson) {
    const auto patch = [](const std::string& value) {
        return "[{\"op\": \"add\", \"path\": \"/spec/containers/0/securityContext\", \"value\": {\"privileged\": " +
               value + "}}]\n";
    };
    for (const std::string& how :
         {std::string("patchesJson6902:\n  - { path: p.json, target: { version: v1, kind: Pod, name: t } }\n"),
          std::string("patches:\n  - { path: p.json, target: { kind: Pod, labelSelector: tier=gpu } }\n")}) {
        EXPECT_EQ(kustomized(how, {{"p.json", patch("true")}}).places("K8S018"), Places{"p.json:1"}) << how;
        EXPECT_EQ(kustomized(how, {{"p.json", patch("false")}}).places("K8S018"), Places{}) << how;
    }
    EXPECT_EQ(kustomized("patches:\n  - { path: p.json, target: { kind: Pod, labelSelector: tier=cpu } }\n",
                         {{"p.json", patch("true")}})
                  .places("K8S018"),
              Places{});
}

TEST(ReadKustomization, GeneratedConfigMapsOfAFileOfVariables) {
    const std::string generator = "configMapGenerator:\n  - { name: tuning, envs: [t.env] }\n";
    EXPECT_EQ(kustomized(generator, {{"t.env", "# x\nCUDA_LAUNCH_BLOCKING=1\n"}}).places("RUN003"), Places{"t.env:2"});
    EXPECT_EQ(kustomized(generator, {{"t.env", "# x\nCUDA_LAUNCH_BLOCKING=0\n"}}).places("RUN003"), Places{});
}

TEST(ReadKustomization, ImagesOfAComponent) {
    const auto component = [](const std::string& tag) {
        return "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nimages:\n  - { name: ghcr.io/acme/t, "
               "newTag: \"" +
               tag + "\" }\n";
    };
    EXPECT_EQ(kustomized("components: [dev]\n", {{"dev/kustomization.yaml", component("latest")}}).places("IMG001"),
              Places{"dev/kustomization.yaml:4"});
    EXPECT_EQ(kustomized("components: [dev]\n", {{"dev/kustomization.yaml", component("1.5")}}).places("IMG001"),
              Places{});
}

TEST(ReadKustomization, APatchThatReplacesAll) {
    const auto patch = [](const std::string& wanted) {
        return "apiVersion: v1\nkind: Pod\nmetadata: { name: t }\nspec:\n  containers:\n    - name: t\n      "
               "resources:\n"
               "        $patch: replace\n        requests: { nvidia.com/gpu: " +
               wanted + " }\n        limits: { nvidia.com/gpu: 2 }\n";
    };
    EXPECT_EQ(kustomized("patches: [{ path: p.yaml }]\n", {{"p.yaml", patch("1")}}).places("K8S005").size(), 1u);
    EXPECT_EQ(kustomized("patches: [{ path: p.yaml }]\n", {{"p.yaml", patch("2")}}).places("K8S005"), Places{});
}

}  // namespace
}  // namespace stoker::lint

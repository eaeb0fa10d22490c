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

TEST(ReadKustomization, APatchOfWhatLiesOnAnotherHost) {
    CheckedTree tree{
        {{"kustomization.yaml",
          "resources: [\"https://github.com/a/b//base?ref=main\"]\n"
          "configMapGenerator:\n  - { name: tuning, literals: [a=b] }\n"
          "patches:\n  - { path: p.yaml, target: { kind: Pod, name: t } }\n"},
         {"p.yaml",
          "apiVersion: v1\nkind: Pod\nmetadata: { name: t }\nspec:\n  containers:\n    - name: t\n"
          "      resources:\n        limits: { nvidia.com/gpu: 1 }\n        requests: { nvidia.com/gpu: 2 }\n"}},
        {}};
    EXPECT_EQ(tree.places("K8S005"), Places{"p.yaml:9"});
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

// What is mended wherever the manifest is applied is not told of the manifest, and what one overlay leaves is.
TEST(ReadKustomization, WhatEveryOverlayMendsIsNotTold) {
    const std::string untagged =
        "apiVersion: v1\nkind: Pod\nmetadata: {name: t}\nspec:\n  containers:\n    - name: t\n      "
        "image: ghcr.io/acme/t\n      resources: {limits: {nvidia.com/gpu: 1}}\n";
    const std::string tagged = "resources: [../base]\nimages: [{name: ghcr.io/acme/t, newTag: \"1.5\"}]\n";
    const auto places = [&](const std::string& dev) {
        return CheckedTree{{{"base/pod.yaml", untagged},
                            {"base/kustomization.yaml", "resources: [pod.yaml]\n"},
                            {"dev/kustomization.yaml", dev},
                            {"prod/kustomization.yaml", tagged}},
                           {}}
            .places("IMG001");
    };
    EXPECT_EQ(places(tagged), Places{});
    EXPECT_EQ(places("resources: [../base]\n"), Places{"base/pod.yaml:7"});
}

// A finding in what several overlays take from one base stands once, where it was written.
TEST(ReadKustomization, AMistakeOfTheBaseIsToldOnce) {
    const std::string base =
        "apiVersion: v1\nkind: Pod\nmetadata: {name: t}\nspec:\n  hostPID: true\n  containers:\n    - "
        "name: t\n      image: ghcr.io/acme/t:1.0\n      resources: {limits: {nvidia.com/gpu: 1}}\n";
    const auto overlay = [](const std::string& tag) {
        return "resources: [../base]\nimages: [{name: ghcr.io/acme/t, newTag: \"" + tag + "\"}]\n";
    };
    CheckedTree tree{{{"base/pod.yaml", base},
                      {"base/kustomization.yaml", "resources: [pod.yaml]\n"},
                      {"dev/kustomization.yaml", overlay("1.1")},
                      {"prod/kustomization.yaml", overlay("1.2")}},
                     {}};
    EXPECT_EQ(tree.places("K8S019"), Places{"base/pod.yaml:5"});
}

// [nvidia.com/gpu] in a path is a key with dots in it.
TEST(ReadKustomization, ReplacementsAtKeysWithDots) {
    const auto tree = [](const std::string& count) {
        return kustomized(
            "configMapGenerator: [{name: size, literals: [gpus=" + count +
                "]}]\nreplacements:\n  - source: {kind: ConfigMap, name: size, fieldPath: data.gpus}\n    "
                "targets:\n      - select: {kind: Pod}\n        fieldPaths: "
                "[\"spec.containers.[name=t].resources.limits.[nvidia.com/gpu]\"]\n",
            {});
    };
    EXPECT_EQ(tree("0.5").places("K8S006").size(), 1u);
    EXPECT_EQ(tree("2").places("K8S006"), Places{});
}

// A script that a ConfigMap is generated from, and a pod mounts and runs: its mistakes stand in the script.
TEST(ReadKustomization, MountedScriptsOfGeneratedConfigMaps) {
    const auto tree = [](const std::string& options) {
        return CheckedTree{
            {{"kustomization.yaml",
              "resources: [job.yaml]\nconfigMapGenerator: [{name: s, files: [go.sh=bin/start.sh]}]\n"},
             {"job.yaml",
              "apiVersion: batch/v1\nkind: Job\nmetadata: {name: t}\nspec:\n  template:\n    spec:\n      volumes: "
              "[{name: "
              "s, configMap: {name: s}}]\n      containers:\n        - name: t\n          image: ghcr.io/acme/t:1.0\n  "
              "    "
              "    command: [bash, /s/go.sh]\n          resources: {limits: {nvidia.com/gpu: 8}}\n          "
              "volumeMounts: [{name: s, mountPath: /s}]\n"},
             {"bin/start.sh", "#!/bin/bash\nset -e\ntorchrun --nnodes=2 --nproc_per_node=8 " + options + "train.py\n"}},
            {}};
    };
    EXPECT_EQ(tree("").places("RUN014"), Places{"bin/start.sh:3"});
    EXPECT_EQ(tree("--rdzv_backend=c10d --rdzv_endpoint=t-0.t:29500 ").places("RUN014"), Places{});
}

// The old label in a patch of a component: the kustomization itself does not hold the word.
TEST(ReadKustomization, LabelsOfAComponentsPatch) {
    CheckedTree tree =
        kustomized("components: [c]\n",
                   {{"c/kustomization.yaml", "kind: Component\npatches: [{path: p.yaml, target: {kind: Pod}}]\n"},
                    {"c/p.yaml",
                     "apiVersion: v1\nkind: Pod\nmetadata: {name: any}\nspec:\n  nodeSelector: "
                     "{beta.kubernetes.io/instance-type: Standard_NC24ads_A100_v4}\n"}});
    EXPECT_EQ(tree.places("K8S010"), Places{"c/p.yaml:5"});
}

}  // namespace
}  // namespace stoker::lint

// What rules say of files that others name: told where it is written, and not said of what is meant so.
#include <gtest/gtest.h>

#include "lint/checked_tree_test.h"

namespace stoker::lint {
namespace {

Places places_in(std::string_view rule, std::vector<std::pair<std::string, std::string>> texts) {
    CheckedTree tree{std::move(texts), {}};
    return tree.places(rule);
}

const std::string kGpuService =
    "services:\n  api:\n    image: ghcr.io/acme/api:1.0\n    environment:\n      HF_TOKEN: ${HF}\n    deploy: { "
    "resources: "
    "{ reservations: { devices: [{ driver: nvidia, count: 1, capabilities: [gpu] }] } } }\n";
const std::string kSecret = "hf_" + std::string("AbCdEfGhIjKlMnOpQrStUvWxYz012345");

TEST(RulesInTrees, ASecretOfAnEnvFileIsToldThere) {
    EXPECT_EQ(places_in("SEC004", {{"compose.yaml", kGpuService}, {".env", "A=1\nHF=" + kSecret + "\n"}}),
              Places{".env:2"});
    EXPECT_EQ(
        places_in("SEC004",
                  {{"compose.yaml", kGpuService}, {".env", "A=1\nHF=" + kSecret + "\n"}, {".gitignore", "/.env\n"}}),
        Places{});
    EXPECT_EQ(places_in("SEC004", {{"compose.yaml", kGpuService}, {".env", "A=1\nHF=\n"}}), Places{});
}

TEST(RulesInTrees, ASecretAmongTheItemsOfAList) {
    const std::string run = "docker run \"${args[@]}\" ghcr.io/acme/api:1.0\n";
    EXPECT_EQ(places_in("SEC004",
                        {{"a.sh", "#!/bin/bash\nargs=(--gpus all)\nargs+=(-e \"HF_TOKEN=" + kSecret + "\")\n" + run}}),
              Places{"a.sh:3"});
    EXPECT_EQ(places_in("SEC004", {{"a.sh", "#!/bin/bash\nargs=(--gpus all -e \"HF_TOKEN=$(cat t)\")\n" + run}}),
              Places{});
}

TEST(RulesInTrees, DevicesOfAnOverrideBesideComposeCount) {
    const std::string base = "services:\n  api:\n    image: vllm/vllm-openai:v0.8.5\n";
    const auto over = [](const std::string& capabilities) {
        return "services:\n  api:\n    deploy: { resources: { reservations: { devices: [{ driver: nvidia, count: 1" +
               capabilities + " }] } } }\n";
    };
    EXPECT_EQ(places_in("CMP001", {{"compose.yaml", base}}).size(), 1u);
    EXPECT_EQ(places_in("CMP001", {{"compose.yaml", base}, {"compose.override.yaml", over(", capabilities: [gpu]")}}),
              Places{});
    EXPECT_EQ(places_in("CMP003", {{"compose.yaml", base}, {"compose.override.yaml", over("")}}).size(), 1u);
}

TEST(RulesInTrees, RanksOfAPyTorchJobAgainstItsDevices) {
    const auto job = [](const std::string& ranks) {
        return "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: { name: t }\nspec:\n  nprocPerNode: \"" +
               ranks +
               "\"\n  pytorchReplicaSpecs:\n    Worker:\n      template:\n        spec:\n          containers:\n"
               "            - name: pytorch\n              image: ghcr.io/acme/t:1.0\n              command: "
               "[torchrun, "
               "train.py]\n              resources: { limits: { nvidia.com/gpu: 8 } }\n";
    };
    EXPECT_EQ(places_in("K8S024", {{"job.yaml", job("4")}}), Places{"job.yaml:5"});
    EXPECT_EQ(places_in("K8S024", {{"job.yaml", job("8")}}), Places{});
    EXPECT_EQ(places_in("K8S024", {{"job.yaml", job("auto")}}), Places{});
}

TEST(RulesInTrees, AVersionThatItsFolderNamesIsMeant) {
    const std::string crd =
        "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata: { name: "
        "x }\n";
    EXPECT_EQ(places_in("K8S009", {{"crd/v1beta1/x.yaml", crd}}), Places{});
    EXPECT_EQ(places_in("K8S009", {{"crd/x.yaml", crd}}).size(), 1u);
}

TEST(RulesInTrees, ADashboardThatSpeaksOfGpusGivesNobodyOne) {
    const auto chart = [](const std::string& line) {
        return "{{ if .Values.on }}\ndata: { d: '" + line + "' }\nspec:\n  image: grafana/grafana:latest\n{{ end }}\n";
    };
    EXPECT_EQ(places_in("IMG001", {{"templates/g.yaml", chart("sum(x{resource=\"nvidia.com/gpu\"})")}}), Places{});
    EXPECT_EQ(places_in("IMG001", {{"templates/g.yaml", chart("nvidia.com/gpu: 1")}}).size(), 1u);
}

TEST(RulesInTrees, WhatEntersTheNodeIsATool) {
    const auto pod = [](const std::string& program) {
        return "apiVersion: v1\nkind: Pod\nmetadata: { name: t }\nspec:\n  containers:\n    - name: t\n      image: "
               "ubuntu:22.04\n      command: [" +
               program +
               ", --target, \"1\", --, ls]\n      securityContext: { privileged: true }\n      resources: { limits: { "
               "nvidia.com/gpu: 1 } }\n";
    };
    EXPECT_EQ(places_in("K8S018", {{"p.yaml", pod("nsenter")}}), Places{});
    EXPECT_EQ(places_in("K8S018", {{"p.yaml", pod("train")}}).size(), 1u);
}

TEST(RulesInTrees, ATextIsNotCalledBrokenYaml) {
    const std::string text = "It begins\napiVersion: v1\nkind: Pod\nand then somebody writes on\n";
    EXPECT_EQ(places_in("SYN001", {{"notes.txt", text}}), Places{});
    EXPECT_EQ(places_in("SYN001", {{"notes.yaml", text}}).size(), 1u);
}

}  // namespace
}  // namespace stoker::lint

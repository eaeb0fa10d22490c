// A pool whose size comes from the call of a module must not pass because the module alone does not say it; and what a
// module says by itself must not be told once for each call.
#include <gtest/gtest.h>

#include <algorithm>

#include "lint/checked_tree_test.h"

namespace stoker::lint {
namespace {

constexpr const char* kPool = R"(variable "size" {}
variable "nodes" {
  default = 1
}
resource "azurerm_kubernetes_cluster_node_pool" "pool" {
  count      = var.nodes
  name       = "pool"
  vm_size    = var.size
  node_count = 2
}
)";

TEST(PathFrom, FollowsDots) {
    EXPECT_EQ(path_from("infra/main.tf", "./modules/vm"), "infra/modules/vm");
    EXPECT_EQ(path_from("infra/main.tf", "../modules/vm"), "modules/vm");
    EXPECT_EQ(path_from("main.tf", "../vm"), "../vm");
    EXPECT_EQ(path_from("/a/b/main.tf", "../vm/./x.tf"), "/a/vm/x.tf");
}

TEST(LocalModules, AreEvaluatedWithTheInputsOfACall) {
    CheckedTree tree{
        {{"main.tf", "module \"gpu\" {\n  source = \"./pool\"\n  size   = \"Standard_NC24ads_A100_v4\"\n}\n"},
         {"pool/main.tf", kPool}},
        {}};
    const auto found = tree.findings("NPL001");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].path, "pool/main.tf");
    EXPECT_EQ(found[0].place.line, 5u);
    EXPECT_EQ(found[0].call, "module.gpu");
    EXPECT_EQ(found[0].address, "tf:module.gpu.azurerm_kubernetes_cluster_node_pool.pool");
    ASSERT_FALSE(found[0].related.empty());
    EXPECT_EQ(found[0].related.back().path, "main.tf");
    EXPECT_EQ(found[0].related.back().message, "called here as module.gpu");
    EXPECT_FALSE(found[0].fix);
}

TEST(LocalModules, AreToldOnceForSeveralCalls) {
    CheckedTree tree{{{"main.tf",
                       "module \"a\" {\n  source = \"./pool\"\n  size = \"Standard_NC24ads_A100_v4\"\n}\n"
                       "module \"b\" {\n  source = \"./pool\"\n  size = \"Standard_ND96asr_v4\"\n}\n"
                       "module \"c\" {\n  source = \"./pool\"\n  size = \"Standard_D4s_v5\"\n}\n"},
                      {"pool/main.tf", kPool}},
                     {}};
    const auto found = tree.findings("NPL001");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].related.size(), 2u);
}

TEST(LocalModules, WhatTheCallSwitchesOffIsNotMade) {
    CheckedTree tree{
        {{"main.tf",
          "module \"a\" {\n  source = \"./pool\"\n  nodes = 0\n  size = \"Standard_NC24ads_A100_v4\"\n}\n"
          "module \"b\" {\n  count = 0\n  source = \"./pool\"\n  size = \"Standard_NC24ads_A100_v4\"\n}\n"},
         {"pool/main.tf", kPool}},
        {}};
    EXPECT_TRUE(tree.findings("NPL001").empty());
}

TEST(LocalModules, ARetiredSizeIsToldWhereItIsWritten) {
    CheckedTree tree{{{"main.tf", "module \"gpu\" {\n  source = \"./pool\"\n  size   = \"Standard_NC6\"\n}\n"},
                      {"pool/main.tf", kPool}},
                     {}};
    const auto found = tree.findings("SKU001");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].path, "main.tf");
    EXPECT_EQ(found[0].place.line, 3u);
}

TEST(LocalModules, CallsWithinModulesAndLoopsEnd) {
    CheckedTree nested{
        {{"main.tf", "module \"a\" {\n  source = \"./a\"\n  size = \"Standard_ND96asr_v4\"\n}\n"},
         {"a/main.tf", "variable \"size\" {}\nmodule \"b\" {\n  source = \"../pool\"\n  size = var.size\n}\n"},
         {"pool/main.tf", kPool}},
        {}};
    const auto found = nested.findings("NPL001");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].call, "module.a.module.b");
    CheckedTree loop{{{"main.tf", "module \"a\" {\n  source = \"./a\"\n}\n"},
                      {"a/main.tf", "module \"b\" {\n  source = \"../a\"\n}\n"}},
                     {}};
    EXPECT_TRUE(loop.findings("NPL001").empty());
    std::string many;
    for (int i = 0; i < 500; ++i) many += "module \"m" + std::to_string(i) + "\" {\n  source = \"./pool\"\n}\n";
    CheckedTree wide{{{"main.tf", many}, {"pool/main.tf", kPool}}, {}};
    wide.read();
    EXPECT_EQ(wide.files[0]->calls.size(), 64u);
}

TEST(LocalModules, TakeLocalsAndVariablesOfTheirOwnFolder) {
    CheckedTree tree{{{"main.tf", "module \"gpu\" {\n  source = \"./pool\"\n}\n"},
                      {"pool/main.tf",
                       "resource \"azurerm_kubernetes_cluster_node_pool\" \"p\" {\n  vm_size = local.size\n  name = "
                       "\"p\"\n}\n"},
                      {"pool/locals.tf", "locals {\n  size = \"Standard_ND96asr_v4\"\n}\n"}},
                     {}};
    const auto found = tree.findings("NPL001");
    ASSERT_EQ(found.size(), 1u);  // alone and in the call: one place, one finding
    EXPECT_EQ(found[0].call, "");
}

TEST(LocalModules, BicepModulesTakeTheirParameters) {
    CheckedTree tree{
        {{"main.bicep", "module gpu './pool.bicep' = {\n  name: 'gpu'\n  params: { size: 'Standard_ND96asr_v4' }\n}\n"},
         {"pool.bicep",
          "param size string\nresource p 'Microsoft.ContainerService/managedClusters/agentPools@2025-01-01' = "
          "{\n  name: 'a/p'\n  properties: { vmSize: size, count: 2 }\n}\n"}},
        {}};
    const auto found = tree.findings("NPL001");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].path, "pool.bicep");
    EXPECT_EQ(found[0].call, "gpu");
}

// Alone the module is seen to have a GPU pool by its taint, but not at what price.
TEST(LocalModules, GiveThePriceToWhatIsToldAnyway) {
    std::string pool = kPool;
    pool.insert(pool.find("  node_count"), "  node_taints = [\"sku=gpu:NoSchedule\"]\n");
    CheckedTree tree{
        {{"main.tf", "module \"gpu\" {\n  source = \"./pool\"\n  size   = \"Standard_NC24ads_A100_v4\"\n}\n"},
         {"pool/main.tf", pool}},
        {}};
    const auto found = tree.findings("NPL003");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].call, "");
    ASSERT_TRUE(found[0].cost);
    EXPECT_EQ(found[0].cost->nodes, 2);
    EXPECT_EQ(found[0].related.back().message, "called here as module.gpu");
}

}  // namespace
}  // namespace stoker::lint

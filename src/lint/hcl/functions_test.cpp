// A retired size that only a function gives must be found where it is written, whatever the function is called.
#include <gtest/gtest.h>

#include "lint/checked_tree_test.h"

namespace stoker::lint {
namespace {

const std::string kTfPool = R"(
resource "azurerm_kubernetes_cluster_node_pool" "p" {
  name    = "p"
  vm_size = local.size
}
)";
const std::string kBicepPool = R"(
resource c 'Microsoft.ContainerService/managedClusters@2024-05-01' existing = { name: 'c' }
resource p 'Microsoft.ContainerService/managedClusters/agentPools@2024-05-01' = {
  parent: c
  name: 'p'
  properties: { vmSize: size, mode: 'User' }
}
)";

TEST(Functions, TheFilesOfAFolderInTerraform) {
    CheckedTree tree{{{"pools/a.yaml", "size: Standard_NC24ads_A100_v4\n"},
                      {"pools/b.yaml", "size: Standard_NC24s_v3\n"},
                      {"main.tf", R"(locals {
  pools = { for f in fileset(path.module, "pools/*.yaml") : trimsuffix(basename(f), ".yaml") => yamldecode(file("${path.module}/${f}")) }
  size  = local.pools["b"].size
})" + kTfPool}},
                     {}};
    EXPECT_EQ(tree.places("SKU001"), Places{"pools/b.yaml:1"});
}

TEST(Functions, NumbersUpToOneInTerraform) {
    for (const std::string range : {"range(2)", "range(1, 3)", "range(4, 0, -2)", "range(0, 4, 2)"}) {
        CheckedTree tree{{{"main.tf", "locals {\n  pools = { for i in " + range +
                                          " : \"w${i}\" => { size = \"Standard_NC6s_v3\" } }\n"
                                          "  size = local.pools[\"w2\"].size\n}" +
                                          kTfPool}},
                         {}};
        EXPECT_EQ(tree.places("SKU001").size(), range == "range(2)" ? 0u : 1u) << range;
    }
}

TEST(Functions, RangesOneBehindTheOther) {
    const auto network = [](const std::string& range) {
        return CheckedTree{{{"main.tf", "locals { nets = cidrsubnets(\"" + range + R"(", 4, 4) }
resource "azurerm_virtual_network" "n" {
  name          = "n"
  address_space = [local.nets[0]]
}
resource "azurerm_linux_virtual_machine_scale_set" "s" {
  name = "s"
  sku  = "Standard_ND96isr_H100_v5"
})"}},
                           {}};
    };
    EXPECT_EQ(network("172.16.0.0/12").places("NET004").size(), 1u);
    EXPECT_EQ(network("10.16.0.0/12").places("NET004"), Places{});
}

TEST(Functions, PartsOfAFileOfJsonInBicep) {
    CheckedTree tree{
        {{"p.json", "{\"gpu\": [{\"size\": \"Standard_NC6s_v3\"}]}"},
         {"main.bicep", "var gpu = loadJsonContent('p.json', '$.gpu[0]')\nvar size = gpu.size" + kBicepPool}},
        {}};
    EXPECT_EQ(tree.places("SKU001"), Places{"p.json:1"});
}

TEST(Functions, ASharedFileOfBicepBelowOneName) {
    CheckedTree tree{
        {{"shared.bicep", "@export()\nvar sizes = {\n  big: 'Standard_NC24rs_v3'\n}\n"},
         {"main.bicep", "import * as shared from 'shared.bicep'\nvar size = shared.sizes.big" + kBicepPool}},
        {}};
    const Places found = tree.places("SKU001");
    EXPECT_EQ(found, Places{"shared.bicep:3"});
}

TEST(Functions, TheDefaultOfAnEnvironmentVariableInBicep) {
    CheckedTree tree{{{"main.bicep", "param size string" + kBicepPool},
                      {"main.bicepparam",
                       "using 'main.bicep'\nparam size = readEnvironmentVariable('S', "
                       "'Standard_NC6s_v3')\n"}},
                     {}};
    EXPECT_FALSE(tree.places("SKU001").empty());
}

TEST(Functions, UnionOfObjectsTakesTheLater) {
    const auto compute = [](const std::string& least) {
        return CheckedTree{
            {{"main.bicep", "var s = union({ a: { minNodeCount: 1 } }, { a: { minNodeCount: " + least + R"( } })
resource w 'Microsoft.MachineLearningServices/workspaces@2024-04-01' existing = { name: 'w' }
resource k 'Microsoft.MachineLearningServices/workspaces/computes@2024-04-01' = {
  parent: w
  name: 'k'
  properties: { computeType: 'AmlCompute', properties: { vmSize: 'Standard_NC24ads_A100_v4', scaleSettings: s.a } }
})"}},
            {}};
    };
    EXPECT_EQ(compute("2").places("COST003").size(), 1u);
    EXPECT_EQ(compute("0").places("COST003"), Places{});
}

TEST(Functions, TerragruntGivesAModuleItsInputs) {
    CheckedTree tree{{{"m/main.tf", "variable \"s\" {}\nlocals { size = var.s }" + kTfPool},
                      {"live/terragrunt.hcl",
                       "terraform {\n  source = \"../m\"\n}\ninputs = {\n  s = "
                       "\"Standard_NC6s_v3\"\n}\n"}},
                     {}};
    EXPECT_EQ(tree.places("SKU001"), Places{"live/terragrunt.hcl:5"});
}

// A size that all pools of an environment share stands in a folder above them.
TEST(Functions, TerragruntReadsTheFoldersAbove) {
    const auto places = [](const std::string& name) {
        CheckedTree tree{
            {{"m/main.tf", "variable \"s\" {}\nlocals { size = var.s }" + kTfPool},
             {"live/env.hcl", "locals {\n  gpu = { size = \"Standard_NC6s_v3\" }\n}\n"},
             {"live/pool/terragrunt.hcl", "locals {\n  env = read_terragrunt_config(find_in_parent_folders(\"" + name +
                                              "\"))\n}\nterraform {\n  source = \"../../m\"\n}\ninputs = {\n  s = "
                                              "local.env.locals.gpu.size\n}\n"}},
            {}};
        return tree.places("SKU001");
    };
    EXPECT_EQ(places("env.hcl"), Places{"live/env.hcl:2"});
    EXPECT_EQ(places("other.hcl"), Places{});
}

}  // namespace
}  // namespace stoker::lint

// A root is deployed once for each environment: a size that only production has is found where production gives it.
#include <gtest/gtest.h>

#include "lint/checked_tree_test.h"

namespace stoker::lint {
namespace {

std::string pool_of_size(const std::string& size) {
    return "resource \"azurerm_kubernetes_cluster_node_pool\" \"gpu\" {\n  vm_size = " + size +
           "\n  node_taints = [\"sku=gpu:NoSchedule\"]\n  auto_scaling_enabled = true\n  min_count = 0\n"
           "  max_count = 2\n}\n";
}
constexpr const char* kVariables = "variable \"size\" {}\nvariable \"size_of_disk\" { default = 4 }\n";

TEST(VariableFiles, GivenByNameMakeARootEach) {
    CheckedTree tree{{{"main.tf", pool_of_size("var.size")},
                      {"variables.tf", kVariables},
                      {"envs/dev.tfvars", "size = \"Standard_NC24ads_A100_v4\"\n"},
                      {"envs/prod.tfvars", "size = \"Standard_NC6s_v3\"\n"}},
                     {}};
    EXPECT_EQ(tree.places("SKU001"), Places{"envs/prod.tfvars:1"});
}

TEST(VariableFiles, OfNamesThatAreNotAskedForChangeNothing) {
    CheckedTree tree{{{"main.tf", pool_of_size("var.size")},
                      {"variables.tf", kVariables},
                      {"prod.tfvars", "size_of = \"Standard_NC6s_v3\"\n"}},
                     {}};
    tree.read();
    EXPECT_TRUE(tree.files[0]->calls.empty());
}

TEST(VariableFiles, ReachAResourceThroughTheLocalsOfAnotherFile) {
    CheckedTree tree{
        {{"main.tf", pool_of_size("local.size")},
         {"locals.tf", "locals {\n  size = var.prod ? \"Standard_NC6s_v3\" : \"Standard_NC24ads_A100_v4\"\n}\n"},
         {"variables.tf", "variable \"prod\" { default = false }\n"},
         {"dev.tfvars", "prod = false\n"}},
        {}};
    EXPECT_EQ(tree.places("SKU001"), Places{});
    tree.texts.back() = {"prod.tfvars", "prod = true\n"};
    EXPECT_EQ(tree.places("SKU001"), Places{"locals.tf:2"});
}

TEST(VariableFiles, ThatCannotBeReadAreLeft) {
    CheckedTree tree{{{"main.tf", pool_of_size("var.size")},
                      {"variables.tf", kVariables},
                      {"prod.tfvars", "size = \"Standard_NC6s_v3\nmore\n"}},
                     {}};
    tree.read();
    EXPECT_TRUE(tree.files[0]->calls.empty());
}

}  // namespace
}  // namespace stoker::lint

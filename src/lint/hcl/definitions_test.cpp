// Files of a root are one program: a local of another file that is not followed hides every size that rests on it.
#include "lint/hcl/definitions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lint/checked_tree_test.h"

namespace stoker::lint {
namespace {

const std::string kRootPool =
    "resource \"azurerm_kubernetes_cluster_node_pool\" \"gpu\" {\n  vm_size = local.size\n"
    "  node_taints = [\"sku=gpu:NoSchedule\"]\n  auto_scaling_enabled = true\n  min_count = 0\n  max_count = 2\n}\n";

TEST(Definitions, AreLookedForWhereANameIsMissing) {
    CheckedTree tree{{{"main.tf", "resource \"a\" \"b\" {\n  v = local.size\n  w = var.known\n}\n"},
                      {"naming.tf", "locals {\n  size = \"x\"\n}\n"},
                      {"outputs.tf", "output \"size\" {}\n"},
                      {"other.tf", "locals {\n  colour = \"blue\"\n}\n"}},
                     {}};
    tree.read();
    ReadOptions options;
    options.list = [](const std::string&) {
        return Places{"main.tf", "naming.tf", "other.tf", "outputs.tf", "locals.tf", "variables.tf"};
    };
    options.neighbour = [&](const std::string& name) -> std::optional<std::string> {
        for (const auto& [path, text] : tree.texts)
            if (path == name) return text;
        return std::nullopt;
    };
    const File alone("main.tf", tree.texts[0].second);
    EXPECT_THAT(files_that_define(alone, options, [](bool local, std::string_view) { return !local; }),
                testing::ElementsAre("naming.tf"));
    EXPECT_TRUE(files_that_define(alone, options, [](bool, std::string_view) { return true; }).empty());
}

TEST(Definitions, ALocalOfAnotherFileIsEvaluatedWithTheVariablesOfTheRoot) {
    CheckedTree tree{{{"main.tf", kRootPool},
                      {"locals.tf",
                       "locals {\n  prod = var.environment == \"prod\"\n"
                       "  size = local.prod ? \"Standard_NC6s_v3\" : \"Standard_NC24ads_A100_v4\"\n}\n"},
                      {"inputs.tf", "variable \"environment\" { default = \"dev\" }\n"}},
                     {}};
    EXPECT_EQ(tree.places("SKU001"), Places{});
    tree.texts.emplace_back("terraform.tfvars", "environment = \"prod\"\n");
    EXPECT_EQ(tree.places("SKU001"), Places{"locals.tf:3"});
}

TEST(Definitions, LocalsThatAskForOneAnotherAcrossFilesEnd) {
    CheckedTree tree{{{"main.tf", kRootPool},
                      {"a.tf", "locals {\n  size = local.other\n}\n"},
                      {"b.tf", "locals {\n  other = local.size\n}\n"}},
                     {}};
    EXPECT_EQ(tree.places("SKU001"), Places{});
}

TEST(Definitions, AnOverrideMayRestOnALocal) {
    CheckedTree tree{
        {{"main.tf", kRootPool + "locals {\n  size = \"Standard_NC24ads_A100_v4\"\n  old = \"Standard_NC6s_v3\"\n}\n"},
         {"override.tf", "resource \"azurerm_kubernetes_cluster_node_pool\" \"gpu\" {\n  vm_size = local.old\n}\n"}},
        {}};
    EXPECT_EQ(tree.places("SKU001").size(), 1u);
}

}  // namespace
}  // namespace stoker::lint

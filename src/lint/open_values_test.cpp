// "No findings" of a file whose sizes are all variables says little: what could not be judged is counted.
#include <gtest/gtest.h>

#include "lint/outcome.h"
#include "lint/read.h"

namespace stoker::lint {
namespace {

TEST(OpenValues, CountsWhatRulesAskForAndCannotKnow) {
    const auto file = read_file("main.tf",
                                "variable \"size\" {}\nvariable \"n\" {\n  default = 2\n}\n"
                                "resource \"azurerm_kubernetes_cluster_node_pool\" \"gpu\" {\n"
                                "  name       = var.name\n  vm_size    = var.size\n  node_count = var.n\n"
                                "  mode       = var.mode\n  node_taints = [var.taint]\n}\n");
    OpenValues open;
    add_open_values(*file, open);
    EXPECT_EQ(open.attributes, 2u);
    EXPECT_EQ(open.resources, 1u);
    ASSERT_EQ(open.values.size(), 2u);
    EXPECT_EQ(open.values[0].attribute, "size");
    EXPECT_EQ(open.values[0].written, "var.size");
    EXPECT_EQ(open.values[0].place.line, 7u);
    EXPECT_EQ(open.values[1].attribute, "taint");

    ReadOptions options;
    options.size = "Standard_ND96asr_v4";
    const auto assumed = read_file("main.tf", std::string(file->source().text()), options);
    EXPECT_EQ(assumed->resources[0].get(Attr::size).text, "Standard_ND96asr_v4");
    EXPECT_TRUE(assumed->resources[0].get(Attr::size).assumed);
}

}  // namespace
}  // namespace stoker::lint

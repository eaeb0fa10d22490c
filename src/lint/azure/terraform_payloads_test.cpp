// Manifests and cloud-configs that Terraform fills in are deployed as they are filled in, not as they are written.
#include <gtest/gtest.h>

#include "lint/checked_tree_test.h"

namespace stoker::lint {
namespace {

std::string kubectl_manifest(const std::string& more = "") {
    return "variable \"tag\" { default = \"latest\" }\nvariable \"name\" {}\nresource \"kubectl_manifest\" \"t\" {\n"
           "  yaml_body = <<-YAML\n    apiVersion: v1\n    kind: Pod\n    metadata: {name: \"${var.name}\"}\n    "
           "spec:\n"
           "      containers:\n" +
           more +
           "        - name: t\n          image: acme.io/t:${var.tag}\n"
           "          resources: {limits: {nvidia.com/gpu: 1}}\n  YAML\n}\n";
}

TEST(TerraformPayloads, AHoleOfAHeredocIsFilledBesideOneThatStaysOpen) {
    CheckedTree tree{{{"main.tf", kubectl_manifest()}}, {}};
    EXPECT_EQ(tree.places("IMG001"), Places{"main.tf:11"});
    tree.texts.emplace_back("terraform.tfvars", "tag = \"1.2\"\n");
    EXPECT_EQ(tree.places("IMG001"), Places{});
}

TEST(TerraformPayloads, BranchesOfAHeredocAreFollowed) {
    CheckedTree tree{
        {{"main.tf", kubectl_manifest("%{ if var.tag == \"latest\" }\n        - name: side\n          image: "
                                      "acme.io/side:latest\n          resources: {limits: {nvidia.com/gpu: "
                                      "1}}\n%{ endif }\n")},
         {"terraform.tfvars", "name = \"x\"\n"}},
        {}};
    EXPECT_EQ(tree.findings("IMG001").size(), 2u);
    tree.texts[1].second += "tag = \"1.2\"\n";
    EXPECT_EQ(tree.places("IMG001"), Places{});
}

TEST(TerraformPayloads, AManifestOfATemplateFileIsReadAsItIsFilledIn) {
    CheckedTree tree{{{"main.tf",
                       "resource \"kubectl_manifest\" \"t\" {\n  yaml_body = templatefile(\"pod.yaml.tftpl\", { tag "
                       "= \"latest\" })\n}\n"},
                      {"pod.yaml.tftpl",
                       "apiVersion: v1\nkind: Pod\nmetadata: {name: t}\nspec:\n  containers:\n    - name: t\n"
                       "      image: acme.io/t:${tag}\n      resources: {limits: {nvidia.com/gpu: 1}}\n"}},
                     {}};
    EXPECT_EQ(tree.findings("IMG001").size(), 1u);
}

TEST(TerraformPayloads, PartsOfACloudinitConfigRunAsRoot) {
    CheckedTree tree{{{"main.tf",
                       "resource \"azurerm_linux_virtual_machine\" \"m\" {\n  size = \"Standard_NC24ads_A100_v4\"\n}\n"
                       "data \"cloudinit_config\" \"c\" {\n  part {\n    content_type = \"text/cloud-config\"\n"
                       "    content = file(\"init.yaml\")\n  }\n}\n"},
                      {"init.yaml", "#cloud-config\nruncmd:\n  - curl -fsSL https://x.io/i.sh | sh  # nvidia\n"}},
                     {}};
    EXPECT_EQ(tree.findings("SEC005").size(), 2u) << "in the file itself, and where the machine gets it";
}

TEST(TerraformPayloads, ValuesOfAChartMayBeEncoded) {
    CheckedTree tree{{{"infra/main.tf",
                       "resource \"helm_release\" \"r\" {\n  chart = \"${path.module}/../chart\"\n"
                       "  values = [yamlencode({ tag = \"latest\" })]\n}\n"},
                      {"chart/Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"},
                      {"chart/values.yaml", "tag: 1.0.0\n"},
                      {"chart/templates/pod.yaml",
                       "apiVersion: v1\nkind: Pod\nmetadata: {name: t}\nspec:\n  containers:\n    - name: t\n"
                       "      image: \"acme.io/t:{{ .Values.tag }}\"\n      resources: {limits: "
                       "{nvidia.com/gpu: 1}}\n"}},
                     {}};
    EXPECT_EQ(tree.findings("IMG001").size(), 1u);
}

// The network and the machines of a root stand in files of their own.
TEST(TerraformPayloads, AnOpenPortIsJudgedByAllFilesOfItsFolder) {
    const std::string rule =
        "resource \"azurerm_network_security_rule\" \"ssh\" {\n  direction = \"Inbound\"\n  access = \"Allow\"\n"
        "  protocol = \"Tcp\"\n  destination_port_range = \"22\"\n  source_address_prefix = \"*\"\n}\n";
    const std::string machine =
        "resource \"azurerm_linux_virtual_machine\" \"m\" {\n  size = \"Standard_NC24ads_A100_v4\"\n}\n";
    EXPECT_EQ((CheckedTree{{{"network.tf", rule}, {"vm.tf", machine}}, {}}.places("SEC001")), Places{"network.tf:5"});
    EXPECT_EQ((CheckedTree{{{"web/network.tf", rule}, {"gpu/vm.tf", machine}}, {}}.places("SEC001")), Places{});
}

}  // namespace
}  // namespace stoker::lint

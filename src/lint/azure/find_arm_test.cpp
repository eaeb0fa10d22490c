// An ARM template that hides its sizes behind expressions must not pass as clean.
#include <gtest/gtest.h>

#include "lint/read.h"

namespace stoker::lint {
namespace {

const Resource* first_of(const File& file, ResourceType type) {
    for (const Resource& resource : file.resources)
        if (resource.type == type) return &resource;
    return nullptr;
}
std::unique_ptr<File> arm(std::string text, const ReadOptions& options = {}) {
    return read_file("azuredeploy.json", std::move(text), options);
}

constexpr const char* kTemplate = R"({
  "parameters": { "kind": { "defaultValue": "gpu" }, "prefix": { "type": "string" } },
  "variables": { "sizes": { "gpu": "Standard_NC6", "cpu": "Standard_D4s_v5" } },
  "resources": [
    {
      "type": "Microsoft.Compute/virtualMachines",
      "name": "[concat(parameters('prefix'), '-vm')]",
      "copy": { "name": "c", "count": 3 },
      "zones": [ "1" ],
      "properties": {
        "hardwareProfile": { "vmSize": "[variables('sizes')[toLower(parameters('kind'))]]" },
        "storageProfile": { "imageReference": { "publisher": "Canonical", "offer": "[if(equals(parameters('kind'), 'gpu'), 'a', 'b')]" } }
      }
    }
  ]
})";

TEST(FindArm, EvaluatesParametersAndVariables) {
    const auto file = arm(kTemplate);
    const Resource* machine = first_of(*file, ResourceType::vm);
    ASSERT_TRUE(machine);
    EXPECT_EQ(machine->get(Attr::size).text, "Standard_NC6");
    EXPECT_EQ(file->source().text(machine->get(Attr::size).span), "\"Standard_NC6\"");
    EXPECT_EQ(machine->get(Attr::image_offer).text, "a");
    EXPECT_EQ(machine->get(Attr::count).as_int(), 3);
    EXPECT_TRUE(machine->get(Attr::name).unknown());
    EXPECT_EQ(machine->address, "arm:Microsoft.Compute/virtualMachines/[concat(parameters('prefix'), '-vm')]");
}

TEST(FindArm, TakesTheParameterFileBeside) {
    ReadOptions options;
    options.neighbour = [](const std::string& path) -> std::optional<std::string> {
        if (path != "azuredeploy.parameters.json") return std::nullopt;
        return R"({"parameters": {"kind": {"value": "cpu"}}})";
    };
    const auto file = arm(kTemplate, options);
    EXPECT_EQ(first_of(*file, ResourceType::vm)->get(Attr::size).text, "Standard_D4s_v5");
}

TEST(FindArm, KeepsScopesOfNestedTemplatesApart) {
    const auto file = arm(R"({
  "parameters": { "size": { "defaultValue": "Standard_NC6" } },
  "resources": [ {
    "type": "Microsoft.Resources/deployments", "name": "inner",
    "properties": {
      "expressionEvaluationOptions": { "scope": "inner" },
      "parameters": { "size": { "value": "[replace(parameters('size'), 'NC6', 'ND6s')]" } },
      "template": {
        "parameters": { "size": { "type": "string" } },
        "resources": [ { "type": "Microsoft.Compute/virtualMachines", "name": "vm",
                         "properties": { "hardwareProfile": { "vmSize": "[parameters('size')]" } } } ] } } } ]
})");
    const Resource* machine = first_of(*file, ResourceType::vm);
    ASSERT_TRUE(machine);
    EXPECT_EQ(machine->get(Attr::size).text, "Standard_ND6s");
}

TEST(FindArm, ReadsPoolsRulesAndExtensionsWithinTheirHolders) {
    const auto file = arm(R"({ "resources": [
    { "type": "Microsoft.ContainerService/managedClusters", "name": "aks",
      "properties": { "agentPoolProfiles": [ { "name": "gpu", "vmSize": "Standard_NC4as_T4_v3", "nodeTaints": ["a=b:NoSchedule", "c=d:NoSchedule"] } ] } },
    { "type": "Microsoft.Compute/virtualMachines", "name": "vm", "properties": {},
      "resources": [ { "type": "extensions", "name": "gpu", "properties": { "type": "NvidiaGpuDriverLinux" } } ] },
    { "type": "Microsoft.Network/networkSecurityGroups", "name": "nsg",
      "properties": { "securityRules": [ { "name": "ssh", "properties": { "destinationPortRanges": ["22", "80"] } } ] } } ] })");
    EXPECT_EQ(first_of(*file, ResourceType::node_pool)->all(Attr::taint).size(), 2u);
    EXPECT_EQ(first_of(*file, ResourceType::extension)->get(Attr::extension_type).text, "NvidiaGpuDriverLinux");
    EXPECT_EQ(first_of(*file, ResourceType::security_rule)->all(Attr::port).size(), 2u);
}

TEST(FindArm, LeavesOutWhatIsNotDeployed) {
    const auto machines = [](std::string head, std::string line) {
        const auto file = arm("{" + head + "\"resources\": [{\"type\": \"Microsoft.Compute/virtualMachines\", " + line +
                              ", \"name\": \"a\", \"properties\": {}}]}");
        return file->resources.size();
    };
    EXPECT_EQ(machines("", "\"condition\": false"), 0u);
    EXPECT_EQ(machines("", "\"condition\": \"[equals(1, 2)]\""), 0u);
    EXPECT_EQ(machines("", "\"copy\": {\"name\": \"c\", \"count\": 0}"), 0u);
    EXPECT_EQ(machines("", "\"condition\": true"), 1u);
    EXPECT_EQ(
        machines("\"parameters\": {\"on\": {\"defaultValue\": false}}, ", "\"condition\": \"[parameters('on')]\""), 1u);
}

// Copies that are told apart by their sizes alone: their names rest on a parameter without default.
TEST(FindArm, CopiesThatShareANameAsItIsWritten) {
    const auto file = arm(R"({
  "parameters": {"cluster": {"type": "string"}},
  "variables": {"pools": [{"size": "Standard_NC4as_T4_v3"}, {"size": "Standard_NC6s_v3"}]},
  "resources": [{
    "type": "Microsoft.ContainerService/managedClusters/agentPools", "apiVersion": "2024-05-01",
    "name": "[format('{0}/{1}', parameters('cluster'), copyIndex())]",
    "copy": {"name": "loop", "count": "[length(variables('pools'))]"},
    "properties": {"vmSize": "[variables('pools')[copyIndex()].size]"}
  }]
})");
    std::string sizes;
    for (const Resource& resource : file->resources)
        if (resource.type == ResourceType::node_pool) sizes += std::string(resource.get(Attr::size).text) + " ";
    EXPECT_EQ(sizes, "Standard_NC4as_T4_v3 Standard_NC6s_v3 ");
}

}  // namespace
}  // namespace stoker::lint

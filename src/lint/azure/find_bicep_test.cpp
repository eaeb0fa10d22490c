// Bicep resources must look to the rules as ARM ones do, nested and looped ones too.
#include <gtest/gtest.h>

#include "lint/read.h"

namespace stoker::lint {
namespace {

TEST(FindBicep, ReadsNestedLoopedAndReferencedResources) {
    const auto file = read_file("main.bicep", R"(
param nodes array = ['a', 'b']
resource aks 'Microsoft.ContainerService/managedClusters@2025-01-01' existing = {
  name: 'aks'
  resource gpu 'agentPools' = {
    name: 'gpu'
    properties: { vmSize: 'Standard_NC4as_T4_v3' }
  }
}
resource vms 'Microsoft.Compute/virtualMachines@2024-07-01' = [for n in nodes: {
  name: n
  properties: {
    hardwareProfile: { vmSize: 'Standard_ND96asr_v4' }
    osProfile: { customData: base64('#cloud-config\npackages: []\n') }
  }
}]
)",
                                ReadOptions{});
    ASSERT_TRUE(file->problems.empty());
    ASSERT_EQ(file->resources.size(), 3u);
    EXPECT_EQ(file->resources[0].type, ResourceType::node_pool);
    EXPECT_EQ(file->resources[0].address, "bicep:gpu");
    EXPECT_EQ(file->resources[1].address, "bicep:vms[0]");
    EXPECT_EQ(file->resources[2].get(Attr::name).text, "b");
    EXPECT_EQ(file->resources[1].get(Attr::size).text, "Standard_ND96asr_v4");
    ASSERT_EQ(file->guests.size(), 2u);
    EXPECT_EQ(file->guests[0]->source().text(), "#cloud-config\npackages: []\n");
}

TEST(FindBicep, LeavesOutWhatIsNotDeployed) {
    const auto machines = [](std::string head, std::string condition) {
        const auto file = read_file(
            "main.bicep", head + "\nresource vm 'Microsoft.Compute/virtualMachines@2024-07-01' = " + condition + "\n",
            ReadOptions{});
        EXPECT_TRUE(file->problems.empty());
        return file->resources.size();
    };
    EXPECT_EQ(machines("", "if (false) {\n  name: 'a'\n}"), 0u);
    EXPECT_EQ(machines("var on = false", "if (on) {\n  name: 'a'\n}"), 0u);
    EXPECT_EQ(machines("", "[for n in []: {\n  name: n\n}]"), 0u);
    EXPECT_EQ(machines("", "if (true) {\n  name: 'a'\n}"), 1u);
    EXPECT_EQ(machines("param on bool = false", "if (on) {\n  name: 'a'\n}"), 1u);
}

}  // namespace
}  // namespace stoker::lint

// When this breaks, rules about sizes and pools do not see what an az script makes, or blame the wrong word.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "lint/read.h"

namespace stoker::lint {
namespace {

TEST(FindAz, ReadsOptionsInAnyForm) {
    const auto file =
        read_file("vm.sh",
                  "#!/bin/bash\nSIZE=Standard_NC6s_v3\naz vmss create --instance-count=4 -n pool \\\n  --vm-sku $SIZE "
                  "--zones 1 2 --single-placement-group false --image Canonical:offer:22_04-lts:latest\n");
    ASSERT_EQ(file->resources.size(), 1u);
    const Resource& set = file->resources.front();
    EXPECT_EQ(set.type, ResourceType::scale_set);
    EXPECT_EQ(set.address, "az:vmss create/pool");
    EXPECT_EQ(set.written, "az vmss create");
    EXPECT_EQ(set.get(Attr::count).as_int(), 4);
    EXPECT_EQ(set.get(Attr::size).text, "Standard_NC6s_v3");
    EXPECT_EQ(set.get(Attr::size).source->place(set.get(Attr::size).span.begin).line, 2u);
    EXPECT_EQ(set.all(Attr::zone).size(), 2u);
    EXPECT_EQ(set.get(Attr::image_offer).text, "offer");
    EXPECT_EQ(file->source().text(set.header), "az vmss create");
}

TEST(FindAz, ReadsACommandThatAnArrayHolds) {
    const auto file = read_file(
        "aks.sh",
        "#!/bin/bash\ncmd=(az aks nodepool add\n  --name gpu\n  --node-taints sku=gpu:NoSchedule,a=b:NoExecute\n"
        "  -s Standard_ND96asr_v4)\ncmd+=(\"$@\")\n\"${cmd[@]}\"\n");
    ASSERT_EQ(file->resources.size(), 1u);
    const Resource& pool = file->resources.front();
    EXPECT_EQ(pool.type, ResourceType::node_pool);
    EXPECT_EQ(pool.source->place(pool.header.begin).line, 2u);
    EXPECT_EQ(pool.all(Attr::taint).size(), 2u);
    EXPECT_TRUE(pool.get(Attr::gpu_driver).unknown());  // "$@" may hold it
}

// A loop over an associative array makes one machine of each of its sizes, and none of them is overlooked.
TEST(FindAz, ReadsSizesOfAnAssociativeArray) {
    const auto file =
        read_file("vm.sh",
                  "#!/bin/bash\nF=NC\ndeclare -A SIZES=([small]=\"Standard_${F}6s_v3\" [big]=Standard_NC24s_v3)\n"
                  "for s in small big; do\n  az vm create -g rg -n \"gpu-$s\" --size \"${SIZES[$s]}\"\ndone\n");
    std::set<std::string> sizes;
    for (const Resource& resource : file->resources)
        for (const Value* size : resource.all(Attr::size)) sizes.insert(std::string(size->text));
    EXPECT_EQ(sizes, (std::set<std::string>{"Standard_NC6s_v3", "Standard_NC24s_v3"}));
}

TEST(FindAz, MakesTheDefaultPoolOfACluster) {
    const auto file = read_file(
        "aks.sh", "#!/bin/bash\naz aks create -n c -g rg --node-vm-size Standard_D4s_v5 --enable-cluster-autoscaler\n");
    ASSERT_EQ(file->resources.size(), 2u);
    EXPECT_EQ(file->resources[0].type, ResourceType::cluster);
    EXPECT_EQ(file->resources[1].type, ResourceType::node_pool);
    EXPECT_TRUE(file->resources[1].get(Attr::pool_mode).is("System"));
    EXPECT_EQ(file->resources[1].get(Attr::autoscaling).as_bool(), true);
}

TEST(FindAz, IsNotFooledByText) {
    EXPECT_TRUE(
        read_file(
            "x.sh",
            "#!/bin/bash\necho az vm create --size Standard_NC6\n# az vm create --size Standard_NC6\naz vm list\n")
            ->resources.empty());
}

}  // namespace
}  // namespace stoker::lint

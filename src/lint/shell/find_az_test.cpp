// When this breaks, rules about sizes and pools do not see what an az script makes, or blame the wrong word.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "lint/checked_tree_test.h"
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

// A function that is called twice makes two machines, each with what its call says.
TEST(FindAz, MakesAMachineForEachCallOfAFunction) {
    const auto made = [](const std::string& body, const std::string& calls) {
        std::string seen;
        const auto file = read_file("vm.sh", "#!/bin/bash\nmake() {\n" + body + "\n}\n" + calls + "\n");
        for (const Resource& resource : file->resources)
            seen += (resource.get(Attr::size).known() ? std::string(resource.get(Attr::size).text) : "?") + "/" +
                    std::string(resource.get(Attr::nsg).text) + " ";
        return seen;
    };
    const std::string vm = "  az vm create -g rg -n \"$name\" --size \"Standard_$size\" --nsg-rule ";
    EXPECT_EQ(made("  local name=$1 size=$2\n" + vm + "${3:-SSH}", "make a NC6 NONE\nmake b NC12"),
              "Standard_NC6/NONE Standard_NC12/SSH ");
    EXPECT_EQ(made("  name=$1; shift\n  size=$1\n" + vm + "NONE", "make a NC6\nmake b NC12"),
              "Standard_NC6/NONE Standard_NC12/NONE ");
    EXPECT_EQ(made("  az vm create -n v \"$@\"", "make --size Standard_NC6\nmake --size Standard_NC12 --nsg-rule SSH"),
              "Standard_NC6/ Standard_NC12/SSH ");
    // What a call is given is followed where the call stands, and what depends stays open.
    EXPECT_EQ(made("  size=$2\n" + vm + "NONE", "S=NC6\nmake a $S\nmake b \"$1\""), "Standard_NC6/NONE ?/NONE ");
    EXPECT_EQ(made("  size=NC6\n  if x; then size=$1; fi\n" + vm + "NONE", "make NC12\nmake NC24"), "?/NONE ?/NONE ");
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

// for f in pools/*.json: each file is a pool.
TEST(FindAz, FilesOfALoopOverAFolderAreRead) {
    CheckedTree tree{{{"a.sh", "for f in pools/*.json; do\n  az batch pool create --json-file \"$f\"\ndone\n"},
                      {"pools/a.json", "{\"id\": \"a\", \"vmSize\": \"standard_nc4as_t4_v3\"}\n"},
                      {"pools/b.json", "{\"id\": \"b\", \"vmSize\": \"standard_nc6s_v3\"}\n"},
                      {"other/c.json", "{\"id\": \"c\", \"vmSize\": \"standard_nc6s_v3\"}\n"}},
                     {}};
    EXPECT_EQ(tree.places("SKU001"), Places{"pools/b.json:1"});
}

}  // namespace
}  // namespace stoker::lint

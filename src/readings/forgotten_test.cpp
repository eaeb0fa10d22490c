#include "readings/forgotten.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/api_time.h"

namespace stoker {
namespace {

using testing::HasSubstr;

const std::string kGroupId = "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/ml";
const std::int64_t kNow = *parse_rfc3339("2026-11-28");

const Catalog& catalog() {
    static const Catalog read = *Catalog::embedded();
    return read;
}
CloudList read(const std::string& text) {
    auto list = read_cloud_list(text, "list.json");
    EXPECT_TRUE(list.ok()) << (list ? "" : list.error().text());
    return list ? std::move(*list) : CloudList{};
}
ForgottenReport judge(const std::vector<std::string>& texts, const HeldNames* held = nullptr) {
    std::vector<CloudList> lists;
    for (const std::string& text : texts) lists.push_back(read(text));
    return find_forgotten(std::move(lists), catalog(), held, kNow);
}
std::string words(const ForgottenThing& thing) {
    std::string out;
    for (const std::string& word : thing.remove) out += (out.empty() ? "" : " ") + word;
    return out;
}
bool says(const ForgottenThing& thing, std::string_view reason) {
    for (const WhyForgotten& why : thing.why)
        if (why.reason == reason) return true;
    return false;
}
std::string azure(std::string_view provider, std::string_view name, std::string_view more) {
    return fmt::format(R"({{"id": "{}/providers/{}/{}", "name": "{}", "type": "{}", "location": "eastus", {}}})",
                       kGroupId, provider, name, name, provider, more);
}
std::string vm(std::string_view name, std::string_view power, std::string_view tags = "{}") {
    return azure("Microsoft.Compute/virtualMachines", name,
                 fmt::format(R"("hardwareProfile": {{"vmSize": "Standard_ND96asr_v4"}}, "powerState": "{}", "tags": {},
                                "timeCreated": "2026-05-02T10:00:00.1234567+00:00")",
                             power, tags));
}

// A VM that was shut down from inside costs as one that works, and nothing in the portal's list shows it.
TEST(Forgotten, AStoppedMachineThatIsBilledIsTold) {
    const ForgottenReport report =
        judge({"[" + vm("idle", "VM stopped") + "," + vm("works", "VM running", R"({"owner": "anna"})") + "]"});
    ASSERT_EQ(report.things.size(), 1u);
    const ForgottenThing& idle = report.things[0];
    EXPECT_TRUE(idle.sure());
    EXPECT_TRUE(says(idle, "stopped-and-billed"));
    EXPECT_TRUE(says(idle, "no-owner"));
    EXPECT_EQ(*idle.age_days, 209);
    EXPECT_NEAR(*idle.usd_per_month, 27.197 * 730, 1);  // what the catalogue has for eastus
    EXPECT_EQ(words(idle), "az vm delete -g ml -n idle --yes --subscription 11111111-2222-3333-4444-555555555555");
}

// Whatever works and says whose it is stays out of the list; what says nothing is a question, not a verdict.
TEST(Forgotten, ARunningMachineWithoutAnOwnerIsAQuestion) {
    const ForgottenReport report = judge({"[" + vm("whose", "VM running") + "]"});
    ASSERT_EQ(report.things.size(), 1u);
    EXPECT_FALSE(report.things[0].sure());
    EXPECT_TRUE(says(report.things[0], "no-owner"));
    EXPECT_EQ(report.usd_per_month, 0);
    EXPECT_GT(report.perhaps_usd_per_month, 10'000);
}

TEST(Forgotten, DisksAddressesAndInterfacesThatNothingHas) {
    const std::string disks =
        "[" +
        azure("Microsoft.Compute/disks", "old",
              R"("diskState": "Unattached", "diskSizeGb": 1000, "sku": {"name": "Premium_LRS"})") +
        "," +
        azure("Microsoft.Compute/disks", "of-a-parked-vm",
              R"("diskState": "Reserved", "diskSizeGB": 8, "sku": {"name": "Premium_LRS"})") +
        "]";
    const std::string addresses = "[" +
                                  azure("Microsoft.Network/publicIPAddresses", "left",
                                        R"("publicIPAllocationMethod": "Static", "ipConfiguration": null)") +
                                  "," +
                                  azure("Microsoft.Network/publicIPAddresses", "nat",
                                        R"("publicIPAllocationMethod": "Static", "natGateway": {"id": "x"})") +
                                  "]";
    const std::string interfaces =
        "[" +
        azure("Microsoft.Network/networkInterfaces", "gone-nic", R"("ipConfigurations": [], "virtualMachine": null)") +
        "," +
        azure("Microsoft.Network/networkInterfaces", "pe-nic",
              R"("ipConfigurations": [], "privateEndpoint": {"id": "x"})") +
        "]";
    const ForgottenReport report = judge({disks, addresses, interfaces});
    ASSERT_EQ(report.things.size(), 3u);
    EXPECT_EQ(report.things[0].thing.name, "old");
    EXPECT_NEAR(*report.things[0].usd_per_month, 135.17, 0.01);  // P30, which is billed whole
    EXPECT_FALSE(report.things[1].usd_per_month && report.things[2].usd_per_month);
    EXPECT_EQ(report.unpriced, 1u);
}

TEST(Forgotten, APoolThatNeverEmptiesAndWhatTheClusterNeeds) {
    const auto pool = [](std::string_view name, std::string_view more) {
        return azure("Microsoft.ContainerService/managedClusters/agentPools", name, more);
    };
    std::string pools =
        "[" + pool("gpu", R"("vmSize": "Standard_ND96asr_v4", "count": 4, "enableAutoScaling": true, "minCount": 2)") +
        "," + pool("zero", R"("vmSize": "Standard_ND96asr_v4", "count": 4, "enableAutoScaling": true, "minCount": 0)") +
        "," + pool("sys", R"("vmSize": "Standard_ND96asr_v4", "count": 3, "mode": "System")") + "," +
        pool("cpu", R"("vmSize": "Standard_D4s_v5", "count": 3)") + "]";
    for (std::size_t at = 0; (at = pools.find("providers/Microsoft.ContainerService/managedClusters/agentPools/",
                                              at)) != std::string::npos;)
        pools.replace(at, 65, "providers/Microsoft.ContainerService/managedClusters/c1/agentPools/");
    const ForgottenReport report = judge({pools});
    ASSERT_EQ(report.things.size(), 1u);
    EXPECT_EQ(report.things[0].thing.name, "gpu");
    EXPECT_FALSE(report.things[0].sure());
    EXPECT_NEAR(*report.things[0].usd_per_month, 2 * 27.197 * 730, 2);
    EXPECT_THAT(words(report.things[0]), HasSubstr("--cluster-name c1 -n gpu"));
}

// What Stoker's files made is looked up where the work is known; a group hands its mark on to what is in it.
TEST(Forgotten, WhatIsMarkedIsHeldAgainstTheServer) {
    const std::string group = fmt::format(
        R"([{{"id": "{}", "name": "ml", "type": "Microsoft.Resources/resourceGroups", "location": "eastus",
             "tags": {{"managed-by": "stoker", "workload": "llama"}}}}])",
        kGroupId);
    const std::string machines = "[" + vm("llama-0", "VM running", R"({"owner": "anna"})") + "]";
    HeldNames held;
    EXPECT_TRUE(judge({group, machines}).things.empty());  // nobody was asked
    ForgottenReport report = judge({group, machines}, &held);
    ASSERT_EQ(report.things.size(), 2u);
    EXPECT_TRUE(says(report.things[0], "no-run"));
    EXPECT_FALSE(report.things[0].sure());
    held.work = {"llama"};
    report = judge({group, machines}, &held);
    EXPECT_TRUE(report.things.empty());
    EXPECT_EQ(report.held, 2u);
    held = {.nodes = {"llama-0"}};
    EXPECT_EQ(judge({machines}, &held).held, 1u);
}

TEST(Forgotten, WhatWasToEndHas) {
    const ForgottenReport report =
        judge({"[" + vm("demo", "VM running", R"({"Expires_On": "2026-11-01", "owner": "anna"})") + "," +
               vm("later", "VM running", R"({"expiry": "2027-01-01", "owner": "anna"})") + "]"});
    ASSERT_EQ(report.things.size(), 1u);
    EXPECT_TRUE(says(report.things[0], "past-its-end"));
    EXPECT_TRUE(report.things[0].sure());
}

TEST(Forgotten, AmazonAndGoogle) {
    const ForgottenReport report = judge(
        {R"({"Reservations": [{"Instances": [
             {"InstanceId": "i-1", "InstanceType": "p4d.24xlarge", "State": {"Name": "running"}, "LaunchTime": "2026-10-01T00:00:00+00:00",
              "Placement": {"AvailabilityZone": "us-east-1a"}, "Tags": [{"Key": "Name", "Value": "trial"}]},
             {"InstanceId": "i-2", "InstanceType": "p4d.24xlarge", "State": {"Name": "terminated"}}]}], "NextToken": "more"})",
         R"({"Volumes": [{"VolumeId": "vol-1", "Size": 500, "State": "available", "VolumeType": "gp3", "AvailabilityZone": "us-east-1a"}]})",
         R"({"Addresses": [{"AllocationId": "eipalloc-1", "PublicIp": "192.0.2.1", "NetworkBorderGroup": "us-east-1"},
                           {"AllocationId": "eipalloc-2", "PublicIp": "192.0.2.2", "AssociationId": "eipassoc-1"}]})",
         R"([{"kind": "compute#instance", "name": "a2", "status": "TERMINATED", "creationTimestamp": "2026-01-02T03:04:05.678-08:00",
              "selfLink": "https://www.googleapis.com/compute/v1/projects/p1/zones/us-central1-a/instances/a2",
              "zone": "https://www.googleapis.com/compute/v1/projects/p1/zones/us-central1-a",
              "machineType": "https://www.googleapis.com/compute/v1/projects/p1/zones/us-central1-a/machineTypes/a2-highgpu-8g"}])"});
    ASSERT_EQ(report.things.size(), 4u);
    std::map<std::string, std::string> removed;
    for (const ForgottenThing& each : report.things) removed[each.thing.name] = words(each);
    EXPECT_EQ(removed["trial"], "aws ec2 terminate-instances --instance-ids i-1 --region us-east-1");
    EXPECT_EQ(removed["vol-1"], "aws ec2 delete-volume --volume-id vol-1 --region us-east-1");
    EXPECT_EQ(removed["192.0.2.1"], "aws ec2 release-address --allocation-id eipalloc-1 --region us-east-1");
    EXPECT_EQ(removed["a2"], "gcloud compute instances delete a2 --zone us-central1-a --project p1");
    EXPECT_THAT(report.notes.back(), HasSubstr("goes on"));
}

// az resource list has all, and says of nothing how it is: a second list does.
TEST(Forgotten, WhatIsOnlyNamedIsNotJudgedAndTwoListsAreOne) {
    const std::string named = "[" +
                              azure("Microsoft.Compute/disks", "old",
                                    R"("sku": {"name": "Premium_LRS"}, "createdTime": "2026-01-01T00:00:00Z")") +
                              "]";
    const ForgottenReport alone = judge({named});
    EXPECT_TRUE(alone.things.empty());
    EXPECT_THAT(alone.notes.front(), HasSubstr("1 disk only named"));
    const std::string full = "[" +
                             azure("Microsoft.Compute/disks", "old",
                                   R"("diskState": "Unattached", "diskSizeGB": 64, "sku": {"name": "Premium_LRS"})") +
                             "]";
    for (const auto& lists : {std::vector{named, full}, std::vector{full, named}}) {
        const ForgottenReport report = judge(lists);
        ASSERT_EQ(report.things.size(), 1u);
        EXPECT_EQ(report.looked_at, 1u);
        EXPECT_EQ(*report.things[0].age_days, 331);
    }
}

// Whoever names a resource does not get to write our command.
TEST(Forgotten, AHostileNameMakesNoCommand) {
    const ForgottenReport report =
        judge({"[" + azure("Microsoft.Compute/disks", "--ids", R"("diskState": "Unattached")") + "]"});
    ASSERT_EQ(report.things.size(), 1u);
    EXPECT_TRUE(report.things[0].remove.empty());
}

TEST(Forgotten, WhatIsNoListIsRefusedWithItsPlace) {
    for (const auto& [text, place, what] : std::vector<std::tuple<std::string, std::string, std::string>>{
             {"", "list.json:1:1", "an empty file"},
             {"Name  ResourceGroup\n----", "list.json:1:1", "no JSON"},
             {"[\n  {\"a\": 1}\n]", "list.json:2:3", "no list of a cloud"},
             {"[\n  7\n]", "list.json:2:3", "no list of a cloud"},
             {R"({"Volumes": {"a": 1}})", "list.json:1:13", "none"},
             {R"({"Volumes": [7]})", "list.json:1:14", "no object"},
             {R"({"Reservations": [{}]})", "list.json:1:19", "without Instances"},
             {R"([{"kind": "compute#firewall", "name": "f"}])", "list.json:1:2", "compute#firewall"},
             {R"({"Volumes": [{"VolumeId": "v)", "list.json:1:27", ""},
         }) {
        const auto list = read_cloud_list(text, "list.json");
        ASSERT_FALSE(list.ok()) << text;
        EXPECT_THAT(list.error().text(), HasSubstr(place)) << text;
        EXPECT_THAT(list.error().text(), HasSubstr(what)) << text;
    }
}

// Cut anywhere, it is an error or a list, and never anything else.
TEST(Forgotten, AFileThatBreaksOffIsToldSo) {
    const std::string whole = "[" + vm("one", "VM running") + "," + vm("two", "VM stopped") + "]";
    for (std::size_t at = 1; at < whole.size(); ++at)
        EXPECT_FALSE(read_cloud_list(whole.substr(0, at), "list.json").ok()) << at;
}

}  // namespace
}  // namespace stoker

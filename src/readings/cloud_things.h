// What a cloud's own lists say is there: az resource, vm, disk, network public-ip, network nic, group list and az aks
// nodepool list, aws ec2 describe-instances, -volumes, -addresses, gcloud compute instances, disks and addresses list;
// all as JSON. Pure: text in, values out.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace stoker {

enum class ThingKind : std::uint8_t { machine, disk, address, interface, node_pool, group, other };
constexpr std::array<std::pair<ThingKind, std::string_view>, 7> enum_names(ThingKind) {
    return {{{ThingKind::machine, "machine"},
             {ThingKind::disk, "disk"},
             {ThingKind::address, "address"},
             {ThingKind::interface, "interface"},
             {ThingKind::node_pool, "node-pool"},
             {ThingKind::group, "group"},
             {ThingKind::other, "other"}}};
}
// Of a machine. stopped: it does nothing and is paid for; parked: its disks alone are.
enum class MachineState : std::uint8_t { unknown, running, stopped, parked, gone };

struct CloudThing {
    std::string cloud;  // azure, aws, gcp
    ThingKind kind = ThingKind::other;
    std::string id, name;
    std::string group;         // of Azure
    std::string account;       // subscription or project; empty: the list does not say
    std::string cluster;       // of a node pool
    std::string region, zone;  // us-east-1, us-east-1a
    std::string type;          // Standard_ND96asr_v4, Premium_LRS, Microsoft.Storage/storageAccounts
    std::string said;          // its state in the cloud's own word
    std::string host;          // what a machine calls itself
    bool detailed = true;      // false: az resource list, which tells no state
    std::optional<bool> used;  // by something else: a disk, an address, an interface
    MachineState state = MachineState::unknown;
    bool spot = false, windows = false;
    double gib = 0;                       // of a disk
    std::int64_t count = 0, least = 0;    // nodes of a pool; the least that its autoscaler keeps
    bool scales = false, system = false;  // a pool with an autoscaler; one that the cluster itself needs
    std::int64_t made_us = 0;             // 0: the list does not say
    std::map<std::string, std::string> tags;
    std::string file;
    std::uint32_t line = 0, column = 0;
};

struct CloudList {
    std::vector<CloudThing> things;  // in the order of the list
    bool goes_on = false;            // it names a next page
};
// invalid, with file:line:column: it is none of the lists above, or it breaks off.
Result<CloudList> read_cloud_list(std::string_view text, const std::string& file);

}  // namespace stoker

#include "readings/cloud_things.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/api_time.h"
#include "base/text.h"
#include "readings/tool_reader.h"

namespace stoker {
namespace {

constexpr std::size_t kMostThings = 200'000;
constexpr const char* kLists =
    "az resource, vm (-d), disk, group, network public-ip or network nic list -o json, az aks nodepool list -o json, "
    "aws "
    "ec2 describe-instances, describe-volumes or describe-addresses, gcloud compute instances, disks or addresses list "
    "--format json";

// As the command line flattens it, or as the API itself answers: under properties.
const Node* of_azure(const Node& item, std::initializer_list<std::string_view> path) {
    if (const Node* flat = node_at(&item, path); flat != nullptr && flat->kind != NodeKind::null) return flat;
    return node_at(node_at(&item, {"properties"}), path);
}
// In one version of az diskSizeGb, in another diskSizeGB.
const Node* either(const Node& item, std::string_view one, std::string_view other) {
    const Node* found = of_azure(item, {one});
    return found != nullptr ? found : of_azure(item, {other});
}
bool is_there(const Node* node) {
    return node != nullptr && node->kind != NodeKind::null && !(node->is_sequence() && node->items.empty()) &&
           !(node->is_mapping() && node->members.empty());
}
std::string last_of(std::string_view path) {
    return std::string(path.substr(path.rfind('/') + 1));
}
// "rg" of /subscriptions/S/resourceGroups/rg/providers/...; names of segments come in any case.
std::string segment_after(std::string_view path, std::string_view name) {
    const std::vector<std::string_view> parts = split(path, '/');
    for (std::size_t i = 0; i + 1 < parts.size(); ++i)
        if (equals_ignore_case(parts[i], name)) return std::string(parts[i + 1]);
    return {};
}
std::int64_t time_of(std::string_view text) {
    return parse_rfc3339(text).value_or(0);
}
std::int64_t whole(const Node* node) {
    const auto number = tool_number(node_text(node));
    return number && *number >= 0 && *number <= 1e9 ? static_cast<std::int64_t>(*number) : 0;
}

CloudThing thing_at(const Node& item, const std::string& file) {
    CloudThing thing;
    thing.file = file;
    const ToolPlace place = place_of(item.pos);
    thing.line = place.line, thing.column = place.column;
    return thing;
}
Error wrong(const Node& node, const std::string& file, const std::string& what) {
    return Error(ErrorKind::invalid, what, {file, place_of(node.pos).line, place_of(node.pos).column},
                 fmt::format("one of {}", kLists));
}

// ------------------------------------------------------------------ Azure

MachineState azure_state(std::string_view said) {
    if (said == "VM running" || said == "VM starting") return MachineState::running;
    if (said == "VM stopped" || said == "VM stopping") return MachineState::stopped;
    if (said == "VM deallocated" || said == "VM deallocating") return MachineState::parked;
    return MachineState::unknown;
}

void read_azure_details(const Node& item, CloudThing& thing) {
    switch (thing.kind) {
        case ThingKind::machine:
            thing.type = node_text(of_azure(item, {"hardwareProfile", "vmSize"}));
            thing.said = node_text(of_azure(item, {"powerState"}));
            thing.state = azure_state(thing.said);
            thing.host = node_text(of_azure(item, {"osProfile", "computerName"}));
            thing.spot = equals_ignore_case(node_text(of_azure(item, {"priority"})), "Spot");
            thing.windows =
                equals_ignore_case(node_text(of_azure(item, {"storageProfile", "osDisk", "osType"})), "Windows");
            thing.detailed = !thing.type.empty();
            break;
        case ThingKind::disk:
            thing.type = text_at(&item, {"sku", "name"});
            thing.said = node_text(of_azure(item, {"diskState"}));
            thing.gib = static_cast<double>(whole(either(item, "diskSizeGb", "diskSizeGB")));
            thing.detailed = !thing.said.empty();
            // Reserved: of a VM that is deallocated. ActiveSAS: somebody copies it out.
            if (thing.detailed) thing.used = !equals_ignore_case(thing.said, "Unattached");
            break;
        case ThingKind::address:
            thing.type = text_at(&item, {"sku", "name"});
            thing.said = node_text(either(item, "publicIpAllocationMethod", "publicIPAllocationMethod"));
            thing.detailed = !thing.said.empty();
            if (thing.detailed)
                thing.used = is_there(of_azure(item, {"ipConfiguration"})) || is_there(of_azure(item, {"natGateway"}));
            break;
        case ThingKind::interface:
            thing.detailed = of_azure(item, {"ipConfigurations"}) != nullptr;
            if (thing.detailed)
                thing.used =
                    is_there(of_azure(item, {"virtualMachine"})) || is_there(of_azure(item, {"privateEndpoint"})) ||
                    is_there(of_azure(item, {"privateLinkService"})) || is_there(of_azure(item, {"hostedWorkloads"}));
            break;
        case ThingKind::node_pool:
            thing.type = node_text(of_azure(item, {"vmSize"}));
            thing.said = node_text(of_azure(item, {"powerState", "code"}));
            thing.count = whole(of_azure(item, {"count"}));
            thing.least = whole(of_azure(item, {"minCount"}));
            thing.scales = node_text(of_azure(item, {"enableAutoScaling"})) == "true";
            thing.system = equals_ignore_case(node_text(of_azure(item, {"mode"})), "System");
            thing.spot = equals_ignore_case(node_text(of_azure(item, {"scaleSetPriority"})), "Spot");
            thing.cluster = segment_after(thing.id, "managedClusters");
            thing.detailed = !thing.type.empty();
            break;
        case ThingKind::group: thing.group = thing.name; break;
        case ThingKind::other: break;
    }
}

ThingKind azure_kind(std::string_view type) {
    static constexpr std::array<std::pair<std::string_view, ThingKind>, 6> kTypes = {
        {{"Microsoft.Compute/virtualMachines", ThingKind::machine},
         {"Microsoft.Compute/disks", ThingKind::disk},
         {"Microsoft.Network/publicIPAddresses", ThingKind::address},
         {"Microsoft.Network/networkInterfaces", ThingKind::interface},
         {"Microsoft.ContainerService/managedClusters/agentPools", ThingKind::node_pool},
         {"Microsoft.Resources/resourceGroups", ThingKind::group}}};
    for (const auto& [name, kind] : kTypes)
        if (equals_ignore_case(name, type)) return kind;
    return ThingKind::other;
}

Result<CloudThing> azure_thing(const Node& item, const std::string& file) {
    CloudThing thing = thing_at(item, file);
    thing.cloud = "azure";
    thing.id = text_at(&item, {"id"});
    thing.name = text_at(&item, {"name"});
    thing.type = text_at(&item, {"type"});
    if (thing.name.empty()) return wrong(item, file, "a resource of Azure without a name");
    thing.kind = azure_kind(thing.type);
    thing.account = segment_after(thing.id, "subscriptions");
    thing.group = segment_after(thing.id, "resourceGroups");
    thing.region = lower(text_at(&item, {"location"}));
    std::erase(thing.region, ' ');  // "East US" of some answers
    thing.made_us = time_of(node_text(of_azure(item, {"timeCreated"})));
    if (thing.made_us == 0) thing.made_us = time_of(text_at(&item, {"createdTime"}));
    if (thing.made_us == 0) thing.made_us = time_of(text_at(&item, {"systemData", "createdAt"}));
    read_azure_details(item, thing);
    return thing;
}

// ------------------------------------------------------------------ AWS

std::string region_of_zone(std::string_view zone) {
    while (!zone.empty() && zone.back() >= 'a' && zone.back() <= 'z') zone.remove_suffix(1);
    return std::string(zone);
}

Result<CloudThing> aws_machine(const Node& item, const std::string& file) {
    CloudThing thing = thing_at(item, file);
    thing.kind = ThingKind::machine;
    thing.id = text_at(&item, {"InstanceId"});
    if (thing.id.empty()) return wrong(item, file, "an instance without InstanceId");
    thing.type = text_at(&item, {"InstanceType"});
    thing.said = text_at(&item, {"State", "Name"});
    thing.state = thing.said == "running" || thing.said == "pending"            ? MachineState::running
                  : thing.said == "stopped" || thing.said == "stopping"         ? MachineState::parked
                  : thing.said == "terminated" || thing.said == "shutting-down" ? MachineState::gone
                                                                                : MachineState::unknown;
    thing.made_us = time_of(text_at(&item, {"LaunchTime"}));
    thing.zone = text_at(&item, {"Placement", "AvailabilityZone"});
    thing.spot = text_at(&item, {"InstanceLifecycle"}) == "spot";
    thing.windows = equals_ignore_case(text_at(&item, {"Platform"}), "windows");
    thing.host = text_at(&item, {"PrivateDnsName"});
    thing.host = thing.host.substr(0, thing.host.find('.'));
    return thing;
}
Result<CloudThing> aws_disk(const Node& item, const std::string& file) {
    CloudThing thing = thing_at(item, file);
    thing.kind = ThingKind::disk;
    thing.id = text_at(&item, {"VolumeId"});
    if (thing.id.empty()) return wrong(item, file, "a volume without VolumeId");
    thing.type = text_at(&item, {"VolumeType"});
    thing.said = text_at(&item, {"State"});
    thing.used = thing.said != "available";
    thing.gib = static_cast<double>(whole(item.find("Size")));
    thing.made_us = time_of(text_at(&item, {"CreateTime"}));
    thing.zone = text_at(&item, {"AvailabilityZone"});
    return thing;
}
Result<CloudThing> aws_address(const Node& item, const std::string& file) {
    CloudThing thing = thing_at(item, file);
    thing.kind = ThingKind::address;
    thing.id = text_at(&item, {"AllocationId"});
    thing.name = text_at(&item, {"PublicIp"});
    if (thing.id.empty() && thing.name.empty())
        return wrong(item, file, "an address without AllocationId and PublicIp");
    thing.used = !text_at(&item, {"AssociationId"}).empty() || !text_at(&item, {"InstanceId"}).empty();
    thing.said = *thing.used ? "associated" : "not associated";
    thing.region = text_at(&item, {"NetworkBorderGroup"});
    return thing;
}

// ------------------------------------------------------------------ Google Cloud

Result<CloudThing> gcp_thing(const Node& item, const std::string& file) {
    CloudThing thing = thing_at(item, file);
    const std::string_view kind = text_at(&item, {"kind"});
    thing.cloud = "gcp";
    thing.id = text_at(&item, {"selfLink"});
    thing.name = text_at(&item, {"name"});
    if (thing.name.empty()) return wrong(item, file, fmt::format("a {} without a name", printable(kind, 60)));
    thing.said = text_at(&item, {"status"});
    thing.zone = last_of(text_at(&item, {"zone"}));
    thing.region = last_of(text_at(&item, {"region"}));
    thing.account = segment_after(thing.id, "projects");
    thing.made_us = time_of(text_at(&item, {"creationTimestamp"}));
    if (kind == "compute#instance") {
        thing.kind = ThingKind::machine;
        thing.type = last_of(text_at(&item, {"machineType"}));
        thing.state = thing.said == "RUNNING" || thing.said == "PROVISIONING" || thing.said == "STAGING"
                          ? MachineState::running
                      : thing.said == "TERMINATED" || thing.said == "STOPPED" || thing.said == "SUSPENDED" ||
                              thing.said == "STOPPING" || thing.said == "SUSPENDING"
                          ? MachineState::parked
                          : MachineState::unknown;
        thing.spot = text_at(&item, {"scheduling", "provisioningModel"}) == "SPOT" ||
                     node_text(node_at(&item, {"scheduling", "preemptible"})) == "true";
    } else if (kind == "compute#disk") {
        thing.kind = ThingKind::disk;
        thing.type = last_of(text_at(&item, {"type"}));
        thing.gib = static_cast<double>(whole(item.find("sizeGb")));
        thing.used = is_there(item.find("users"));
        thing.said = *thing.used ? "in use" : "not attached";
    } else if (kind == "compute#address") {
        thing.kind = ThingKind::address;
        thing.used = thing.said != "RESERVED";
        if (text_at(&item, {"addressType"}) == "INTERNAL") thing.kind = ThingKind::other;
    } else {
        return wrong(item, file, fmt::format("a list of {}, which is not read", printable(kind, 60)));
    }
    return thing;
}

// ------------------------------------------------------------------ what they share

// {"a": "b"} of Azure and Google, [{"Key": "a", "Value": "b"}] of AWS.
void read_tags(const Node& item, CloudThing& thing) {
    for (const char* key : {"tags", "labels", "Tags"}) {
        const Node* tags = item.find(key);
        if (tags == nullptr) tags = of_azure(item, {key});
        if (tags == nullptr) continue;
        for (const Member& member : tags->members)
            if (member.value->is_scalar()) thing.tags[member.key] = member.value->text;
        for (const auto& each : tags->items)
            if (const std::string_view name = text_at(each.get(), {"Key"}); !name.empty())
                thing.tags[std::string(name)] = text_at(each.get(), {"Value"});
    }
    if (thing.cloud != "aws") return;
    if (thing.name.empty())
        if (const auto name = thing.tags.find("Name"); name != thing.tags.end()) thing.name = name->second;
    if (thing.name.empty()) thing.name = thing.id;
}

using ReadThing = Result<CloudThing> (*)(const Node&, const std::string&);

Status add(const Node& item, const std::string& file, ReadThing read, CloudList& out) {
    if (!item.is_mapping()) return wrong(item, file, "an element of the list that is no object");
    if (out.things.size() >= kMostThings)
        return wrong(item, file, fmt::format("more than {} things in one list", kMostThings));
    TRY(CloudThing thing, read(item, file));
    if (thing.cloud.empty()) thing.cloud = "aws";
    read_tags(item, thing);
    if (thing.region.empty()) thing.region = region_of_zone(thing.zone);
    if (thing.cloud == "gcp" && thing.region.ends_with('-')) thing.region.pop_back();
    out.things.push_back(std::move(thing));
    return done();
}

Status add_all(const Node& list, const std::string& file, ReadThing read, CloudList& out) {
    if (!list.is_sequence()) return wrong(list, file, "what should be a list is none");
    for (const auto& item : list.items) TRY_VOID(add(*item, file, read, out));
    return done();
}

bool is_of_google(const Node& item) {
    return text_at(&item, {"kind"}).starts_with("compute#");
}
bool is_of_azure(const Node& item) {
    return item.find("id") != nullptr && text_at(&item, {"type"}).find('/') != std::string_view::npos;
}

Status read_list(const Node& list, const std::string& file, CloudList& out) {
    for (const auto& item : list.items) {
        if (item->is_mapping() && is_of_google(*item)) {
            TRY_VOID(add(*item, file, gcp_thing, out));
        } else if (item->is_mapping() && is_of_azure(*item)) {
            TRY_VOID(add(*item, file, azure_thing, out));
        } else {
            return wrong(*item, file, "an element of no list of a cloud that is read here");
        }
    }
    return done();
}

}  // namespace

Result<CloudList> read_cloud_list(std::string_view text, const std::string& file) {
    if (trim(text).empty())
        return Error(ErrorKind::invalid, "an empty file", {file, 1, 1}, fmt::format("one of {}", kLists));
    if (const char first = trim(text).front(); first != '[' && first != '{')
        return Error(ErrorKind::invalid, "no JSON", {file, 1, 1},
                     "az and aws: add -o json or --output json; gcloud: --format json");
    TRY(const Document document, tool_json(text, file));
    const Node& root = document.root();
    CloudList out;
    if (root.is_sequence()) {
        TRY_VOID(read_list(root, file, out));
        return out;
    }
    for (const char* key : {"NextToken", "nextLink", "nextPageToken"})
        out.goes_on = out.goes_on || !text_at(&root, {key}).empty();
    if (const Node* value = root.find("value"); value != nullptr && value->is_sequence()) {
        TRY_VOID(read_list(*value, file, out));
    } else if (const Node* reservations = root.find("Reservations"); reservations != nullptr) {
        if (!reservations->is_sequence()) return wrong(*reservations, file, "Reservations is no list");
        for (const auto& each : reservations->items) {
            const Node* instances = each->is_mapping() ? each->find("Instances") : nullptr;
            if (instances == nullptr) return wrong(*each, file, "a reservation without Instances");
            TRY_VOID(add_all(*instances, file, aws_machine, out));
        }
    } else if (const Node* volumes = root.find("Volumes"); volumes != nullptr) {
        TRY_VOID(add_all(*volumes, file, aws_disk, out));
    } else if (const Node* addresses = root.find("Addresses"); addresses != nullptr) {
        TRY_VOID(add_all(*addresses, file, aws_address, out));
    } else if (is_of_google(root)) {
        TRY_VOID(add(root, file, gcp_thing, out));
    } else if (is_of_azure(root)) {
        TRY_VOID(add(root, file, azure_thing, out));
    } else {
        return wrong(root, file, "no list of a cloud that is read here");
    }
    return out;
}

}  // namespace stoker

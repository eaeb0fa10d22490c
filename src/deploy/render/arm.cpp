// arm: an ARM template with the same resources as the az script. Versions of the API are those of
// azure-resource-manager-schemas that the tests validate against.
#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "deploy/render/azure_shape.h"
#include "deploy/render/first_boot.h"
#include "deploy/render/kube_cluster.h"
#include "deploy/render/kube_front.h"
#include "deploy/render/pools.h"
#include "deploy/render/private_endpoints.h"
#include "deploy/render/scale_set_scaling.h"
#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

constexpr const char* kCompute = "2024-11-01";
constexpr const char* kNetworkApi = "2025-05-01";
constexpr const char* kAks = "2025-10-01";

Json text_parameter(const char* description, const Json& value = Json()) {
    Json out = Json::object().set("type", "string");
    if (!value.is_null()) out.set("defaultValue", value);
    return out.set("metadata", Json::object().set("description", description));
}

Json resource(const char* type, const char* version, const std::string& name) {
    return Json::object()
        .set("type", type)
        .set("apiVersion", version)
        .set("name", name)
        .set("location", "[parameters('location')]")
        .set("tags", "[parameters('tags')]");
}

Json nsg(const AzureShape& s) {
    Json rule = Json::object()
                    .set("name", "ssh")
                    .set("properties", Json::object()
                                           .set("priority", 100)
                                           .set("direction", "Inbound")
                                           .set("access", "Allow")
                                           .set("protocol", "Tcp")
                                           .set("sourceAddressPrefix", "[parameters('from')]")
                                           .set("sourcePortRange", "*")
                                           .set("destinationAddressPrefix", "*")
                                           .set("destinationPortRange", "22"));
    return resource("Microsoft.Network/networkSecurityGroups", kNetworkApi, s.name + "-nsg")
        .set("properties", Json::object().set("securityRules", arm_list(std::move(rule))));
}

std::string nsg_id(const AzureShape& s) {
    return fmt::format("[resourceId('Microsoft.Network/networkSecurityGroups', '{}-nsg')]", s.name);
}
std::string subnet_id(const AzureShape& s) {
    return fmt::format("[resourceId('Microsoft.Network/virtualNetworks/subnets', '{}-net', 'work')]", s.name);
}
std::string net_id(const AzureShape& s) {
    return fmt::format("[resourceId('Microsoft.Network/virtualNetworks', '{}-net')]", s.name);
}

std::string routes_id(const AzureShape& s) {
    return fmt::format("[resourceId('Microsoft.Network/routeTables', '{}-routes')]", s.name);
}

// A scale set's machines have no public addresses, and none reaches anything by itself (default outbound access ended
// 2026-03-31).
bool wants_nat(const AzureShape& s) {
    return s.kind == AzureKind::scale_set && !s.guarded;
}
std::string nat_id(const AzureShape& s) {
    return fmt::format("[resourceId('Microsoft.Network/natGateways', '{}-nat')]", s.name);
}

void add_nat(const AzureShape& s, Json& resources) {
    const std::string address = fmt::format("[resourceId('Microsoft.Network/publicIPAddresses', '{}-nat-ip')]", s.name);
    resources.push(resource("Microsoft.Network/publicIPAddresses", kNetworkApi, s.name + "-nat-ip")
                       .set("sku", Json::object().set("name", "Standard"))
                       .set("properties", Json::object().set("publicIPAllocationMethod", "Static")));
    resources.push(resource("Microsoft.Network/natGateways", kNetworkApi, s.name + "-nat")
                       .set("sku", Json::object().set("name", "Standard"))
                       .set("dependsOn", arm_list(Json(address)))
                       .set("properties", Json::object().set("publicIpAddresses", arm_list(arm_id(address)))));
}

Json network(const AzureShape& s) {
    Json prefixes = Json::array();
    prefixes.push(std::string(kNetwork));
    Json inside =
        Json::object().set("addressPrefix", std::string(kSubnet)).set("networkSecurityGroup", arm_id(nsg_id(s)));
    Json depends = arm_list(Json(nsg_id(s)));
    if (s.guarded) {
        inside.set("routeTable", arm_id(routes_id(s)));
        depends.push(routes_id(s));
    }
    if (wants_nat(s)) {
        inside.set("natGateway", arm_id(nat_id(s)));
        depends.push(nat_id(s));
    }
    Json subnets = arm_list(Json::object().set("name", "work").set("properties", std::move(inside)));
    if (s.guarded) {
        const auto add = [&](const char* name, std::string_view prefix) {
            subnets.push(Json::object()
                             .set("name", name)
                             .set("properties", Json::object().set("addressPrefix", std::string(prefix))));
        };
        add("AzureFirewallSubnet", kFirewallSubnet);
        add("AzureFirewallManagementSubnet", kFirewallManagement);
    }
    return resource("Microsoft.Network/virtualNetworks", kNetworkApi, s.name + "-net")
        .set("dependsOn", std::move(depends))
        .set("properties", Json::object()
                               .set("addressSpace", Json::object().set("addressPrefixes", std::move(prefixes)))
                               .set("subnets", std::move(subnets)));
}

Json routes(const AzureShape& s) {
    Json route = Json::object()
                     .set("name", "out")
                     .set("properties", Json::object()
                                            .set("addressPrefix", "0.0.0.0/0")
                                            .set("nextHopType", "VirtualAppliance")
                                            .set("nextHopIpAddress", std::string(kFirewallAddress)));
    return resource("Microsoft.Network/routeTables", kNetworkApi, s.name + "-routes")
        .set("properties", Json::object().set("routes", arm_list(std::move(route))));
}

// Basic: rules by name, 250 Mbit/s, at a third of Standard's price; it wants a subnet and an address to be managed by.
void add_firewall(const AzureShape& s, Json& resources) {
    const auto address_id = [&](const char* end) {
        return fmt::format("[resourceId('Microsoft.Network/publicIPAddresses', '{}-{}')]", s.name, end);
    };
    const auto subnet = [&](const char* name) {
        return fmt::format("[resourceId('Microsoft.Network/virtualNetworks/subnets', '{}-net', '{}')]", s.name, name);
    };
    Json depends = arm_list(Json(net_id(s)));
    for (const char* end : {"fw-ip", "fw-mgmt-ip"}) {
        resources.push(resource("Microsoft.Network/publicIPAddresses", kNetworkApi, s.name + "-" + end)
                           .set("sku", Json::object().set("name", "Standard"))
                           .set("properties", Json::object().set("publicIPAllocationMethod", "Static")));
        depends.push(address_id(end));
    }
    Json names = Json::array();
    for (const std::string& name : s.reached) names.push(name);
    Json protocols = arm_list(Json::object().set("protocolType", "Http").set("port", 80));
    protocols.push(Json::object().set("protocolType", "Https").set("port", 443));
    Json rule = Json::object()
                    .set("name", "names")
                    .set("sourceAddresses", arm_list(Json(std::string(kSubnet))))
                    .set("protocols", std::move(protocols))
                    .set("targetFqdns", std::move(names));
    Json collection = Json::object()
                          .set("name", "packages")
                          .set("properties", Json::object()
                                                 .set("priority", 100)
                                                 .set("action", Json::object().set("type", "Allow"))
                                                 .set("rules", arm_list(std::move(rule))));
    const auto configuration = [&](const char* name, const char* of, const char* address) {
        return Json::object()
            .set("name", name)
            .set("properties",
                 Json::object().set("subnet", arm_id(subnet(of))).set("publicIPAddress", arm_id(address_id(address))));
    };
    resources.push(resource("Microsoft.Network/azureFirewalls", kNetworkApi, s.name + "-fw")
                       .set("dependsOn", std::move(depends))
                       .set("properties",
                            Json::object()
                                .set("sku", Json::object().set("name", "AZFW_VNet").set("tier", "Basic"))
                                .set("ipConfigurations", arm_list(configuration("out", "AzureFirewallSubnet", "fw-ip")))
                                .set("managementIpConfiguration",
                                     configuration("management", "AzureFirewallManagementSubnet", "fw-mgmt-ip"))
                                .set("applicationRuleCollections", arm_list(std::move(collection)))));
}

Json budget(const AzureShape& s) {
    Json notices = Json::object();
    const auto add = [&](const char* name, int threshold, const char* type) {
        notices.set(name, Json::object()
                              .set("enabled", true)
                              .set("operator", "GreaterThan")
                              .set("threshold", threshold)
                              .set("thresholdType", type)
                              .set("contactEmails", Json::array())
                              .set("contactRoles", arm_list(Json("Owner"))));
    };
    add("half", 50, "Actual"), add("most", 80, "Actual"), add("all", 100, "Actual"), add("foreseen", 100, "Forecasted");
    return Json::object()
        .set("type", "Microsoft.Consumption/budgets")
        .set("apiVersion", "2024-08-01")
        .set("name", s.name + "-budget")
        .set("properties", Json::object()
                               .set("category", "Cost")
                               .set("amount", s.budget_usd)
                               .set("timeGrain", "Monthly")
                               .set("timePeriod", Json::object().set("startDate", "[parameters('budgetStart')]"))
                               .set("notifications", std::move(notices)));
}

Json os_profile(const AzureShape& s, bool set) {
    Json key =
        Json::object().set("path", "/home/azureuser/.ssh/authorized_keys").set("keyData", "[parameters('sshKey')]");
    Json linux = Json::object()
                     .set("disablePasswordAuthentication", true)
                     .set("ssh", Json::object().set("publicKeys", arm_list(std::move(key))));
    return Json::object()
        .set(set ? "computerNamePrefix" : "computerName", s.name.substr(0, set ? 9 : 40))
        .set("adminUsername", "azureuser")
        .set("linuxConfiguration", std::move(linux))
        .set("customData", "[base64(variables('cloudInit'))]");
}

Json storage_profile(const AzureShape& s) {
    Json out = Json::object()
                   .set("imageReference", Json::object()
                                              .set("publisher", s.publisher)
                                              .set("offer", s.offer)
                                              .set("sku", s.sku)
                                              .set("version", s.version))
                   .set("osDisk", Json::object()
                                      .set("createOption", "FromImage")
                                      .set("managedDisk", Json::object().set("storageAccountType", "Premium_LRS")));
    if (s.disk_gib > 0)
        out.set("dataDisks", arm_list(Json::object()
                                          .set("lun", 0)
                                          .set("createOption", "Empty")
                                          .set("diskSizeGB", s.disk_gib)
                                          .set("managedDisk", Json::object().set("storageAccountType", s.disk_type))));
    return out;
}

void set_spot(const AzureShape& s, Json& properties) {
    if (s.spot)
        properties.set("priority", "Spot")
            .set("evictionPolicy", "Delete")
            .set("billingProfile", Json::object().set("maxPrice", -1));
}

Json extension_properties() {
    return Json::object()
        .set("publisher", "Microsoft.HpcCompute")
        .set("type", "NvidiaGpuDriverLinux")
        .set("typeHandlerVersion", "1.6")
        .set("autoUpgradeMinorVersion", true);
}

Json identity() {
    return Json::object().set("type", "SystemAssigned");
}

void add_machine(const AzureShape& s, Json& resources) {
    const std::string nic = fmt::format("[resourceId('Microsoft.Network/networkInterfaces', '{}-nic')]", s.name);
    const std::string address = fmt::format("[resourceId('Microsoft.Network/publicIPAddresses', '{}-ip')]", s.name);
    const std::string machine = fmt::format("[resourceId('Microsoft.Compute/virtualMachines', '{}')]", s.name);
    Json depends = arm_list(Json(net_id(s)));
    Json ip = Json::object().set("subnet", arm_id(subnet_id(s)));
    if (!s.guarded) {
        resources.push(resource("Microsoft.Network/publicIPAddresses", kNetworkApi, s.name + "-ip")
                           .set("sku", Json::object().set("name", "Standard"))
                           .set("properties", Json::object().set("publicIPAllocationMethod", "Static")));
        depends.push(address);
        ip.set("publicIPAddress", arm_id(address));
    }
    resources.push(
        resource("Microsoft.Network/networkInterfaces", kNetworkApi, s.name + "-nic")
            .set("dependsOn", std::move(depends))
            .set("properties", Json::object()
                                   .set("enableAcceleratedNetworking", true)
                                   .set("ipConfigurations",
                                        arm_list(Json::object().set("name", "ip").set("properties", std::move(ip))))));
    Json properties = Json::object()
                          .set("hardwareProfile", Json::object().set("vmSize", s.size))
                          .set("osProfile", os_profile(s, false))
                          .set("storageProfile", storage_profile(s))
                          .set("networkProfile", Json::object().set("networkInterfaces", arm_list(arm_id(nic))));
    set_spot(s, properties);
    Json vm = resource("Microsoft.Compute/virtualMachines", kCompute, s.name);
    if (!s.off_at_night && s.gpu) vm.set("comments", std::string(kNotOffAtNight));
    resources.push(
        vm.set("identity", identity()).set("dependsOn", arm_list(Json(nic))).set("properties", std::move(properties)));
    if (s.driver_extension)
        resources.push(
            resource("Microsoft.Compute/virtualMachines/extensions", kCompute, s.name + "/NvidiaGpuDriverLinux")
                .set("dependsOn", arm_list(Json(machine)))
                .set("properties", extension_properties()));
    if (!s.off_at_night) return;
    resources.push(
        resource("Microsoft.DevTestLab/schedules", "2018-09-15", "shutdown-computevm-" + s.name)
            .set("dependsOn", arm_list(Json(machine)))
            .set("properties", Json::object()
                                   .set("status", "Enabled")
                                   .set("taskType", "ComputeVmShutdownTask")
                                   .set("dailyRecurrence", Json::object().set("time", std::string(kShutdownTime)))
                                   .set("timeZoneId", "UTC")
                                   .set("targetResourceId", machine)));
}

std::string neighbours_id(const AzureShape& s) {
    return fmt::format("[resourceId('Microsoft.Compute/proximityPlacementGroups', '{}-ppg')]", s.name);
}

Json neighbours(const AzureShape& s) {
    return resource("Microsoft.Compute/proximityPlacementGroups", kCompute, s.name + "-ppg")
        .set("properties", Json::object()
                               .set("proximityPlacementGroupType", "Standard")
                               .set("intent", Json::object().set("vmSizes", arm_list(Json(s.size)))));
}

Json scale_set(const AzureShape& s) {
    Json ip = Json::object().set("name", "ip").set("properties", Json::object().set("subnet", arm_id(subnet_id(s))));
    Json nic = Json::object()
                   .set("name", "nic")
                   .set("properties", Json::object()
                                          .set("primary", true)
                                          .set("enableAcceleratedNetworking", true)
                                          .set("ipConfigurations", arm_list(std::move(ip))));
    Json network_profile = Json::object();
    if (!s.infiniband) network_profile.set("networkApiVersion", "2020-11-01");
    network_profile.set("networkInterfaceConfigurations", arm_list(std::move(nic)));
    Json profile = Json::object()
                       .set("osProfile", os_profile(s, true))
                       .set("storageProfile", storage_profile(s))
                       .set("networkProfile", std::move(network_profile));
    set_spot(s, profile);
    if (s.driver_extension)
        profile.set(
            "extensionProfile",
            Json::object().set(
                "extensions",
                arm_list(
                    Json::object().set("name", "NvidiaGpuDriverLinux").set("properties", extension_properties()))));
    Json properties = Json::object().set("orchestrationMode", s.infiniband ? "Uniform" : "Flexible");
    properties.set("singlePlacementGroup", s.infiniband);
    if (s.infiniband)
        properties.set("overprovision", false).set("upgradePolicy", Json::object().set("mode", "Manual"));
    else
        properties.set("platformFaultDomainCount", 1);
    if (s.kept > 0)
        properties.set(
            "priorityMixPolicy",
            Json::object().set("baseRegularPriorityCount", s.kept).set("regularPriorityPercentageAboveBase", 0));
    properties.set("virtualMachineProfile", std::move(profile));
    Json depends = arm_list(Json(net_id(s)));
    if (s.neighbours) {
        properties.set("proximityPlacementGroup", arm_id(neighbours_id(s)));
        depends.push(neighbours_id(s));
    }
    Json set = resource("Microsoft.Compute/virtualMachineScaleSets", kCompute, s.name);
    if (asks_for_a_larger_group(s)) set.set("comments", std::string(kMoreByRequest));
    Json who = identity();
    if (s.least > 0) {
        depends.push(set_identity_id(s));
        who = Json::object()
                  .set("type", "UserAssigned")
                  .set("userAssignedIdentities", Json::object().set(set_identity_id(s), Json::object()));
    }
    return set.set("sku", Json::object().set("name", s.size).set("capacity", s.count))
        .set("identity", std::move(who))
        .set("dependsOn", std::move(depends))
        .set("properties", std::move(properties));
}

void add_cluster(const AzureShape& s, const Deployment& d, Json& resources) {
    // A private API server has no addresses to choose from.
    Json access = s.guarded ? Json::object().set("enablePrivateCluster", true)
                            : Json::object().set("authorizedIPRanges", arm_list(Json("[parameters('from')]")));
    // Without a data plane that knows network policies, those that are applied do nothing.
    Json network = Json::object()
                       .set("networkPlugin", "azure")
                       .set("networkPluginMode", "overlay")
                       .set("networkDataplane", "cilium");
    Json system = Json::object()
                      .set("name", "system")
                      .set("mode", "System")
                      .set("vmSize", std::string(kSystemSize))
                      .set("count", 1)
                      .set("osType", "Linux");
    resources.push(resource("Microsoft.ContainerService/managedClusters", kAks, s.name)
                       .set("identity", identity())
                       .set("properties", Json::object()
                                              .set("dnsPrefix", s.name)
                                              .set("apiServerAccessProfile", std::move(access))
                                              .set("networkProfile", std::move(network))
                                              .set("agentPoolProfiles", arm_list(std::move(system)))));
    const std::string cluster = fmt::format("[resourceId('Microsoft.ContainerService/managedClusters', '{}')]", s.name);
    const auto add_pool = [&](std::string_view name, bool stays, Json depends, Json properties) {
        Json pool = Json::object()
                        .set("type", "Microsoft.ContainerService/managedClusters/agentPools")
                        .set("apiVersion", kAks)
                        .set("name", fmt::format("{}/{}", s.name, name));
        if (stays) pool.set("comments", std::string(kPoolStays));
        resources.push(pool.set("dependsOn", std::move(depends)).set("properties", std::move(properties)));
    };
    const auto fixed_pool = [](const std::string& size, int count) {
        return Json::object().set("mode", "User").set("vmSize", size).set("osType", "Linux").set("count", count);
    };
    const auto pool_of = [&](const std::string& size, int count, int least, int most) {
        Json pool = fixed_pool(size, count);
        pool.set("enableAutoScaling", true).set("minCount", least).set("maxCount", most);
        return pool;
    };
    for (const AzureShape& part : azure_pools(d)) {
        const int count = d.kind == WorkloadKind::inference ? part.count : 0;
        Json pool = part.stays ? fixed_pool(s.size, count) : pool_of(s.size, count, 0, part.count);
        Json depends = arm_list(Json(cluster));
        if (s.neighbours) {
            pool.set("proximityPlacementGroupID", neighbours_id(s));
            depends.push(neighbours_id(s));
        }
        if (s.gpu) pool.set("nodeTaints", arm_list(Json("sku=gpu:NoSchedule")));
        if (part.spot)
            pool.set("scaleSetPriority", "Spot").set("scaleSetEvictionPolicy", "Delete").set("spotMaxPrice", -1);
        add_pool(part.pool, part.stays, std::move(depends), std::move(pool));
    }
    if (d.front && !d.front->machine.empty())
        add_pool(kFrontPool, false, arm_list(Json(cluster)),
                 pool_of(d.front->machine, d.front->machines, d.front->least, d.front->most_machines));
}

}  // namespace

Json arm_list(Json item) {
    Json out = Json::array();
    out.push(std::move(item));
    return out;
}

Json arm_id(std::string text) {
    return Json::object().set("id", std::move(text));
}

Json azure_parameters(const Deployment& d) {
    const AzureShape s = azure_shape(d);
    Json out = Json::object().set("location", text_parameter("Region of all resources", s.location));
    out.set("tags", Json::object()
                        .set("type", "object")
                        .set("defaultValue", Json::object().set("managed-by", "stoker").set("workload", s.name))
                        .set("metadata", Json::object().set("description", std::string(kTagsMean))));
    if (s.kind != AzureKind::cluster || !s.guarded)
        out.set("from", text_parameter("CIDR of the addresses that may reach it"));
    if (s.kind != AzureKind::cluster) out.set("sshKey", text_parameter("Your public SSH key"));
    if (asks_for_registry(s)) out.set("registryId", text_parameter(std::string(kRegistryIdMeans).c_str()));
    if (s.budget_usd > 0)
        out.set("budgetStart", text_parameter("First day of the budget's first month", "[utcNow('yyyy-MM-01')]"));
    return out;
}

Json azure_resources(const Deployment& d) {
    const AzureShape s = azure_shape(d);
    Json resources = Json::array();
    if (s.budget_usd > 0) resources.push(budget(s));
    if (s.neighbours) resources.push(neighbours(s));
    if (s.kind == AzureKind::cluster) {
        add_cluster(s, d, resources);
        return resources;
    }
    resources.push(nsg(s));
    if (s.guarded) resources.push(routes(s));
    if (wants_nat(s)) add_nat(s, resources);
    resources.push(network(s));
    if (s.guarded) add_firewall(s, resources);
    add_private_endpoints(s, resources);
    if (s.kind == AzureKind::machine) add_machine(s, resources);
    if (s.kind != AzureKind::scale_set) return resources;
    if (s.least > 0) add_set_identity(s, resources);
    resources.push(scale_set(s));
    if (s.least > 0) add_set_scaling(s, resources);
    return resources;
}

std::vector<FileToWrite> arm_files(const Deployment& d) {
    Json about = Json::object().set("description", heading(d));
    const std::vector<ClusterStep> steps = cluster_steps(d, "GROUP");
    Json after = Json::array();
    for (const ClusterStep& step : steps)
        after.push(step.command.empty() ? replace_all(step.reason, "\n", " ")
                                        : replace_all(step.command, "\\\n    ", ""));
    if (azure_shape(d).kind == AzureKind::cluster && !steps.empty()) about.set("afterwards", std::move(after));
    Json out = Json::object()
                   .set("$schema", "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#")
                   .set("contentVersion", "1.0.0.0")
                   .set("metadata", std::move(about))
                   .set("parameters", azure_parameters(d));
    if (azure_shape(d).kind != AzureKind::cluster) {
        // A text that begins with [ would be an expression: this one begins with #.
        out.set("variables", Json::object().set("cloudInit", cloud_config(d)));
    }
    out.set("resources", azure_resources(d));
    std::vector<FileToWrite> files{{d.name + ".json", out.dump(2) + "\n"}};
    if (azure_shape(d).kind == AzureKind::cluster)
        for (FileToWrite& file : cluster_plugin_files(d)) files.push_back(std::move(file));
    return files;
}

}  // namespace stoker

#include "deploy/render/private_endpoints.h"

#include <fmt/format.h>

namespace stoker {
namespace {

// One zone for both names of a registry, X.azurecr.io and X.REGION.data.azurecr.io, where the layers come from: the
// zone group writes an address for each (learn.microsoft.com, Connect privately to a registry, recalled).
constexpr std::string_view kRegistryZone = "privatelink.azurecr.io", kVaultZone = "privatelink.vaultcore.azure.net";

constexpr const char* kNetworkApi = "2025-05-01";
constexpr const char* kDnsApi = "2024-06-01";

}  // namespace

bool asks_for_registry(const AzureShape& s) {
    return s.guarded && !s.registry.empty() && s.kind != AzureKind::cluster;
}

std::string az_private_endpoints(const AzureShape& s) {
    if (!s.guarded) return "";
    std::string out = fmt::format(
        "# Services of Azure that the work reaches get an address in this network, and their names are answered with "
        "it.\n"
        "# Who else may reach them from the internet is their owner's to end: az acr update, az keyvault update,\n"
        "# --public-network-enabled false.\n"
        "endpoint() {{  # NAME ID KIND ZONE\n"
        "    az network private-endpoint create -g \"$group\" -n \"{0}-$1\" --vnet-name {0}-net --subnet work \\\n"
        "        --private-connection-resource-id \"$2\" --group-id \"$3\" --connection-name \"$1\"\n"
        "    az network private-dns zone create -g \"$group\" -n \"$4\"\n"
        "    az network private-dns link vnet create -g \"$group\" -z \"$4\" -n {0} --virtual-network {0}-net "
        "--registration-enabled false\n"
        "    az network private-endpoint dns-zone-group create -g \"$group\" --endpoint-name \"{0}-$1\" -n names \\\n"
        "        --zone-name \"$1\" --private-dns-zone \"$4\"\n}}\n",
        s.name);
    if (!s.registry.empty())
        out += fmt::format(
            "# The registry of the image, which has to be of the tier Premium for it.\n"
            "endpoint registry \"$(az acr show -n {} --query id -o tsv)\" registry {}\n",
            s.registry, kRegistryZone);
    return out + fmt::format(
                     "# Keys and secrets of a Key Vault: VAULT=NAME.\n"
                     "if [ -n \"${{VAULT:-}}\" ]; then\n"
                     "    endpoint vault \"$(az keyvault show -n \"$VAULT\" --query id -o tsv)\" vault {}\nfi\n\n",
                     kVaultZone);
}

void add_private_endpoints(const AzureShape& s, Json& resources) {
    if (!asks_for_registry(s)) return;
    const std::string net = fmt::format("[resourceId('Microsoft.Network/virtualNetworks', '{}-net')]", s.name);
    const std::string subnet =
        fmt::format("[resourceId('Microsoft.Network/virtualNetworks/subnets', '{}-net', 'work')]", s.name);
    const std::string zone = fmt::format("[resourceId('Microsoft.Network/privateDnsZones', '{}')]", kRegistryZone);
    const std::string endpoint =
        fmt::format("[resourceId('Microsoft.Network/privateEndpoints', '{}-registry')]", s.name);
    Json connection = Json::object()
                          .set("name", "registry")
                          .set("properties", Json::object()
                                                 .set("privateLinkServiceId", "[parameters('registryId')]")
                                                 .set("groupIds", arm_list(Json("registry"))));
    resources.push(Json::object()
                       .set("type", "Microsoft.Network/privateEndpoints")
                       .set("apiVersion", kNetworkApi)
                       .set("name", s.name + "-registry")
                       .set("location", "[parameters('location')]")
                       .set("dependsOn", arm_list(Json(net)))
                       .set("properties", Json::object()
                                              .set("subnet", arm_id(subnet))
                                              .set("privateLinkServiceConnections", arm_list(std::move(connection)))));
    resources.push(Json::object()
                       .set("type", "Microsoft.Network/privateDnsZones")
                       .set("apiVersion", kDnsApi)
                       .set("name", std::string(kRegistryZone))
                       .set("location", "global")
                       .set("properties", Json::object()));
    resources.push(
        Json::object()
            .set("type", "Microsoft.Network/privateDnsZones/virtualNetworkLinks")
            .set("apiVersion", kDnsApi)
            .set("name", fmt::format("{}/{}", kRegistryZone, s.name))
            .set("location", "global")
            .set("dependsOn",
                 [&] {
                     Json both = arm_list(Json(zone));
                     both.push(net);
                     return both;
                 }())
            .set("properties", Json::object().set("registrationEnabled", false).set("virtualNetwork", arm_id(net))));
    resources.push(
        Json::object()
            .set("type", "Microsoft.Network/privateEndpoints/privateDnsZoneGroups")
            .set("apiVersion", kNetworkApi)
            .set("name", s.name + "-registry/names")
            .set("dependsOn",
                 [&] {
                     Json both = arm_list(Json(endpoint));
                     both.push(zone);
                     return both;
                 }())
            .set("properties",
                 Json::object().set("privateDnsZoneConfigs",
                                    arm_list(Json::object()
                                                 .set("name", "registry")
                                                 .set("properties", Json::object().set("privateDnsZoneId", zone))))));
}

std::string terraform_private_endpoints(const AzureShape& s) {
    if (!asks_for_registry(s)) return "";
    return fmt::format(
        "variable \"registry_id\" {{\n  description = \"{2}\"\n  type        = string\n}}\n\n"
        "# The registry gets an address in this network, and its names are answered with it.\n"
        "resource \"azurerm_private_dns_zone\" \"registry\" {{\n  name                = \"{1}\"\n"
        "  resource_group_name = azurerm_resource_group.work.name\n}}\n\n"
        "resource \"azurerm_private_dns_zone_virtual_network_link\" \"registry\" {{\n  name                  = "
        "\"{0}\"\n"
        "  resource_group_name   = azurerm_resource_group.work.name\n  private_dns_zone_name = "
        "azurerm_private_dns_zone.registry.name\n  virtual_network_id    = azurerm_virtual_network.work.id\n}}\n\n"
        "resource \"azurerm_private_endpoint\" \"registry\" {{\n  name                = \"{0}-registry\"\n"
        "  resource_group_name = azurerm_resource_group.work.name\n  location            = "
        "azurerm_resource_group.work.location\n  subnet_id           = azurerm_subnet.work.id\n\n"
        "  private_service_connection {{\n    name                           = \"registry\"\n"
        "    private_connection_resource_id = var.registry_id\n    subresource_names              = [\"registry\"]\n"
        "    is_manual_connection           = false\n  }}\n\n"
        "  private_dns_zone_group {{\n    name                 = \"names\"\n    private_dns_zone_ids = "
        "[azurerm_private_dns_zone.registry.id]\n  }}\n}}\n\n",
        s.name, kRegistryZone, kRegistryIdMeans);
}

}  // namespace stoker

#include "lint/shell/az_options.h"

namespace stoker::lint {

namespace {

constexpr AzCommand kAzCommands[] = {
    {"vm create", "az vm create", ResourceType::vm},
    {"vmss create", "az vmss create", ResourceType::scale_set},
    {"aks create", "az aks create", ResourceType::cluster},
    {"aks nodepool add", "az aks nodepool add", ResourceType::node_pool},
    {"aks update", "az aks update", ResourceType::other},
    {"aks nodepool update", "az aks nodepool update", ResourceType::other},
    {"vm update", "az vm update", ResourceType::other},
    {"vm resize", "az vm resize", ResourceType::other},
    {"vmss update", "az vmss update", ResourceType::other},
    {"ml compute create", "az ml compute create", ResourceType::aml_compute},
    {"ml compute update", "az ml compute update", ResourceType::other},
    {"ml online-deployment create", "az ml online-deployment create", ResourceType::aml_endpoint},
    {"batch pool create", "az batch pool create", ResourceType::batch_pool},
    {"network vnet create", "az network vnet create", ResourceType::vnet},
    {"network vnet subnet create", "az network vnet subnet create", ResourceType::subnet},
    {"network nsg rule create", "az network nsg rule create", ResourceType::security_rule},
    {"network nic create", "az network nic create", ResourceType::nic},
    {"network nic update", "az network nic update", ResourceType::other},
    {"vm extension set", "az vm extension set", ResourceType::extension},
    {"vmss extension set", "az vmss extension set", ResourceType::extension},
    {"ppg create", "az ppg create", ResourceType::placement_group},
    {"vm availability-set create", "az vm availability-set create", ResourceType::availability_set},
    {"vm auto-shutdown", "az vm auto-shutdown", ResourceType::shutdown_schedule},
    {"monitor autoscale create", "az monitor autoscale create", ResourceType::autoscale_setting},
    {"monitor autoscale rule create", "az monitor autoscale rule create", ResourceType::autoscale_setting},
    {"consumption budget create", "az consumption budget create", ResourceType::budget},
    {"ml workspace create", "az ml workspace create", ResourceType::workspace},
    {"acr create", "az acr create", ResourceType::registry},
    {"storage account create", "az storage account create", ResourceType::storage},
    {"feature register", "az feature register", ResourceType::feature},
};

constexpr AzOption kAzOptions[] = {
    {"feature", "name", Attr::feature_name},
    {"feature", "n", Attr::feature_name},
    {"vm extension", "name", Attr::extension_type},
    {"vm extension", "n", Attr::extension_type},
    {"vmss extension", "name", Attr::extension_type},
    {"vmss extension", "n", Attr::extension_type},
    {"vm extension", "publisher", Attr::extension_publisher},
    {"vmss extension", "publisher", Attr::extension_publisher},
    {"vm extension", "version", Attr::extension_version},
    {"vmss extension", "version", Attr::extension_version},
    {"vm extension", "vm-name", Attr::target},
    {"vmss extension", "vmss-name", Attr::target},
    {"vm auto-shutdown", "name", Attr::target},
    {"vm auto-shutdown", "n", Attr::target},
    {"monitor autoscale", "resource", Attr::target},
    {"monitor autoscale rule", "condition", Attr::metric},
    {"aks create", "nodepool-name", Attr::name},
    {"", "name", Attr::name},
    {"", "n", Attr::name},
    {"vm", "size", Attr::size},
    {"ml", "size", Attr::size},
    {"ml", "instance-type", Attr::size},
    {"vmss", "vm-sku", Attr::size},
    {"aks", "node-vm-size", Attr::size},
    {"aks", "s", Attr::size},
    {"batch", "vm-size", Attr::size},
    {"vm ", "count", Attr::count},
    {"vmss", "instance-count", Attr::count},
    {"aks", "node-count", Attr::count},
    {"aks", "c", Attr::count},
    {"ml", "instance-count", Attr::count},
    {"aks", "min-count", Attr::min_count},
    {"aks", "max-count", Attr::max_count},
    {"ml", "min-instances", Attr::min_count},
    {"ml", "max-instances", Attr::max_count},
    {"aks", "enable-cluster-autoscaler", Attr::autoscaling, "true"},
    {"aks", "e", Attr::autoscaling, "true"},
    {"aks", "disable-cluster-autoscaler", Attr::autoscaling, "false"},
    {"aks", "node-taints", Attr::taint, {}, true},
    {"aks", "nodepool-taints", Attr::taint, {}, true},
    {"aks", "labels", Attr::node_label, {}, true},
    {"aks", "nodepool-labels", Attr::node_label, {}, true},
    {"", "zones", Attr::zone, {}, true},
    {"", "zone", Attr::zone, {}, true},
    {"", "z", Attr::zone, {}, true},
    {"", "ppg", Attr::ppg},
    {"vm", "availability-set", Attr::availability_set},
    {"vm", "vmss", Attr::scale_set},
    {"vmss", "orchestration-mode", Attr::orchestration},
    {"vmss", "single-placement-group", Attr::single_placement_group},
    {"vm", "accelerated-networking", Attr::accelerated_networking},
    {"network nic", "accelerated-networking", Attr::accelerated_networking},
    {"vm", "security-type", Attr::security_type},
    {"vm", "enable-secure-boot", Attr::secure_boot},
    {"aks", "enable-secure-boot", Attr::secure_boot, "true"},
    {"", "priority", Attr::priority},
    {"ml", "tier", Attr::priority},
    {"", "eviction-policy", Attr::eviction_policy},
    {"vm", "public-ip-address", Attr::public_ip},
    {"vmss", "public-ip-per-vm", Attr::node_public_ip, "true"},
    {"aks", "enable-node-public-ip", Attr::node_public_ip, "true"},
    {"vm", "nsg", Attr::nsg},
    {"vm", "nsg-rule", Attr::nsg},
    {"network nic", "network-security-group", Attr::nsg},
    {"vm", "admin-password", Attr::admin_password},
    {"", "tags", Attr::tag, {}, true},
    {"aks", "aks-custom-headers", Attr::tag, {}, true},
    {"aks", "skip-gpu-driver-install", Attr::tag, "SkipGPUDriverInstall=true"},
    {"aks", "gpu-driver", Attr::gpu_driver},
    {"aks", "gpu-instance-profile", Attr::gpu_instance},
    {"aks", "os-sku", Attr::os_sku},
    {"aks", "os-type", Attr::os_type},
    {"aks nodepool", "mode", Attr::pool_mode},
    {"aks", "kubernetes-version", Attr::kubernetes_version},
    {"aks", "k", Attr::kubernetes_version},
    {"aks", "crg-id", Attr::capacity_reservation},
    {"", "capacity-reservation-group", Attr::capacity_reservation},
    {"", "subnet", Attr::subnet},
    {"aks", "vnet-subnet-id", Attr::subnet},
    {"", "vnet-name", Attr::vnet},
    {"network vnet", "address-prefixes", Attr::address_prefix, {}, true},
    {"network vnet", "address-prefix", Attr::address_prefix, {}, true},
    {"network vnet create", "subnet-prefixes", Attr::address_prefix, {}, true},
    {"vm", "vnet-address-prefix", Attr::address_prefix},
    {"vm", "subnet-address-prefix", Attr::address_prefix},
    {"vmss", "disable-overprovision", Attr::overprovision, "false"},
    {"network nsg", "destination-port-ranges", Attr::port, {}, true},
    {"network nsg", "destination-port-range", Attr::port, {}, true},
    {"network nsg", "source-address-prefixes", Attr::source_prefix, {}, true},
    {"network nsg", "source-address-prefix", Attr::source_prefix, {}, true},
    {"network nsg", "access", Attr::access},
    {"network nsg", "direction", Attr::direction},
    {"network nsg", "protocol", Attr::protocol},
    {"ml", "idle-time-before-scale-down", Attr::idle_seconds},
    {"ml", "idle-time-before-shutdown-minutes", Attr::idle_shutdown},
    {"ml", "idle-time-before-shutdown", Attr::idle_shutdown},
    {"batch", "target-dedicated-nodes", Attr::dedicated_nodes},
    {"batch", "target-low-priority-nodes", Attr::low_priority_nodes},
    {"batch", "auto-scale-formula", Attr::autoscale_formula},
    {"", "custom-data", Attr::custom_data},
    {"", "public-network-access", Attr::public_network_access},
    {"acr", "public-network-enabled", Attr::public_network_access},
};

}  // namespace

std::span<const AzCommand> az_commands() {
    return kAzCommands;
}
std::span<const AzOption> az_options() {
    return kAzOptions;
}

bool az_in_scope(std::string_view path, std::string_view scope) {
    if (scope.empty()) return true;
    if (scope.ends_with(' ')) return path.starts_with(scope);
    // "vm" is for vm and vmss alike, but not for "vm extension".
    if (scope == "vm")
        return path == "vm create" || path == "vmss create" || path == "vm update" || path == "vm resize" ||
               path == "vmss update";
    return path.starts_with(scope) && (path.size() == scope.size() || path[scope.size()] == ' ');
}
const AzOption* az_option(std::string_view path, std::string_view name) {
    for (const AzOption& each : kAzOptions)
        if (each.option == name && az_in_scope(path, each.scope)) return &each;
    return nullptr;
}

}  // namespace stoker::lint

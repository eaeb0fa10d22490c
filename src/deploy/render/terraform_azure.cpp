// terraform: the resources of the az script for azurerm 4.
#include <fmt/format.h>

#include "deploy/render/azure_shape.h"
#include "deploy/render/kube_front.h"
#include "deploy/render/pools.h"
#include "deploy/render/private_endpoints.h"
#include "deploy/render/scale_set_scaling.h"
#include "deploy/render/terraform.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

std::string terraform_network(const AzureShape& s) {
    return fmt::format(
        "resource \"azurerm_virtual_network\" \"work\" {{\n  name                = \"{0}-net\"\n"
        "  resource_group_name = azurerm_resource_group.work.name\n  location            = "
        "azurerm_resource_group.work.location\n"
        "  # Not 172.16.0.0/16: InfiniBand sizes keep it for themselves.\n  address_space = [\"{1}\"]\n}}\n\n"
        "resource \"azurerm_subnet\" \"work\" {{\n  name                 = \"work\"\n"
        "  resource_group_name  = azurerm_resource_group.work.name\n  virtual_network_name = "
        "azurerm_virtual_network.work.name\n"
        "  address_prefixes     = [\"{2}\"]\n}}\n\n"
        "resource \"azurerm_network_security_group\" \"work\" {{\n  name                = \"{0}-nsg\"\n"
        "  resource_group_name = azurerm_resource_group.work.name\n  location            = "
        "azurerm_resource_group.work.location\n\n"
        "  # SSH from your addresses only; everything else from outside is refused by default.\n  security_rule {{\n"
        "    name                       = \"ssh\"\n    priority                   = 100\n    direction                 "
        " = \"Inbound\"\n"
        "    access                     = \"Allow\"\n    protocol                   = \"Tcp\"\n"
        "    source_address_prefix      = var.from\n    source_port_range          = \"*\"\n"
        "    destination_address_prefix = \"*\"\n    destination_port_range     = \"22\"\n  }}\n}}\n\n"
        "resource \"azurerm_subnet_network_security_group_association\" \"work\" {{\n"
        "  subnet_id                 = azurerm_subnet.work.id\n"
        "  network_security_group_id = azurerm_network_security_group.work.id\n}}\n\n",
        s.name, kNetwork, kSubnet);
}

std::string terraform_budget(const AzureShape& s) {
    if (s.budget_usd <= 0) return "";
    std::string out = fmt::format(
        "# Owners are written to; it stops nothing.\nresource \"azurerm_consumption_budget_resource_group\" \"work\" "
        "{{\n"
        "  name              = \"{}-budget\"\n  resource_group_id = azurerm_resource_group.work.id\n"
        "  amount            = {}\n  time_grain        = \"Monthly\"\n\n  time_period {{\n"
        "    start_date = formatdate(\"YYYY-MM-'01T00:00:00Z'\", timestamp())\n  }}\n",
        s.name, s.budget_usd);
    for (const auto& [threshold, type] :
         {std::pair(50, "Actual"), {80, "Actual"}, {100, "Actual"}, {100, "Forecasted"}})
        out += fmt::format(
            "\n  notification {{\n    threshold      = {}\n    threshold_type = \"{}\"\n    operator       = "
            "\"GreaterThan\"\n    contact_roles  = [\"Owner\"]\n  }}\n",
            threshold, type);
    return out +
           "\n  # The month of the first apply stays.\n  lifecycle {\n    ignore_changes = [time_period]\n  }\n}\n\n";
}

std::string terraform_firewall(const AzureShape& s) {
    std::string names;
    for (const std::string& name : s.reached) names += fmt::format("      \"{}\",\n", name);
    std::string out;
    const auto subnet = [&](const char* label, const char* name, std::string_view prefix) {
        out += fmt::format(
            "resource \"azurerm_subnet\" \"{}\" {{\n  name                 = \"{}\"\n"
            "  resource_group_name  = azurerm_resource_group.work.name\n  virtual_network_name = "
            "azurerm_virtual_network.work.name\n  address_prefixes     = [\"{}\"]\n}}\n\n",
            label, name, prefix);
    };
    const auto address = [&](const char* label, const char* end) {
        out += fmt::format(
            "resource \"azurerm_public_ip\" \"{}\" {{\n  name                = \"{}-{}\"\n"
            "  resource_group_name = azurerm_resource_group.work.name\n  location            = "
            "azurerm_resource_group.work.location\n  allocation_method   = \"Static\"\n  sku                 = "
            "\"Standard\"\n}}\n\n",
            label, s.name, end);
    };
    subnet("firewall", "AzureFirewallSubnet", kFirewallSubnet);
    subnet("firewall_management", "AzureFirewallManagementSubnet", kFirewallManagement);
    address("firewall", "fw-ip"), address("firewall_management", "fw-mgmt-ip");
    return out +
           fmt::format(
               "# The data is sensitive: no machine has a public address, and what leaves goes through a firewall that "
               "knows\n# the names.\nresource \"azurerm_firewall\" \"work\" {{\n  name                = \"{0}-fw\"\n"
               "  resource_group_name = azurerm_resource_group.work.name\n  location            = "
               "azurerm_resource_group.work.location\n  sku_name            = \"AZFW_VNet\"\n  sku_tier            = "
               "\"Basic\"\n\n"
               "  ip_configuration {{\n    name                 = \"out\"\n    subnet_id            = "
               "azurerm_subnet.firewall.id\n    public_ip_address_id = azurerm_public_ip.firewall.id\n  }}\n\n"
               "  management_ip_configuration {{\n    name                 = \"management\"\n    subnet_id            "
               "= "
               "azurerm_subnet.firewall_management.id\n    public_ip_address_id = "
               "azurerm_public_ip.firewall_management.id\n  }}\n}}\n\n"
               "resource \"azurerm_firewall_application_rule_collection\" \"packages\" {{\n"
               "  name                = \"packages\"\n  azure_firewall_name = azurerm_firewall.work.name\n"
               "  resource_group_name = azurerm_resource_group.work.name\n  priority            = 100\n"
               "  action              = \"Allow\"\n\n  # Packages, images and weights; everything else stays inside.\n"
               "  rule {{\n    name             = \"names\"\n    source_addresses = [\"{1}\"]\n    target_fqdns = "
               "[\n{2}    "
               "]\n\n    protocol {{\n      port = \"80\"\n      type = \"Http\"\n    }}\n\n    protocol {{\n      "
               "port = "
               "\"443\"\n      type = \"Https\"\n    }}\n  }}\n}}\n\n"
               "resource \"azurerm_route_table\" \"work\" {{\n  name                = \"{0}-routes\"\n"
               "  resource_group_name = azurerm_resource_group.work.name\n  location            = "
               "azurerm_resource_group.work.location\n\n  route {{\n    name                   = \"out\"\n"
               "    address_prefix         = \"0.0.0.0/0\"\n    next_hop_type          = \"VirtualAppliance\"\n"
               "    next_hop_in_ip_address = azurerm_firewall.work.ip_configuration[0].private_ip_address\n  }}\n}}\n\n"
               "resource \"azurerm_subnet_route_table_association\" \"work\" {{\n"
               "  subnet_id      = azurerm_subnet.work.id\n  route_table_id = azurerm_route_table.work.id\n}}\n\n",
               s.name, kSubnet, names);
}

// Of guarded work: what leaves and who changed what is written down. `of`: the resource whose logs these are.
std::string terraform_audit(const AzureShape& s, std::string_view of, std::string_view logs) {
    return fmt::format(
        "# Who reached what is kept for {1} days.\nresource \"azurerm_log_analytics_workspace\" \"work\" {{\n"
        "  name                = \"{0}-log\"\n  resource_group_name = azurerm_resource_group.work.name\n"
        "  location            = azurerm_resource_group.work.location\n  retention_in_days   = {1}\n}}\n\n"
        "resource \"azurerm_monitor_diagnostic_setting\" \"work\" {{\n  name                       = \"audit\"\n"
        "  target_resource_id         = {2}.id\n"
        "  log_analytics_workspace_id = azurerm_log_analytics_workspace.work.id\n\n  enabled_log {{\n    {3}\n  "
        "}}\n}}\n\n",
        s.name, kAuditDays, of, logs);
}

// A scale set's machines have no public addresses, and none reaches anything by itself (default outbound access ended
// 2026-03-31).
std::string terraform_nat(const AzureShape& s) {
    return fmt::format(
        "# Machines without a public address reach nothing by themselves (default outbound access ended 2026-03-31).\n"
        "resource \"azurerm_public_ip\" \"nat\" {{\n  name                = \"{0}-nat-ip\"\n"
        "  resource_group_name = azurerm_resource_group.work.name\n  location            = "
        "azurerm_resource_group.work.location\n  allocation_method   = \"Static\"\n  sku                 = "
        "\"Standard\"\n}}\n\n"
        "resource \"azurerm_nat_gateway\" \"work\" {{\n  name                = \"{0}-nat\"\n"
        "  resource_group_name = azurerm_resource_group.work.name\n  location            = "
        "azurerm_resource_group.work.location\n}}\n\n"
        "resource \"azurerm_nat_gateway_public_ip_association\" \"work\" {{\n"
        "  nat_gateway_id       = azurerm_nat_gateway.work.id\n  public_ip_address_id = "
        "azurerm_public_ip.nat.id\n}}\n\n"
        "resource \"azurerm_subnet_nat_gateway_association\" \"work\" {{\n"
        "  subnet_id      = azurerm_subnet.work.id\n  nat_gateway_id = azurerm_nat_gateway.work.id\n}}\n\n",
        s.name);
}

std::string common_of_machine(const AzureShape& s) {
    std::string out =
        "\n  admin_username                  = \"azureuser\"\n  disable_password_authentication = true\n"
        "  custom_data                     = filebase64(\"${path.module}/cloud-init.yaml\")\n";
    if (s.spot)
        out +=
            "\n  # Taken back with 30 s of notice; -1 pays up to the list price.\n  priority        = \"Spot\"\n"
            "  eviction_policy = \"Delete\"\n  max_bid_price   = -1\n";
    out += "\n  admin_ssh_key {\n    username   = \"azureuser\"\n    public_key = var.ssh_key\n  }\n";
    out +=
        "\n  # No key lies on the machine: it signs in as itself.\n  identity {\n    type = \"SystemAssigned\"\n  }\n";
    out += "\n" + indented(s.image_comment, "  ");
    out += fmt::format(
        "  source_image_reference {{\n    publisher = \"{}\"\n    offer     = \"{}\"\n    sku       = \"{}\"\n    "
        "version   = \"{}\"\n  }}\n",
        s.publisher, s.offer, s.sku, s.version);
    return out +
           "\n  os_disk {\n    caching              = \"ReadWrite\"\n    storage_account_type = \"Premium_LRS\"\n  }\n";
}

std::string terraform_machine(const AzureShape& s) {
    std::string out;
    if (!s.guarded)
        out += fmt::format(
            "resource \"azurerm_public_ip\" \"work\" {{\n  name                = \"{0}-ip\"\n"
            "  resource_group_name = azurerm_resource_group.work.name\n  location            = "
            "azurerm_resource_group.work.location\n"
            "  allocation_method   = \"Static\"\n  sku                 = \"Standard\"\n}}\n\n",
            s.name);
    out += fmt::format(
        "resource \"azurerm_network_interface\" \"work\" {{\n  name                           = \"{0}-nic\"\n"
        "  resource_group_name            = azurerm_resource_group.work.name\n"
        "  location                       = azurerm_resource_group.work.location\n"
        "  accelerated_networking_enabled = true\n\n  ip_configuration {{\n    name                          = \"ip\"\n"
        "    subnet_id                     = azurerm_subnet.work.id\n    private_ip_address_allocation = \"Dynamic\"\n"
        "{1}  }}\n}}\n\n",
        s.name, s.guarded ? "" : "    public_ip_address_id          = azurerm_public_ip.work.id\n");
    if (!s.off_at_night && s.gpu) out += fmt::format("# {}\n", kNotOffAtNight);
    out += fmt::format(
        "resource \"azurerm_linux_virtual_machine\" \"work\" {{\n  name                  = \"{0}\"\n"
        "  resource_group_name   = azurerm_resource_group.work.name\n"
        "  location              = azurerm_resource_group.work.location\n  size                  = \"{1}\"\n"
        "  network_interface_ids = [azurerm_network_interface.work.id]\n",
        s.name, s.size);
    out += common_of_machine(s) + "}\n\n";
    if (s.disk_gib > 0)
        out += fmt::format(
            "resource \"azurerm_managed_disk\" \"data\" {{\n  name                 = \"{}-data\"\n"
            "  resource_group_name  = azurerm_resource_group.work.name\n  location             = "
            "azurerm_resource_group.work.location\n"
            "  storage_account_type = \"{}\"\n  create_option        = \"Empty\"\n  disk_size_gb         = {}\n}}\n\n"
            "resource \"azurerm_virtual_machine_data_disk_attachment\" \"data\" {{\n"
            "  managed_disk_id    = azurerm_managed_disk.data.id\n  virtual_machine_id = "
            "azurerm_linux_virtual_machine.work.id\n"
            "  lun                = 0\n  caching            = \"None\"\n}}\n\n",
            s.name, s.disk_type, s.disk_gib);
    if (s.driver_extension)
        out +=
            "# The image has no GPU driver: this puts it in.\nresource \"azurerm_virtual_machine_extension\" "
            "\"driver\" {\n"
            "  name                       = \"NvidiaGpuDriverLinux\"\n  virtual_machine_id         = "
            "azurerm_linux_virtual_machine.work.id\n"
            "  publisher                  = \"Microsoft.HpcCompute\"\n  type                       = "
            "\"NvidiaGpuDriverLinux\"\n"
            "  type_handler_version       = \"1.6\"\n  auto_upgrade_minor_version = true\n}\n\n";
    if (!s.off_at_night) return out;
    return out + fmt::format(
                     "# A forgotten GPU costs as much as a busy one: off every evening, and the disk stays.\n"
                     "resource \"azurerm_dev_test_global_vm_shutdown_schedule\" \"work\" {{\n"
                     "  virtual_machine_id    = azurerm_linux_virtual_machine.work.id\n"
                     "  location              = azurerm_resource_group.work.location\n  enabled               = true\n"
                     "  daily_recurrence_time = \"{}\"\n  timezone              = \"UTC\"\n\n"
                     "  notification_settings {{\n    enabled = false\n  }}\n}}\n",
                     kShutdownTime);
}

std::string nic_of_set() {
    return "\n  network_interface {\n    name                          = \"nic\"\n    primary                       = "
           "true\n"
           "    enable_accelerated_networking = true\n\n    ip_configuration {\n      name      = \"ip\"\n      "
           "primary   = true\n"
           "      subnet_id = azurerm_subnet.work.id\n    }\n  }\n";
}

std::string data_disk_of_set(const AzureShape& s) {
    if (s.disk_gib <= 0) return "";
    return fmt::format(
        "\n  data_disk {{\n    lun                  = 0\n    caching              = \"None\"\n"
        "    create_option        = \"Empty\"\n    disk_size_gb         = {}\n    storage_account_type = \"{}\"\n  "
        "}}\n",
        s.disk_gib, s.disk_type);
}

std::string terraform_neighbours(const AzureShape& s) {
    if (!s.neighbours) return "";
    return fmt::format(
        "# Every rank waits for every other in each step: one datacenter. It is no InfiniBand.\n"
        "resource \"azurerm_proximity_placement_group\" \"work\" {{\n  name                = \"{}-ppg\"\n"
        "  resource_group_name = azurerm_resource_group.work.name\n  location            = "
        "azurerm_resource_group.work.location\n}}\n\n",
        s.name);
}

std::string terraform_scale_set(const AzureShape& s) {
    if (!s.infiniband) {
        // Flexible: the nodes need not be neighbours.
        std::string image = fmt::format(
            "\n{}  source_image_reference {{\n    publisher = \"{}\"\n    offer     = \"{}\"\n    sku       = \"{}\"\n "
            "   version   = \"{}\"\n  }}\n",
            indented(s.image_comment, "  "), s.publisher, s.offer, s.sku, s.version);
        std::string out = s.least > 0 ? terraform_set_identity(s) : "";
        out += fmt::format(
            "resource \"azurerm_orchestrated_virtual_machine_scale_set\" \"work\" {{\n  name                        = "
            "\"{}\"\n"
            "  resource_group_name         = azurerm_resource_group.work.name\n"
            "  location                    = azurerm_resource_group.work.location\n"
            "  sku_name                    = \"{}\"\n  instances                   = {}\n  platform_fault_domain_count "
            "= 1\n"
            "  user_data_base64            = filebase64(\"${{path.module}}/cloud-init.yaml\")\n",
            s.name, s.size, s.count);
        if (s.neighbours) out += "  proximity_placement_group_id = azurerm_proximity_placement_group.work.id\n";
        if (s.spot) out += "\n  priority        = \"Spot\"\n  eviction_policy = \"Delete\"\n  max_bid_price   = -1\n";
        if (s.kept > 0)
            out += fmt::format(
                "\n  # So many are on demand, and stay when the others are taken.\n  priority_mix {{\n    "
                "base_regular_count            = {}\n    regular_percentage_above_base = 0\n  }}\n",
                s.kept);
        out +=
            "\n  os_profile {\n    linux_configuration {\n      admin_username                  = \"azureuser\"\n"
            "      disable_password_authentication = true\n\n      admin_ssh_key {\n        username   = "
            "\"azureuser\"\n"
            "        public_key = var.ssh_key\n      }\n    }\n    custom_data = "
            "filebase64(\"${path.module}/cloud-init.yaml\")\n  }\n";
        const std::size_t twice = out.find("  user_data_base64");
        out.erase(twice, out.find('\n', twice) + 1 - twice);
        out += image +
               "\n  os_disk {\n    caching              = \"ReadWrite\"\n    storage_account_type = \"Premium_LRS\"\n  "
               "}\n";
        out += data_disk_of_set(s) + nic_of_set();
        if (s.driver_extension)
            out +=
                "\n  extension {\n    name                 = \"NvidiaGpuDriverLinux\"\n    publisher            = "
                "\"Microsoft.HpcCompute\"\n"
                "    type                 = \"NvidiaGpuDriverLinux\"\n    type_handler_version = \"1.6\"\n  }\n";
        if (s.least == 0) return out + "}\n";
        return out +
               "\n  identity {\n    type         = \"UserAssigned\"\n    identity_ids = "
               "[azurerm_user_assigned_identity.machines.id]\n  }\n\n  # The autoscaler's to change.\n  lifecycle {\n  "
               "  "
               "ignore_changes = [instances]\n  }\n}\n" +
               terraform_set_scaling(s);
    }
    std::string out = asks_for_a_larger_group(s) ? fmt::format("# {}\n", kMoreByRequest) : "";
    out += fmt::format(
        "resource \"azurerm_linux_virtual_machine_scale_set\" \"work\" {{\n  name                = \"{}\"\n"
        "  resource_group_name = azurerm_resource_group.work.name\n  location            = "
        "azurerm_resource_group.work.location\n"
        "  sku                 = \"{}\"\n  instances           = {}\n  upgrade_mode        = \"Manual\"\n\n"
        "  # InfiniBand joins the VMs of one scale set with one placement group only, and VMs beyond the number\n"
        "  # would be in it.\n  single_placement_group = true\n  overprovision          = false\n",
        s.name, s.size, s.count);
    out += common_of_machine(s) + data_disk_of_set(s) + nic_of_set();
    if (s.driver_extension)
        out +=
            "\n  extension {\n    name                 = \"NvidiaGpuDriverLinux\"\n    publisher            = "
            "\"Microsoft.HpcCompute\"\n"
            "    type                 = \"NvidiaGpuDriverLinux\"\n    type_handler_version = \"1.6\"\n  }\n";
    return out + "}\n";
}

std::string terraform_cluster(const Deployment& d, const AzureShape& s) {
    std::string out = fmt::format(
        "resource \"azurerm_kubernetes_cluster\" \"work\" {{\n  name                = \"{0}\"\n"
        "  resource_group_name = azurerm_resource_group.work.name\n  location            = "
        "azurerm_resource_group.work.location\n"
        "  dns_prefix          = \"{0}\"\n\n  default_node_pool {{\n    name       = \"system\"\n    node_count = 1\n  "
        "  vm_size    = \"{1}\"\n\n"
        "    upgrade_settings {{\n      max_surge = \"10%\"\n    }}\n  }}\n\n"
        "  identity {{\n    type = \"SystemAssigned\"\n  }}\n\n"
        "  # Without a data plane that knows network policies, those that are applied do nothing.\n"
        "  network_profile {{\n    network_plugin      = \"azure\"\n    network_plugin_mode = \"overlay\"\n    "
        "network_data_plane  = "
        "\"cilium\"\n    network_policy      = \"cilium\"\n  }}\n\n",
        s.name, kSystemSize);
    out += s.guarded ? "  # The data is sensitive: the API server has no public address.\n  private_cluster_enabled = "
                       "true\n}\n\n"
                     : "  # The API server answers your addresses only.\n  api_server_access_profile {\n    "
                       "authorized_ip_ranges = [var.from]\n  }\n}\n\n";
    std::string between;
    for (const AzureShape& pool : azure_pools(d)) {
        out += between;
        between = "\n";
        if (pool.stays) out += fmt::format("# {}\n", kPoolStays);
        out += fmt::format(
            "resource \"azurerm_kubernetes_cluster_node_pool\" \"{}\" {{\n  name                  = \"{}\"\n"
            "  kubernetes_cluster_id = azurerm_kubernetes_cluster.work.id\n  vm_size               = \"{}\"\n",
            pool.stays ? "stays" : "work", pool.pool, s.size);
        if (pool.stays)
            out += "  # They stay when those on spot are taken: as many, always.\n";
        else
            out += fmt::format(
                "  # Idle GPU nodes go, down to none.\n  auto_scaling_enabled = true\n  min_count            = 0\n  "
                "max_count            = {}\n",
                pool.count);
        if (d.kind == WorkloadKind::inference) out += fmt::format("  node_count           = {}\n", pool.count);
        if (s.neighbours) out += "  proximity_placement_group_id = azurerm_proximity_placement_group.work.id\n";
        if (s.gpu) {
            out += "\n  # Pods that need no GPU stay off the GPU nodes.\n  node_taints = [\"sku=gpu:NoSchedule\"";
            if (pool.spot) out += ", \"kubernetes.azure.com/scalesetpriority=spot:NoSchedule\"";
            out += "]\n";
        }
        if (pool.spot)
            out +=
                "  node_labels = {\n    \"kubernetes.azure.com/scalesetpriority\" = \"spot\"\n  }\n\n"
                "  priority        = \"Spot\"\n  eviction_policy = \"Delete\"\n  spot_max_price  = -1\n";
        out += pool.stays ? "}\n"
                          : "\n  # The autoscaler's to change.\n  lifecycle {\n    ignore_changes = [node_count]\n  "
                            "}\n}\n";
    }
    if (!d.front || d.front->machine.empty()) return out;
    return out +
           fmt::format(
               "\n# What stands before the model has a pool without GPUs, and grows apart from it.\n"
               "resource \"azurerm_kubernetes_cluster_node_pool\" \"front\" {{\n  name                  = \"{}\"\n"
               "  kubernetes_cluster_id = azurerm_kubernetes_cluster.work.id\n  vm_size               = \"{}\"\n"
               "  auto_scaling_enabled  = true\n  min_count             = {}\n  max_count             = {}\n"
               "  node_count            = {}\n\n  # The autoscaler's to change.\n  lifecycle {{\n    ignore_changes = "
               "[node_count]\n  }}\n}}\n",
               kFrontPool, d.front->machine, d.front->least, d.front->most_machines, d.front->machines);
}

}  // namespace

std::string azure_terraform(const Deployment& d) {
    const AzureShape s = azure_shape(d);
    const bool keyed = s.kind != AzureKind::cluster;
    std::string out =
        "terraform {\n  required_providers {\n    azurerm = {\n      source  = \"hashicorp/azurerm\"\n"
        "      version = \"~> 4.0\"\n    }\n  }\n}\n\n"
        "# The subscription is ARM_SUBSCRIPTION_ID of your environment.\nprovider \"azurerm\" {\n  features {}\n}\n\n";
    out += terraform_variables(s.location, keyed);
    out += fmt::format(
        "resource \"azurerm_resource_group\" \"work\" {{\n  name     = \"{0}-rg\"\n  location = var.location\n"
        "  tags     = {{ managed-by = \"stoker\", workload = \"{0}\" }}\n}}\n\n",
        s.name);
    out += terraform_budget(s) + terraform_neighbours(s);
    if (s.kind == AzureKind::cluster)
        return out +
               (s.guarded ? terraform_audit(s, "azurerm_kubernetes_cluster.work", "category = \"kube-audit-admin\"")
                          : "") +
               terraform_cluster(d, s);
    out += terraform_network(s);
    if (s.guarded)
        out += terraform_firewall(s) + terraform_private_endpoints(s) +
               terraform_audit(s, "azurerm_firewall.work", "category_group = \"allLogs\"");
    else if (s.kind == AzureKind::scale_set)
        out += terraform_nat(s);
    return out + (s.kind == AzureKind::machine ? terraform_machine(s) : terraform_scale_set(s));
}

}  // namespace stoker

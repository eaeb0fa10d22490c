// terraform: the same resources for azurerm 4; of AWS and GCP the instances of the plan's choice.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "deploy/render/azure_shape.h"
#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

// As `terraform fmt` has it: the signs of neighbouring attributes stand below each other.
std::string aligned(const std::string& text) {
    std::vector<std::string> lines;
    for (const std::string_view line : split_lines(text)) lines.emplace_back(line);
    const auto sign_of = [](const std::string& line) -> std::size_t {
        const std::size_t at = line.find(" = ");
        const std::size_t begin = line.find_first_not_of(' ');
        if (at == std::string::npos || begin == std::string::npos || line[begin] == '#') return std::string::npos;
        return line.find_last_not_of(' ', at) + 1;
    };
    for (std::size_t first = 0; first < lines.size();) {
        if (sign_of(lines[first]) == std::string::npos) {
            ++first;
            continue;
        }
        std::size_t end = first, widest = 0;
        while (end < lines.size() && sign_of(lines[end]) != std::string::npos) {
            widest = std::max(widest, sign_of(lines[end]));
            ++end;
            // What goes on over several lines ends the run.
            if (lines[end - 1].ends_with('{') || lines[end - 1].ends_with('[')) break;
        }
        for (; first < end; ++first) {
            const std::size_t name = sign_of(lines[first]), value = lines[first].find("= ", name);
            lines[first] =
                lines[first].substr(0, name) + std::string(widest - name + 1, ' ') + lines[first].substr(value);
        }
    }
    return join(lines, "\n") + "\n";
}

std::string variables_of(std::string_view location, bool keyed) {
    std::string out = fmt::format("variable \"location\" {{\n  type    = string\n  default = \"{}\"\n}}\n\n", location);
    out +=
        "variable \"from\" {\n  description = \"CIDR of the addresses that may reach it\"\n  type        = "
        "string\n}\n\n";
    if (keyed) out += "variable \"ssh_key\" {\n  description = \"Your public SSH key\"\n  type        = string\n}\n\n";
    return out;
}

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
    std::string out = fmt::format(
        "resource \"azurerm_public_ip\" \"work\" {{\n  name                = \"{0}-ip\"\n"
        "  resource_group_name = azurerm_resource_group.work.name\n  location            = "
        "azurerm_resource_group.work.location\n"
        "  allocation_method   = \"Static\"\n  sku                 = \"Standard\"\n}}\n\n"
        "resource \"azurerm_network_interface\" \"work\" {{\n  name                           = \"{0}-nic\"\n"
        "  resource_group_name            = azurerm_resource_group.work.name\n"
        "  location                       = azurerm_resource_group.work.location\n"
        "  accelerated_networking_enabled = true\n\n  ip_configuration {{\n    name                          = \"ip\"\n"
        "    subnet_id                     = azurerm_subnet.work.id\n    private_ip_address_allocation = \"Dynamic\"\n"
        "    public_ip_address_id          = azurerm_public_ip.work.id\n  }}\n}}\n\n"
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

std::string terraform_scale_set(const AzureShape& s) {
    if (!s.infiniband) {
        // Flexible: the nodes need not be neighbours.
        std::string image = fmt::format(
            "\n{}  source_image_reference {{\n    publisher = \"{}\"\n    offer     = \"{}\"\n    sku       = \"{}\"\n "
            "   version   = \"{}\"\n  }}\n",
            indented(s.image_comment, "  "), s.publisher, s.offer, s.sku, s.version);
        std::string out = fmt::format(
            "resource \"azurerm_orchestrated_virtual_machine_scale_set\" \"work\" {{\n  name                        = "
            "\"{}\"\n"
            "  resource_group_name         = azurerm_resource_group.work.name\n"
            "  location                    = azurerm_resource_group.work.location\n"
            "  sku_name                    = \"{}\"\n  instances                   = {}\n  platform_fault_domain_count "
            "= 1\n"
            "  user_data_base64            = filebase64(\"${{path.module}}/cloud-init.yaml\")\n",
            s.name, s.size, s.count);
        if (s.spot) out += "\n  priority        = \"Spot\"\n  eviction_policy = \"Delete\"\n  max_bid_price   = -1\n";
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
        return out + "}\n";
    }
    std::string out = fmt::format(
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
        "  # The API server answers your addresses only.\n  api_server_access_profile {{\n    authorized_ip_ranges = "
        "[var.from]\n  }}\n}}\n\n",
        s.name, kSystemSize);
    out += fmt::format(
        "resource \"azurerm_kubernetes_cluster_node_pool\" \"work\" {{\n  name                  = \"{}\"\n"
        "  kubernetes_cluster_id = azurerm_kubernetes_cluster.work.id\n  vm_size               = \"{}\"\n"
        "  # Idle GPU nodes go, down to none.\n  auto_scaling_enabled = true\n  min_count            = 0\n  max_count  "
        "          = {}\n",
        s.pool, s.size, s.count);
    if (d.kind == WorkloadKind::inference) out += fmt::format("  node_count           = {}\n", s.count);
    if (s.gpu) {
        out += "\n  # Pods that need no GPU stay off the GPU nodes.\n  node_taints = [\"sku=gpu:NoSchedule\"";
        if (s.spot) out += ", \"kubernetes.azure.com/scalesetpriority=spot:NoSchedule\"";
        out += "]\n";
    }
    if (s.spot)
        out +=
            "  node_labels = {\n    \"kubernetes.azure.com/scalesetpriority\" = \"spot\"\n  }\n\n"
            "  priority        = \"Spot\"\n  eviction_policy = \"Delete\"\n  spot_max_price  = -1\n";
    return out + "}\n";
}

std::string azure_terraform(const Deployment& d) {
    const AzureShape s = azure_shape(d);
    const bool keyed = s.kind != AzureKind::cluster;
    std::string out =
        "terraform {\n  required_providers {\n    azurerm = {\n      source  = \"hashicorp/azurerm\"\n"
        "      version = \"~> 4.0\"\n    }\n  }\n}\n\n"
        "# The subscription is ARM_SUBSCRIPTION_ID of your environment.\nprovider \"azurerm\" {\n  features {}\n}\n\n";
    out += variables_of(s.location, keyed);
    out += fmt::format(
        "resource \"azurerm_resource_group\" \"work\" {{\n  name     = \"{}-rg\"\n  location = var.location\n"
        "  tags     = {{ managed-by = \"stoker\" }}\n}}\n\n",
        s.name);
    if (s.kind == AzureKind::cluster) return out + terraform_cluster(d, s);
    return out + terraform_network(s) + (s.kind == AzureKind::machine ? terraform_machine(s) : terraform_scale_set(s));
}

std::string aws_terraform(const Deployment& d) {
    const std::string name = dns_label(d.name, 40);
    const bool gang = d.nodes.placement == NodePlacement::together && d.nodes.count > 1;
    std::string out =
        "terraform {\n  required_providers {\n    aws = {\n      source  = \"hashicorp/aws\"\n      version = \"~> "
        "6.0\"\n    }\n  }\n}\n\n"
        "provider \"aws\" {\n  region = var.location\n}\n\n";
    out += variables_of(d.nodes.region, true);
    out +=
        "variable \"image\" {\n  description = \"AMI with the driver: an AWS Deep Learning AMI of the region\"\n  type "
        "       = string\n}\n\n";
    out +=
        "variable \"subnet\" {\n  description = \"id of the subnet\"\n  type        = string\n}\n\n"
        "data \"aws_subnet\" \"work\" {\n  id = var.subnet\n}\n\n";
    out += fmt::format(
        "resource \"aws_key_pair\" \"work\" {{\n  key_name   = \"{}\"\n  public_key = var.ssh_key\n}}\n\n", name);
    if (gang)
        out += fmt::format(
            "# Close to each other: every rank waits for every other in each step.\nresource \"aws_placement_group\" "
            "\"work\" {{\n"
            "  name     = \"{}\"\n  strategy = \"cluster\"\n}}\n\n",
            name);
    out += fmt::format(
        "resource \"aws_security_group\" \"work\" {{\n  name   = \"{}\"\n  vpc_id = data.aws_subnet.work.vpc_id\n\n"
        "  # SSH from your addresses only.\n  ingress {{\n    from_port   = 22\n    to_port     = 22\n    protocol    "
        "= \"tcp\"\n    cidr_blocks = [var.from]\n  }}\n\n"
        "  # The nodes among themselves, both ways.\n  ingress {{\n    from_port = 0\n    "
        "to_port   = 0\n    protocol  = \"-1\"\n    self      = true\n  }}\n\n"
        "  egress {{\n    from_port   = 0\n    to_port     = 0\n    protocol    = \"-1\"\n    cidr_blocks = "
        "[\"0.0.0.0/0\"]\n  }}\n\n"
        "  egress {{\n    from_port = 0\n    to_port   = 0\n    protocol  = \"-1\"\n    self      = true\n  }}\n}}\n\n",
        name);
    out += fmt::format(
        "resource \"aws_instance\" \"work\" {{\n  count         = {}\n  ami           = var.image\n  instance_type = "
        "\"{}\"\n"
        "  key_name      = aws_key_pair.work.key_name\n  user_data     = file(\"${{path.module}}/cloud-init.yaml\")\n",
        d.nodes.count, d.nodes.machine);
    if (gang) out += "  placement_group = aws_placement_group.work.name\n";
    out += "  subnet_id     = var.subnet\n  vpc_security_group_ids = [aws_security_group.work.id]\n";
    if (d.nodes.spot()) out += "\n  instance_market_options {\n    market_type = \"spot\"\n  }\n";
    out +=
        "\n  # Tokens only: what runs on the node does not read the role's keys by a plain request.\n  "
        "metadata_options {\n    http_tokens = \"required\"\n  }\n";
    out += fmt::format(
        "\n  tags = {{\n    Name       = \"{}-${{count.index}}\"\n    managed-by = \"stoker\"\n  }}\n}}\n", name);
    return out;
}

std::string gcp_terraform(const Deployment& d) {
    const std::string name = dns_label(d.name, 40);
    const bool gang = d.nodes.placement == NodePlacement::together && d.nodes.count > 1;
    std::string out =
        "terraform {\n  required_providers {\n    google = {\n      source  = \"hashicorp/google\"\n      version = "
        "\"~> 7.0\"\n    }\n  }\n}\n\n"
        "# The project is GOOGLE_PROJECT of your environment.\nprovider \"google\" {\n  region = var.location\n}\n\n";
    out += variables_of(d.nodes.region, true);
    out +=
        "variable \"zone\" {\n  description = \"of the region, with these machines\"\n  type        = string\n}\n\n"
        "variable \"image\" {\n  description = \"image with the driver: of project deeplearning-platform-release\"\n  "
        "type        = string\n}\n\n";
    out += fmt::format("resource \"google_compute_network\" \"work\" {{\n  name = \"{}\"\n}}\n\n", name);
    out += fmt::format(
        "resource \"google_compute_firewall\" \"ssh\" {{\n  name    = \"{0}-ssh\"\n  network = "
        "google_compute_network.work.name\n\n"
        "  # SSH from your addresses only.\n  source_ranges = [var.from]\n\n  allow {{\n    protocol = \"tcp\"\n    "
        "ports    = [\"22\"]\n  }}\n}}\n\n"
        "resource \"google_compute_firewall\" \"inside\" {{\n  name    = \"{0}-inside\"\n  network = "
        "google_compute_network.work.name\n\n"
        "  # The nodes among themselves.\n  source_tags = [\"{0}\"]\n  target_tags = [\"{0}\"]\n\n  allow {{\n    "
        "protocol = \"all\"\n  }}\n}}\n\n",
        name);
    if (gang)
        out += fmt::format(
            "# Close to each other: every rank waits for every other in each step.\nresource "
            "\"google_compute_resource_policy\" \"work\" {{\n"
            "  name = \"{}\"\n\n  group_placement_policy {{\n    vm_count    = {}\n    collocation = \"COLLOCATED\"\n  "
            "}}\n}}\n\n",
            name, d.nodes.count);
    out += fmt::format(
        "resource \"google_compute_instance\" \"work\" {{\n  count        = {}\n  name         = "
        "\"{}-${{count.index}}\"\n"
        "  machine_type = \"{}\"\n  zone         = var.zone\n  tags         = [\"{}\"]\n",
        d.nodes.count, name, d.nodes.machine, name);
    if (gang) out += "  resource_policies = [google_compute_resource_policy.work.id]\n";
    out +=
        "\n  boot_disk {\n    initialize_params {\n      image = var.image\n      size  = 200\n    }\n  }\n\n  "
        "network_interface {\n"
        "    network = google_compute_network.work.name\n\n    access_config {}\n  }\n\n"
        "  metadata = {\n    ssh-keys  = \"ubuntu:${var.ssh_key}\"\n    user-data = "
        "file(\"${path.module}/cloud-init.yaml\")\n  }\n\n"
        "  # GPU machines cannot be moved while they run.\n  scheduling {\n    on_host_maintenance = \"TERMINATE\"\n";
    if (d.nodes.spot())
        out +=
            "    provisioning_model          = \"SPOT\"\n    preemptible                 = true\n    automatic_restart "
            "          = false\n"
            "    instance_termination_action = \"DELETE\"\n";
    return out + "  }\n\n  labels = {\n    managed-by = \"stoker\"\n  }\n}\n";
}

}  // namespace

std::string terraform_refusal(const Deployment& d) {
    if (d.nodes.os == "windows") return "the machines are set up for Linux, and where.os is windows";
    // A p5 has 32 EFA cards, others 4 or 8: with fewer of them attached the exchange is slower than the plan says.
    if (d.nodes.fabric.kind == "efa" && d.nodes.count > 1)
        return fmt::format(
            "{} nodes talk over EFA, and how many network cards a {} has is not known here; slurm says the "
            "work on a cluster that has them",
            d.nodes.count, d.nodes.machine);
    if (d.nodes.cloud == "azure" || d.nodes.cloud == "aws" || d.nodes.cloud == "gcp") return "";
    return fmt::format("it is rendered for azure, aws and gcp, and the plan's machines are {} of {}", d.nodes.machine,
                       d.nodes.cloud);
}

std::vector<FileToWrite> terraform_files(const Deployment& d) {
    const bool cluster = d.nodes.cloud == "azure" && azure_shape(d).kind == AzureKind::cluster;
    std::string out = head_comment(d);
    out += fmt::format("#   terraform init && terraform apply -var from=203.0.113.0/24{}\n",
                       cluster ? "" : " -var ssh_key=\"$(cat ~/.ssh/id_ed25519.pub)\"");
    out += d.nodes.cloud == "azure" ? azure_terraform(d) : d.nodes.cloud == "aws" ? aws_terraform(d) : gcp_terraform(d);
    std::vector<FileToWrite> files{{"main.tf", aligned(out)}};
    if (!cluster) files.push_back({"cloud-init.yaml", cloud_config(d)});
    return files;
}

}  // namespace stoker

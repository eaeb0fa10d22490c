// terraform: of Azure the resources of the az script (terraform_azure.cpp); of AWS and GCP the instances of the plan's
// choice, or EKS and GKE where it counts on Kubernetes.
#include "deploy/render/terraform.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "catalog/model_count.h"
#include "deploy/render/azure_shape.h"
#include "deploy/render/first_boot.h"
#include "deploy/render/kube_cluster.h"
#include "deploy/render/pools.h"
#include "deploy/render/recipes.h"
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
        // What goes on over several lines stands alone.
        const auto goes_on = [&](std::size_t at) {
            return lines[at].ends_with('{') || lines[at].ends_with('[') || lines[at].ends_with('(');
        };
        while (end < lines.size() && sign_of(lines[end]) != std::string::npos && (end == first || !goes_on(end))) {
            widest = std::max(widest, sign_of(lines[end]));
            if (goes_on(end++)) break;
        }
        for (; first < end; ++first) {
            const std::size_t name = sign_of(lines[first]), value = lines[first].find("= ", name);
            lines[first] =
                lines[first].substr(0, name) + std::string(widest - name + 1, ' ') + lines[first].substr(value);
        }
    }
    return join(lines, "\n") + "\n";
}

// What the disk of a node's system holds: image or environment, unpacked, and the model's weights as they are fetched.
int system_disk_gib(const Deployment& d) {
    const double gib = 100 + 2 * parameters_of(d.model) / static_cast<double>(1LL << 30);
    return static_cast<int>(std::ceil(gib / 50)) * 50;
}

constexpr const char* kSystemDisk = "Images and weights lie here, and the default does not hold them.";

bool wants_cluster(const Deployment& d) {
    return d.orchestrator == Orchestrator::kubernetes;
}

// EKS: control plane and a node group of the plan's machines, in subnets that are there.
std::string aws_cluster(const Deployment& d) {
    const std::string name = dns_label(d.name, 40);
    const auto role = [](const char* label, const std::string& role_name, const char* service) {
        return fmt::format(
            "resource \"aws_iam_role\" \"{0}\" {{\n  name = \"{1}\"\n  assume_role_policy = jsonencode({{\n    Version "
            "= "
            "\"2012-10-17\"\n    Statement = [{{\n      Action    = \"sts:AssumeRole\"\n      Effect    = \"Allow\"\n  "
            "    "
            "Principal = {{ Service = \"{2}\" }}\n    }}]\n  }})\n}}\n\n",
            label, role_name, service);
    };
    const auto attached = [](const char* label, const char* to, const char* policy) {
        return fmt::format(
            "resource \"aws_iam_role_policy_attachment\" \"{}\" {{\n  role       = aws_iam_role.{}.name\n"
            "  policy_arn = \"arn:aws:iam::aws:policy/{}\"\n}}\n\n",
            label, to, policy);
    };
    std::string out =
        "variable \"subnets\" {\n  description = \"ids of subnets in two zones or more\"\n  type        = "
        "list(string)\n}\n\n";
    out +=
        role("cluster", name + "-cluster", "eks.amazonaws.com") + role("nodes", name + "-nodes", "ec2.amazonaws.com");
    out += attached("cluster", "cluster", "AmazonEKSClusterPolicy") +
           attached("worker", "nodes", "AmazonEKSWorkerNodePolicy") +
           attached("network", "nodes", "AmazonEKS_CNI_Policy") +
           attached("images", "nodes", "AmazonEC2ContainerRegistryReadOnly");
    out += fmt::format(
        "resource \"aws_eks_cluster\" \"work\" {{\n  name     = \"{}\"\n  role_arn = aws_iam_role.cluster.arn\n\n"
        "{}  depends_on = [aws_iam_role_policy_attachment.cluster]\n}}\n\n",
        name,
        d.sensitive ? "  # The data is sensitive: the API server has no public address.\n  vpc_config {\n    "
                      "subnet_ids         "
                      "     = var.subnets\n    endpoint_private_access = true\n    endpoint_public_access  = false\n  "
                      "}\n\n"
                    : "  # The API server answers your addresses only.\n  vpc_config {\n    subnet_ids              = "
                      "var.subnets\n    endpoint_private_access = true\n    public_access_cidrs     = [var.from]\n  "
                      "}\n\n");
    out +=
        "# Without it network policies that are applied do nothing.\nresource \"aws_eks_addon\" \"network\" {\n"
        "  cluster_name = aws_eks_cluster.work.name\n  addon_name = \"vpc-cni\"\n"
        "  configuration_values = jsonencode({ enableNetworkPolicy = \"true\" })\n}\n\n";
    const std::string end =
        "\n  # The autoscaler's to change.\n  lifecycle {\n    ignore_changes = [scaling_config[0].desired_size]\n  "
        "}\n"
        "\n  depends_on = [\n    aws_iam_role_policy_attachment.worker,\n    "
        "aws_iam_role_policy_attachment.network,\n"
        "    aws_iam_role_policy_attachment.images,\n  ]\n}\n";
    std::string between;
    for (const Deployment& pool : pools_of(d)) {
        const bool stays = !pool_suffix(pool).empty();
        out += between;
        between = "\n";
        if (stays) out += fmt::format("# {}\n", kPoolStays);
        out += fmt::format(
            "resource \"aws_eks_node_group\" \"{}\" {{\n  cluster_name    = aws_eks_cluster.work.name\n"
            "  node_group_name = \"{}\"\n  node_role_arn   = aws_iam_role.nodes.arn\n  subnet_ids      = var.subnets\n"
            "  instance_types  = [\"{}\"]\n",
            stays ? "stays" : "work", (d.nodes.gpus > 0 ? "gpu" : "work") + std::string(pool_suffix(pool)),
            d.nodes.machine);
        if (d.nodes.gpus > 0)
            out += fmt::format("  # The image with the vendor's driver.\n  ami_type = \"{}\"\n",
                               d.nodes.gpu_vendor == "AWS" ? "AL2023_x86_64_NEURON" : "AL2023_x86_64_NVIDIA");
        if (pool.nodes.spot()) out += "  capacity_type   = \"SPOT\"\n";
        out += fmt::format("  # {}\n  disk_size = {}\n", kSystemDisk, system_disk_gib(d));
        out += fmt::format(
            "\n  # {}\n  scaling_config {{\n    desired_size = {}\n    min_size     = {}\n    max_size     = {}\n  "
            "}}\n",
            stays ? "They stay when those on spot are taken."
                  : "From none to what the plan counts on; an autoscaler, or you, sets how many are there.",
            d.kind == WorkloadKind::inference ? pool.nodes.count : 0, stays ? pool.nodes.count : 0, pool.nodes.count);
        if (d.nodes.gpus > 0)
            out += fmt::format(
                "\n  # Pods that need no device stay off these nodes.\n  taint {{\n    key    = \"{}\"\n    value  = "
                "\"present\"\n    effect = \"NO_SCHEDULE\"\n  }}\n",
                resource_of_vendor(d.nodes.gpu_vendor));
        out += end;
    }
    if (!d.front || d.front->machine.empty()) return out;
    return out +
           fmt::format(
               "\n# What stands before the model has nodes without GPUs, and grows apart from it.\n"
               "resource \"aws_eks_node_group\" \"front\" {{\n  cluster_name    = aws_eks_cluster.work.name\n"
               "  node_group_name = \"front\"\n  node_role_arn   = aws_iam_role.nodes.arn\n  subnet_ids      = "
               "var.subnets\n  instance_types  = [\"{}\"]\n\n  scaling_config {{\n    desired_size = {}\n    min_size  "
               "   = {}\n    max_size     = {}\n  }}\n{}",
               d.front->machine, d.front->machines, d.front->least, d.front->most_machines, end);
}

// Without public addresses machines reach nothing by themselves.
std::string gcp_way_out(const std::string& name, std::string_view network) {
    return fmt::format(
        "# What they fetch leaves by the NAT, and nobody comes in by it.\nresource \"google_compute_router\" \"out\" "
        "{{\n"
        "  name    = \"{0}-out\"\n  network = {1}\n}}\n\n"
        "resource \"google_compute_router_nat\" \"out\" {{\n  name   = \"{0}-out\"\n  router = "
        "google_compute_router.out.name\n  nat_ip_allocate_option = \"AUTO_ONLY\"\n"
        "  source_subnetwork_ip_ranges_to_nat = \"ALL_SUBNETWORKS_ALL_IP_RANGES\"\n}}\n",
        name, network);
}

// GKE: the same there; the driver comes with the node pool.
std::string gcp_cluster(const Deployment& d) {
    const std::string name = dns_label(d.name, 30);
    std::string out = fmt::format(
        "variable \"zone\" {{\n  description = \"of the region, with these machines\"\n  type        = string\n}}\n\n"
        "resource \"google_container_cluster\" \"work\" {{\n  name                     = \"{0}\"\n  location         "
        "        = var.zone\n"
        "  initial_node_count       = 1\n  remove_default_node_pool = true\n"
        "  # `terraform destroy` takes it away too.\n  deletion_protection = false\n"
        "  # Without a data plane that knows network policies, those that are applied do nothing.\n"
        "  datapath_provider = \"ADVANCED_DATAPATH\"\n\n"
        "  # The API server answers your addresses only.\n  master_authorized_networks_config {{\n    cidr_blocks "
        "{{\n      cidr_block = var.from\n    }}\n  }}\n{1}}}\n\n"
        "resource \"google_container_node_pool\" \"system\" {{\n  name       = \"system\"\n  cluster    = "
        "google_container_cluster.work.name\n  location   = var.zone\n  node_count = 1\n\n"
        "  node_config {{\n    machine_type = \"e2-standard-4\"\n  }}\n}}\n\n",
        name,
        d.sensitive
            ? "\n  # The data is sensitive: neither the API server nor a node has a public address.\n"
              "  private_cluster_config {\n    enable_private_nodes    = true\n    enable_private_endpoint = true\n"
              "    master_ipv4_cidr_block  = \"172.16.0.0/28\"\n  }\n\n  ip_allocation_policy {}\n"
            : "");
    std::string between;
    for (const Deployment& pool : pools_of(d)) {
        const bool stays = !pool_suffix(pool).empty();
        out += between;
        between = "\n";
        if (stays) out += fmt::format("# {}\n", kPoolStays);
        out += fmt::format(
            "resource \"google_container_node_pool\" \"{}\" {{\n  name     = \"{}\"\n  cluster  = "
            "google_container_cluster.work.name\n  location = var.zone\n"
            "  {} = {}\n\n",
            stays ? "stays" : "work", (d.nodes.gpus > 0 ? "gpu" : "work") + std::string(pool_suffix(pool)),
            stays ? "node_count" : "initial_node_count", d.kind == WorkloadKind::inference ? pool.nodes.count : 0);
        if (!stays)
            out += fmt::format(
                "  # Idle GPU nodes go, down to none.\n  autoscaling {{\n    min_node_count = 0\n    max_node_count = "
                "{}\n  }}\n\n",
                pool.nodes.count);
        out += fmt::format(
            "  node_config {{\n    machine_type = \"{}\"\n    # {}\n    disk_type    = \"pd-ssd\"\n    disk_size_gb = "
            "{}\n",
            d.nodes.machine, kSystemDisk, system_disk_gib(d));
        if (pool.nodes.spot()) out += "    spot = true\n";
        if (d.nodes.gpus > 0 && d.nodes.gpu_vendor == "NVIDIA") {
            if (const std::string type = gke_accelerator(d.nodes.machine); !type.empty())
                out += fmt::format(
                    "\n    # GKE puts in the driver where it is asked for with the devices.\n    guest_accelerator "
                    "{{\n    "
                    "  type  = "
                    "\"{}\"\n      count = {:g}\n\n      gpu_driver_installation_config {{\n        gpu_driver_version "
                    "= "
                    "\"DEFAULT\"\n      }}\n    }}\n",
                    type, d.nodes.gpus);
            out +=
                "\n    # Pods that need no device stay off these nodes.\n    taint {\n      key    = "
                "\"nvidia.com/gpu\"\n  "
                "    "
                "value  = \"present\"\n      effect = \"NO_SCHEDULE\"\n    }\n";
        }
        out += "  }\n}\n";
    }
    return d.sensitive ? out + "\n" + gcp_way_out(name, "\"default\"") : out;
}

std::string aws_terraform(const Deployment& d) {
    const std::string name = dns_label(d.name, 40);
    const bool gang = d.nodes.placement == NodePlacement::together && d.nodes.count > 1;
    std::string out =
        "terraform {\n  required_providers {\n    aws = {\n      source  = \"hashicorp/aws\"\n      version = \"~> "
        "6.0\"\n    }\n  }\n}\n\n"
        "provider \"aws\" {\n  region = var.location\n}\n\n";
    out += terraform_variables(d.nodes.region, !wants_cluster(d));
    if (wants_cluster(d)) return out + aws_cluster(d);
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
    std::string between;
    for (const Deployment& pool : pools_of(d)) {
        const bool stays = !pool_suffix(pool).empty();
        out += between;
        between = "\n";
        out += fmt::format(
            "resource \"aws_instance\" \"{}\" {{\n  count         = {}\n  ami           = var.image\n  instance_type = "
            "\"{}\"\n"
            "  key_name      = aws_key_pair.work.key_name\n  user_data     = "
            "file(\"${{path.module}}/cloud-init.yaml\")\n",
            stays ? "stays" : "work", pool.nodes.count, d.nodes.machine);
        if (gang) out += "  placement_group = aws_placement_group.work.name\n";
        if (d.sensitive)
            out +=
                "  # The data is sensitive: no machine has a public address. What it fetches leaves by the subnet's "
                "own "
                "way\n"
                "  # out.\n  associate_public_ip_address = false\n";
        out += "  subnet_id     = var.subnet\n  vpc_security_group_ids = [aws_security_group.work.id]\n";
        if (pool.nodes.spot()) out += "\n  instance_market_options {\n    market_type = \"spot\"\n  }\n";
        out += fmt::format(
            "\n  # {}\n  root_block_device {{\n    volume_type = \"gp3\"\n    volume_size = {}\n    encrypted   = "
            "true\n  "
            "}}\n",
            kSystemDisk, system_disk_gib(d));
        out +=
            "\n  # Tokens only: what runs on the node does not read the role's keys by a plain request.\n  "
            "metadata_options {\n    http_tokens = \"required\"\n  }\n";
        out += fmt::format(
            "\n  tags = {{\n    Name       = \"{0}-${{count.index}}\"\n    managed-by = \"stoker\"\n    workload   = "
            "\"{1}\"\n  }}\n}}\n",
            name + std::string(pool_suffix(pool)), name);
    }
    return out;
}

std::string gcp_terraform(const Deployment& d) {
    const std::string name = dns_label(d.name, 40);
    const bool gang = d.nodes.placement == NodePlacement::together && d.nodes.count > 1;
    std::string out =
        "terraform {\n  required_providers {\n    google = {\n      source  = \"hashicorp/google\"\n      version = "
        "\">= 6.50, < 8.0\"\n    }\n  }\n}\n\n"
        "# The project is GOOGLE_PROJECT of your environment.\nprovider \"google\" {\n  region = var.location\n}\n\n";
    out += terraform_variables(d.nodes.region, !wants_cluster(d));
    if (wants_cluster(d)) return out + gcp_cluster(d);
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
    if (d.sensitive) out += gcp_way_out(name, "google_compute_network.work.name") + "\n";
    if (gang)
        out += fmt::format(
            "# Close to each other: every rank waits for every other in each step.\nresource "
            "\"google_compute_resource_policy\" \"work\" {{\n"
            "  name = \"{}\"\n\n  group_placement_policy {{\n    vm_count    = {}\n    collocation = \"COLLOCATED\"\n  "
            "}}\n}}\n\n",
            name, d.nodes.count);
    std::string between;
    for (const Deployment& pool : pools_of(d)) {
        const bool stays = !pool_suffix(pool).empty();
        out += between;
        between = "\n";
        out += fmt::format(
            "resource \"google_compute_instance\" \"{}\" {{\n  count        = {}\n  name         = "
            "\"{}-${{count.index}}\"\n"
            "  machine_type = \"{}\"\n  zone         = var.zone\n  tags         = [\"{}\"]\n",
            stays ? "stays" : "work", pool.nodes.count, name + std::string(pool_suffix(pool)), d.nodes.machine, name);
        if (gang) out += "  resource_policies = [google_compute_resource_policy.work.id]\n";
        out += "\n  boot_disk {\n    initialize_params {\n      image = var.image\n      size  = " +
               std::to_string(system_disk_gib(d)) +
               "\n    }\n  }\n\n  network_interface {\n"
               "    network = google_compute_network.work.name\n" +
               std::string(d.sensitive ? "    # The data is sensitive: no address outside.\n  }\n\n"
                                       : "\n    access_config {}\n  }\n\n") +
               "  metadata = {\n    ssh-keys  = \"ubuntu:${var.ssh_key}\"\n    user-data = "
               "file(\"${path.module}/cloud-init.yaml\")\n  }\n\n"
               "  # GPU machines cannot be moved while they run.\n  scheduling {\n    on_host_maintenance = "
               "\"TERMINATE\"\n";
        if (pool.nodes.spot())
            out +=
                "    provisioning_model          = \"SPOT\"\n    preemptible                 = true\n    "
                "automatic_restart "
                "          = false\n"
                "    instance_termination_action = \"DELETE\"\n";
        out += fmt::format("  }}\n\n  labels = {{\n    managed-by = \"stoker\"\n    workload   = \"{}\"\n  }}\n}}\n",
                           name);
    }
    return out;
}

}  // namespace

std::string terraform_variables(std::string_view location, bool keyed) {
    std::string out = fmt::format("variable \"location\" {{\n  type    = string\n  default = \"{}\"\n}}\n\n", location);
    out +=
        "variable \"from\" {\n  description = \"CIDR of the addresses that may reach it\"\n  type        = "
        "string\n}\n\n";
    if (keyed) out += "variable \"ssh_key\" {\n  description = \"Your public SSH key\"\n  type        = string\n}\n\n";
    return out;
}

std::string terraform_refusal(const Deployment& d) {
    if (d.nodes.os == "windows") return "the machines are set up for Linux, and where.os is windows";
    // A p5 has 32 EFA cards, others 4 or 8: with fewer of them attached the exchange is slower than the plan says.
    if (d.nodes.fabric.kind == "efa" && d.nodes.count > 1 && d.nodes.placement == NodePlacement::together)
        return fmt::format(
            "{} nodes talk over EFA, and how many network cards a {} has is not known here; slurm says the "
            "work on a cluster that has them",
            d.nodes.count, d.nodes.machine);
    if (d.nodes.cloud == "azure" || d.nodes.cloud == "aws" || d.nodes.cloud == "gcp") return "";
    return fmt::format("it is rendered for azure, aws and gcp, and the plan's machines are {} of {}", d.nodes.machine,
                       d.nodes.cloud);
}

std::vector<FileToWrite> terraform_files(const Deployment& d) {
    const bool cluster = d.nodes.cloud == "azure" ? azure_shape(d).kind == AzureKind::cluster : wants_cluster(d);
    std::string out = head_comment(d);
    out += fmt::format("#   terraform init && terraform apply -var from=203.0.113.0/24{}\n",
                       cluster ? "" : " -var ssh_key=\"$(cat ~/.ssh/id_ed25519.pub)\"");
    if (cluster) out += cluster_hint(d, "#", dns_label(d.name, 40) + "-rg");
    out += d.nodes.cloud == "azure" ? azure_terraform(d) : d.nodes.cloud == "aws" ? aws_terraform(d) : gcp_terraform(d);
    std::vector<FileToWrite> files{{"main.tf", aligned(out)}};
    if (!cluster)
        files.push_back({"cloud-init.yaml", cloud_config(d)});
    else
        for (FileToWrite& file : cluster_plugin_files(d)) files.push_back(std::move(file));
    return files;
}

}  // namespace stoker

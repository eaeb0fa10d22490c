// What a Terraform block says must reach the rules under one name, whichever provider version wrote it.
#include <gtest/gtest.h>

#include "lint/azure/fields.h"
#include "lint/read.h"

namespace stoker::lint {
namespace {

std::unique_ptr<File> terraform(std::string text) {
    return read_file("main.tf", std::move(text), ReadOptions{});
}

TEST(FindTerraform, ReadsPoolsOfAllClouds) {
    const auto file = terraform(R"(
resource "azurerm_kubernetes_cluster" "main" {
  default_node_pool {
    name    = "system"
    vm_size = "Standard_D4s_v5"
  }
}
resource "azurerm_kubernetes_cluster_node_pool" "gpu" {
  vm_size             = "Standard_NC24ads_A100_v4"
  enable_auto_scaling = true
  node_taints         = ["sku=gpu:NoSchedule", "x=y:NoExecute"]
  tags                = { owner = "a" }
}
resource "google_container_node_pool" "gpu" {
  node_config {
    machine_type = "a2-highgpu-1g"
    guest_accelerator {
      type = "nvidia-tesla-a100"
    }
    taint {
      key    = "k"
      value  = "v"
      effect = "NO_SCHEDULE"
    }
  }
}
resource "aws_eks_node_group" "gpu" {
  instance_types = ["p5.48xlarge"]
}
)");
    ASSERT_EQ(file->resources.size(), 5u);
    EXPECT_EQ(file->resources[1].address, "tf:azurerm_kubernetes_cluster.main#default_node_pool/system");
    EXPECT_EQ(file->resources[1].get(Attr::pool_mode).text, "System");
    EXPECT_EQ(file->resources[2].all(Attr::taint).size(), 2u);
    EXPECT_EQ(file->resources[2].get(Attr::autoscaling).as_bool(), true);
    EXPECT_EQ(file->resources[2].get(Attr::tag).text, "owner=a");
    EXPECT_EQ(file->resources[3].get(Attr::taint).text, "k=v:NoSchedule");
    EXPECT_TRUE(file->resources[3].get(Attr::managed_gpu).known());
    EXPECT_EQ(file->resources[4].get(Attr::size).text, "p5.48xlarge");
}

TEST(FindTerraform, PutsCustomDataIntoAGuestWithItsPlaces) {
    const auto file = terraform(R"(resource "azurerm_linux_virtual_machine" "a" {
  custom_data = base64encode(<<-EOT
    #!/bin/bash
    echo install
  EOT
  )
}
resource "azurerm_linux_virtual_machine" "b" {
  custom_data = "IyEvYmluL2Jhc2gKZWNobyBpbnN0YWxsCg=="
}
)");
    ASSERT_EQ(file->guests.size(), 2u);
    EXPECT_EQ(file->guests[0]->source().text(), "#!/bin/bash\necho install\n");
    EXPECT_EQ(file->guests[0]->source().place(12).line, 4u);
    EXPECT_EQ(file->guests[1]->source().text(), "#!/bin/bash\necho install\n");
    EXPECT_FALSE(file->guests[1]->source().editable({0, 4}));
}

TEST(FindTerraform, ReadsDynamicBlocksAndValidations) {
    const auto file = terraform(R"(resource "azurerm_network_security_group" "n" {
  dynamic "security_rule" {
    for_each = var.rules
    content {
      access                 = "Allow"
      destination_port_range = security_rule.value.port
    }
  }
}
variable "size" {
  validation {
    condition     = contains(["Standard_NC6"], var.size)
    error_message = "no"
  }
}
)");
    ASSERT_EQ(file->resources.size(), 2u);
    EXPECT_TRUE(file->resources[0].get(Attr::port).unknown());
    EXPECT_EQ(file->resources[1].type, ResourceType::size_list);
}

TEST(IsoSeconds, ReadsDurations) {
    EXPECT_EQ(iso_seconds("PT30M"), 1800);
    EXPECT_EQ(iso_seconds("P1DT2H"), 93'600);
    EXPECT_EQ(iso_seconds("120"), 120);
    EXPECT_EQ(iso_seconds("P1M"), -1);
    EXPECT_EQ(iso_seconds("soon"), -1);
}

TEST(FindTerraform, ReadsManifestsInHeredocs) {
    const auto file = terraform(R"(resource "kubectl_manifest" "a" {
  yaml_body = <<-YAML
    apiVersion: v1
    kind: Pod
    metadata: {name: a}
    spec:
      containers:
      - name: c
        resources: {limits: {nvidia.com/gpu: 1}}
  YAML
}
resource "kubernetes_manifest" "b" {
  manifest = yamldecode(<<EOF
apiVersion: v1
kind: Pod
metadata: {name: "${var.name}"}
EOF
  )
}
resource "kubectl_manifest" "c" {
  yaml_body = <<YAML
%{ for x in var.all }
apiVersion: v1
kind: Pod
%{ endfor }
YAML
}
)");
    ASSERT_EQ(file->guests.size(), 2u);
    ASSERT_EQ(file->guests[0]->workloads.size(), 1u);
    EXPECT_EQ(file->guests[0]->source().place(0).line, 3u);
    EXPECT_TRUE(file->guests[1]->problems.empty());
}

// The provider's own words for a Deployment are the Deployment, and what is wrong in it stands at its line.
TEST(FindTerraform, ReadsKubernetesObjectsInTerraformsWords) {
    const auto file = read_file("main.tf", R"(
variable "image" {}
resource "kubernetes_deployment_v1" "vllm" {
  metadata { name = "vllm" }
  spec {
    template {
      spec {
        node_selector = { "kubernetes.azure.com/accelerator" = "nvidia" }
        toleration {
          key    = "sku"
          effect = "NoSchedule"
        }
        toleration {
          key = "other"
        }
        init_container {
          name  = "fetch"
          image = var.image
        }
        container {
          name  = "vllm"
          image = "vllm/vllm-openai:v0.8.4"
          args  = ["--model", "x/y"]
          resources {
            limits = { "nvidia.com/gpu" = 2 }
          }
          volume_mount {
            name       = "shm"
            mount_path = "/dev/shm"
          }
        }
      }
    }
  }
}
resource "kubernetes_manifest" "pod" {
  manifest = {
    apiVersion = "v1"
    kind       = "Pod"
    metadata   = { name = "x" }
    spec       = { containers = [{ name = "x", image = "a:1" }] }
  }
}
)");
    ASSERT_EQ(file->guests.size(), 2u);
    ASSERT_EQ(file->guests[0]->workloads.size(), 1u);
    const Workload& made = file->guests[0]->workloads[0];
    EXPECT_EQ(made.kind, "Deployment");
    EXPECT_EQ(made.name, "vllm");
    ASSERT_EQ(made.containers.size(), 2u);
    EXPECT_TRUE(made.containers[0].init);
    EXPECT_TRUE(made.containers[0].image.unknown());
    EXPECT_EQ(made.containers[1].resources.at(0).resource, "nvidia.com/gpu");
    EXPECT_EQ(made.containers[1].resources.at(0).amount.as_int(), 2);
    EXPECT_EQ(made.pod->find("tolerations")->count(), 2u);
    EXPECT_NE(made.pod->at({"nodeSelector", "kubernetes.azure.com/accelerator"}), nullptr);
    ASSERT_EQ(file->guests[1]->workloads.size(), 1u);
    EXPECT_EQ(file->guests[1]->workloads[0].containers.size(), 1u);
}

}  // namespace
}  // namespace stoker::lint

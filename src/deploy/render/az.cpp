// az: a script of Azure's command line: group, network, and a VM, a scale set or AKS with a pool. It asks for what only
// its owner knows, and nothing of it is written down.
#include <fmt/format.h>

#include "deploy/render/azure_shape.h"
#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

std::string az_network(const AzureShape& s) {
    return fmt::format(
        "# 172.16.0.0/16 would overlap what InfiniBand sizes keep for themselves.\n"
        "az network vnet create -g \"$group\" -n {0}-net --address-prefixes {1} --subnet-name work --subnet-prefixes "
        "{2}\n"
        "az network nsg create -g \"$group\" -n {0}-nsg\n"
        "# SSH from your addresses only; everything else from outside is refused by default.\n"
        "az network nsg rule create -g \"$group\" --nsg-name {0}-nsg -n ssh --priority 100 --direction Inbound "
        "--access Allow \\\n"
        "    --protocol Tcp --source-address-prefixes \"$from\" --destination-port-ranges 22\n"
        "az network vnet subnet update -g \"$group\" --vnet-name {0}-net -n work --network-security-group {0}-nsg\n",
        s.name, kNetwork, kSubnet);
}

std::string az_spot(const AzureShape& s) {
    return s.spot ? " \\\n    --priority Spot --eviction-policy Delete --max-price -1" : "";
}

std::string az_image(const AzureShape& s) {
    return fmt::format("{}:{}:{}:{}", s.publisher, s.offer, s.sku, s.version);
}

std::string az_machine(const AzureShape& s) {
    std::string out = s.image_comment;
    out += fmt::format(
        "az vm create -g \"$group\" -n {0} --size {1} --image {2} \\\n"
        "    --vnet-name {0}-net --subnet work --nsg '' --public-ip-sku Standard --accelerated-networking true \\\n"
        "    --security-type Standard --assign-identity '[system]' --authentication-type ssh --admin-username "
        "azureuser \\\n"
        "    --ssh-key-values \"$key\" --custom-data \"$here/cloud-init.yaml\"",
        s.name, s.size, az_image(s));
    if (s.disk_gib > 0)
        out +=
            fmt::format(" \\\n    --data-disk-sizes-gb {} --storage-sku os=Premium_LRS 0={}", s.disk_gib, s.disk_type);
    out += az_spot(s) + "\n";
    if (s.driver_extension)
        out += fmt::format(
            "# The image has no GPU driver: this puts it in, and restarts the machine where it has to.\n"
            "az vm extension set -g \"$group\" --vm-name {} -n NvidiaGpuDriverLinux --publisher Microsoft.HpcCompute "
            "--version 1.6\n",
            s.name);
    return out + fmt::format(
                     "# Switched off every evening, since a forgotten GPU costs as much as a busy one. Off is "
                     "deallocated: the disk\n"
                     "# stays, and az vm start brings it back.\n"
                     "az vm auto-shutdown -g \"$group\" -n {} --time {}\n",
                     s.name, kShutdownTime);
}

std::string az_scale_set(const AzureShape& s) {
    std::string out = s.image_comment;
    if (s.infiniband)
        out +=
            why("InfiniBand joins the VMs of one scale set with one placement group only, and machines started beyond "
                "the number would be in it",
                "learn.microsoft.com, Set up InfiniBand on HPC VMs");
    out += fmt::format(
        "az vmss create -g \"$group\" -n {0} --vm-sku {1} --instance-count {2} --image {3} \\\n"
        "    --orchestration-mode {4} --single-placement-group {5}{6} \\\n"
        "    --vnet-name {0}-net --subnet work --nsg '' --lb '' --accelerated-networking true --upgrade-policy-mode "
        "Manual \\\n"
        "    --security-type Standard --assign-identity '[system]' --authentication-type ssh --admin-username "
        "azureuser \\\n"
        "    --ssh-key-values \"$key\" --custom-data \"$here/cloud-init.yaml\"",
        s.name, s.size, s.count, az_image(s), s.infiniband ? "Uniform" : "Flexible", s.infiniband ? "true" : "false",
        s.infiniband ? " --disable-overprovision" : " --platform-fault-domain-count 1");
    if (s.disk_gib > 0)
        out +=
            fmt::format(" \\\n    --data-disk-sizes-gb {} --storage-sku os=Premium_LRS 0={}", s.disk_gib, s.disk_type);
    out += az_spot(s) + "\n";
    if (s.driver_extension)
        out += fmt::format(
            "az vmss extension set -g \"$group\" --vmss-name {} -n NvidiaGpuDriverLinux --publisher "
            "Microsoft.HpcCompute --version 1.6\n",
            s.name);
    return out;
}

// By Azure's naming: an r among the small letters behind the number of vCPUs (learn.microsoft.com, VM sizes naming).
bool has_rdma(std::string_view size) {
    const std::size_t digit = size.find_first_of("0123456789", size.find('_') + 1);
    if (digit == std::string_view::npos) return false;
    const std::string_view features = size.substr(digit, size.find('_', digit) - digit);
    return features.find('r') != std::string_view::npos;
}

std::string az_cluster(const Deployment& d, const AzureShape& s) {
    std::string out = fmt::format(
        "az aks create -g \"$group\" -n {} --node-count 1 --node-vm-size {} --generate-ssh-keys "
        "--enable-managed-identity \\\n"
        "    --api-server-authorized-ip-ranges \"$from\"\n",
        s.name, kSystemSize);
    if (s.infiniband)
        out +=
            "# Without it the nodes of the pool may land on different InfiniBand networks (learn.microsoft.com, AKS).\n"
            "az feature register --namespace Microsoft.ContainerService --name AKSInfinibandSupport\n";
    else if (has_rdma(s.size))
        out += "# stoker: ignore[NET016] reason=\"no replica or job spans nodes, so that InfiniBand is not used\"\n";
    if (d.training && s.count > 1 && !has_rdma(s.size))
        out += "# stoker: ignore[SKU006] reason=\"the plan counts on Ethernet: the gradients are small\"\n";
    out += fmt::format(
        "# From none to what the plan counts on: idle GPU nodes go.\n"
        "az aks nodepool add -g \"$group\" --cluster-name {} -n {} --node-vm-size {} --enable-cluster-autoscaler \\\n"
        "    --min-count {} --max-count {} --node-count {}",
        s.name, s.pool, s.size, 0, s.count, d.kind == WorkloadKind::inference ? s.count : 0);
    if (s.gpu) out += " \\\n    --node-taints sku=gpu:NoSchedule";
    // AMD's driver is its operator's to bring.
    if (s.gpu && d.nodes.gpu_vendor != "NVIDIA") out += " --gpu-driver none";
    if (s.spot) out += " \\\n    --priority Spot --eviction-policy Delete --spot-max-price -1";
    out += fmt::format("\naz aks get-credentials -g \"$group\" -n {}\n", s.name);
    if (s.gpu && d.nodes.gpu_vendor == "NVIDIA")
        out +=
            "# Without the device plug-in the nodes offer no nvidia.com/gpu.\nkubectl apply -f "
            "\"$here/device-plugin.yaml\"\n";
    return out;
}

}  // namespace

std::string device_plugin_manifest(const Deployment& d) {
    return head_comment(d) +
           "# NVIDIA's device plug-in, with the toleration of the pool's taint that its own manifest lacks.\n"
           "apiVersion: apps/v1\nkind: DaemonSet\nmetadata:\n  name: nvidia-device-plugin\n  namespace: "
           "kube-system\nspec:\n"
           "  selector: {matchLabels: {name: nvidia-device-plugin}}\n  template:\n    metadata:\n"
           "      labels: {name: nvidia-device-plugin}\n    spec:\n      priorityClassName: system-node-critical\n"
           "      tolerations:\n      - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}\n"
           "      - {key: sku, operator: Equal, value: gpu, effect: NoSchedule}\n"
           "      - {key: kubernetes.azure.com/scalesetpriority, operator: Equal, value: spot, effect: NoSchedule}\n"
           "      containers:\n      - name: nvidia-device-plugin\n        image: "
           "nvcr.io/nvidia/k8s-device-plugin:v0.18.0\n"
           "        env:\n        - {name: FAIL_ON_INIT_ERROR, value: \"false\"}\n"
           "        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}\n"
           "        volumeMounts:\n        - {name: device-plugin, mountPath: /var/lib/kubelet/device-plugins}\n"
           "      volumes:\n      - {name: device-plugin, hostPath: {path: /var/lib/kubelet/device-plugins}}\n";
}

std::vector<FileToWrite> az_files(const Deployment& d) {
    const AzureShape s = azure_shape(d);
    std::string out = "#!/bin/bash\n" + head_comment(d);
    const bool keyed = s.kind != AzureKind::cluster;
    out += fmt::format("#   {}FROM=203.0.113.0/24 ./{}-az.sh          # FROM: where you come from\n",
                       keyed ? "SSH_KEY=~/.ssh/id_ed25519.pub " : "", d.name);
    out += fmt::format("#   az group delete -n {}-rg                  # takes everything away again\n", s.name);
    const bool plug_in = s.gpu && d.nodes.gpu_vendor == "NVIDIA";
    out += std::string("set -eu\n\n") + (keyed || plug_in ? "here=$(cd \"$(dirname \"$0\")\" && pwd)\n" : "");
    out += fmt::format(
        "group=${{GROUP:-{}-rg}}\nlocation=${{LOCATION:-{}}}\nfrom=${{FROM:?CIDR of the addresses that may reach "
        "it}}\n",
        s.name, s.location);
    if (keyed) out += "key=${SSH_KEY:?file of your public SSH key}\n";
    out += "\naz group create -n \"$group\" -l \"$location\" --tags managed-by=stoker\n";
    std::vector<FileToWrite> files;
    if (s.kind == AzureKind::cluster) {
        out += az_cluster(d, s);
        if (s.gpu && d.nodes.gpu_vendor == "NVIDIA") files.push_back({"device-plugin.yaml", device_plugin_manifest(d)});
    } else {
        out += az_network(s) + (s.kind == AzureKind::machine ? az_machine(s) : az_scale_set(s));
        files.push_back({"cloud-init.yaml", cloud_config(d)});
    }
    files.insert(files.begin(), {d.name + "-az.sh", out, 0755});
    return files;
}

std::string aks_refusal(const Deployment& d) {
    if (std::string why = azure_refusal(d); !why.empty()) return why;
    return kubernetes_refusal(d);
}

std::vector<FileToWrite> aks_files(const Deployment& given) {
    Deployment d = given;
    d.orchestrator = Orchestrator::aks;
    std::vector<FileToWrite> files = az_files(d);
    for (FileToWrite& file : kubernetes_files(d)) files.push_back(std::move(file));
    return files;
}

std::string cloud_init_refusal(const Deployment& d) {
    if (d.nodes.cloud == "this-machine") return "it is for machines that are still to be started, and this one runs";
    if (d.nodes.os == "windows") return "cloud-init sets up Linux, and where.os is windows";
    return "";
}

std::vector<FileToWrite> cloud_init_files(const Deployment& d) {
    return {{"cloud-init.yaml", cloud_config(d)}};
}

}  // namespace stoker

// az: a script of Azure's command line: group, network, and a VM, a scale set or AKS with a pool. It asks for what only
// its owner knows, and nothing of it is written down.
#include <fmt/format.h>

#include "deploy/render/azure_shape.h"
#include "deploy/render/first_boot.h"
#include "deploy/render/kube_cluster.h"
#include "deploy/render/kube_front.h"
#include "deploy/render/kube_pod.h"
#include "deploy/render/pools.h"
#include "deploy/render/private_endpoints.h"
#include "deploy/render/recipes.h"
#include "deploy/render/scale_set_scaling.h"
#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

// The family's quota is asked before anything is made: what it refuses fails after minutes, and half of it is paid for.
std::string az_quota(const AzureShape& s) {
    std::string out = fmt::format(
        "# 1. Quota: {} vCPUs of the size's family, in this region and of this subscription.\n"
        "family=$(az vm list-skus -l \"$location\" --size {} --all --query '[0].family' -o tsv)\n",
        s.vcpus, s.size);
    if (s.spot) out += "family=lowPriorityCores  # spot has a quota of its own, of all sizes together\n";
    return out + fmt::format(
                     "read -r used limit < <(az vm list-usage -l \"$location\" --query '[].[name.value, currentValue, "
                     "limit]' -o tsv |\n"
                     "    awk -F '\\t' -v family=\"$family\" 'tolower($1) == tolower(family) {{ print $2, $3 }}') || "
                     "true\n"
                     "# A family that is not listed is not known, which is no refusal.\n"
                     "if [ -n \"${{limit:-}}\" ] && [ $((limit - used)) -lt {0} ]; then\n"
                     "    echo \"error: $family in $location: $used of $limit vCPUs are taken, and {0} are needed;\" "
                     ">&2\n"
                     "    echo '  ask for more in the portal: Subscriptions, Usage + quotas' >&2\n    exit 1\nfi\n\n",
                     s.vcpus);
}

std::string az_group(const AzureShape& s) {
    std::string out =
        "# 2. The group, in which everything is; its tags say whose, and with EXPIRES=2027-01-31 until when.\n"
        "az group create -n \"$group\" -l \"$location\" \\\n    --tags " +
        az_tags(s.name) + "\n";
    if (s.budget_usd > 0)
        out += fmt::format(
            "# Owners are written to at half, four fifths and all of what the plan counts on in a month. It stops "
            "nothing.\n"
            "subscription=$(az account show --query id -o tsv)\n"
            "notice() {{ printf '{{\"enabled\": true, \"operator\": \"GreaterThan\", \"threshold\": %s, "
            "\"thresholdType\": "
            "\"%s\", \"contactEmails\": [], \"contactRoles\": [\"Owner\"]}}' \"$1\" \"$2\"; }}\n"
            "az rest --method put \\\n    --url "
            "\"https://management.azure.com/subscriptions/$subscription/resourceGroups/$group/providers/"
            "Microsoft.Consumption/budgets/{0}-budget?api-version=2024-08-01\" \\\n"
            "    --body \"{{\\\"properties\\\": {{\\\"category\\\": \\\"Cost\\\", \\\"amount\\\": {1}, "
            "\\\"timeGrain\\\": "
            "\\\"Monthly\\\",\n"
            "        \\\"timePeriod\\\": {{\\\"startDate\\\": \\\"$(date -u +%Y-%m-01T00:00:00Z)\\\"}},\n"
            "        \\\"notifications\\\": {{\\\"half\\\": $(notice 50 Actual), \\\"most\\\": $(notice 80 Actual), "
            "\\\"all\\\": $(notice 100 Actual), \\\"foreseen\\\": $(notice 100 Forecasted)}}}}}}\"\n",
            s.name, s.budget_usd);
    return out + "\n";
}

std::string az_firewall(const AzureShape& s) {
    std::string names;
    for (const std::string& name : s.reached) names += fmt::format(" '{}'", name);
    return fmt::format(
        "# The data is sensitive: no machine has a public address, and what leaves goes through a firewall that knows "
        "the\n# names. Reach the machines over your VPN or Bastion.\n"
        "az network vnet subnet create -g \"$group\" --vnet-name {0}-net -n AzureFirewallSubnet --address-prefixes "
        "{1}\n"
        "az network vnet subnet create -g \"$group\" --vnet-name {0}-net -n AzureFirewallManagementSubnet "
        "--address-prefixes {2}\n"
        "az network public-ip create -g \"$group\" -n {0}-fw-ip --sku Standard\n"
        "az network public-ip create -g \"$group\" -n {0}-fw-mgmt-ip --sku Standard\n"
        "az extension add -n azure-firewall --upgrade\n"
        "az network firewall create -g \"$group\" -n {0}-fw --tier Basic --vnet-name {0}-net --conf-name out \\\n"
        "    --public-ip {0}-fw-ip --m-conf-name management --m-public-ip {0}-fw-mgmt-ip\n"
        "az network firewall application-rule create -g \"$group\" --firewall-name {0}-fw --collection-name packages "
        "-n names \\\n"
        "    --priority 100 --action Allow --source-addresses {3} --protocols Http=80 Https=443 \\\n"
        "    --target-fqdns{4}\n"
        "{6}"
        "az network route-table create -g \"$group\" -n {0}-routes\n"
        "az network route-table route create -g \"$group\" --route-table-name {0}-routes -n out --address-prefix "
        "0.0.0.0/0 \\\n"
        "    --next-hop-type VirtualAppliance --next-hop-ip-address {5}\n"
        "az network vnet subnet update -g \"$group\" --vnet-name {0}-net -n work --route-table {0}-routes\n\n",
        s.name, kFirewallSubnet, kFirewallManagement, kSubnet, names, kFirewallAddress,
        s.kind != AzureKind::cluster
            ? ""
            : fmt::format("# What a node of AKS needs to come up, kept by Azure under one tag.\n"
                          "az network firewall application-rule create -g \"$group\" --firewall-name {0}-fw "
                          "--collection-name packages -n aks \\\n    --source-addresses {1} --protocols Http=80 "
                          "Https=443 --fqdn-tags AzureKubernetesService\n",
                          s.name, kSubnet));
}

// Of guarded work: `asked`: what says the id of the resource; `logs`: of it, as JSON.
std::string az_audited(std::string_view asked, std::string_view logs) {
    return fmt::format(
        "az monitor diagnostic-settings create -n audit --workspace \"$log\" --export-to-resource-specific true \\\n"
        "    --resource \"$({} --query id -o tsv)\" --logs '[{}]'\n",
        asked, logs);
}

std::string az_audit(const AzureShape& s) {
    return fmt::format(
               "# What leaves is written down, by name, and kept for {1} days.\n"
               "az monitor log-analytics workspace create -g \"$group\" -n {0}-log --retention-time {1}\n"
               "log=$(az monitor log-analytics workspace show -g \"$group\" -n {0}-log --query id -o tsv)\n",
               s.name, kAuditDays) +
           az_audited(fmt::format("az network firewall show -g \"$group\" -n {}-fw", s.name),
                      "{\"categoryGroup\": \"allLogs\", \"enabled\": true}") +
           "\n";
}

std::string az_network(const AzureShape& s) {
    std::string out = "# 3. The network. 172.16.0.0/16 would overlap what InfiniBand sizes keep for themselves.\n";
    out += fmt::format(
        "az network vnet create -g \"$group\" -n {0}-net --address-prefixes {1} --subnet-name work --subnet-prefixes "
        "{2}\n"
        "az network nsg create -g \"$group\" -n {0}-nsg\n"
        "# SSH from your addresses only; everything else from outside is refused by default.\n"
        "az network nsg rule create -g \"$group\" --nsg-name {0}-nsg -n ssh --priority 100 --direction Inbound "
        "--access Allow \\\n"
        "    --protocol Tcp --source-address-prefixes \"$from\" --destination-port-ranges 22\n"
        "az network vnet subnet update -g \"$group\" --vnet-name {0}-net -n work --network-security-group {0}-nsg\n",
        s.name, kNetwork, kSubnet);
    if (s.guarded) return out + az_firewall(s) + az_private_endpoints(s) + az_audit(s);
    // Default outbound access is gone since 2026-03-31, and a scale set has no public addresses of its own.
    if (s.kind == AzureKind::scale_set)
        out += fmt::format(
            "# Machines without a public address reach nothing by themselves (default outbound access ended "
            "2026-03-31).\n"
            "az network public-ip create -g \"$group\" -n {0}-nat-ip --sku Standard\n"
            "az network nat gateway create -g \"$group\" -n {0}-nat --public-ip-addresses {0}-nat-ip\n"
            "az network vnet subnet update -g \"$group\" --vnet-name {0}-net -n work --nat-gateway {0}-nat\n",
            s.name);
    return out + "\n";
}

std::string az_spot(const AzureShape& s) {
    if (!s.spot) return "";
    return " \\\n    --priority Spot --eviction-policy Delete --max-price -1" +
           (s.kept > 0 ? fmt::format(" \\\n    --regular-priority-count {} --regular-priority-percentage 0", s.kept)
                       : std::string());
}

std::string az_image(const AzureShape& s) {
    return fmt::format("{}:{}:{}:{}", s.publisher, s.offer, s.sku, s.version);
}

std::string az_driver(const AzureShape& s) {
    const std::string extension = fmt::format(
        "az vm extension set -g \"$group\" --vm-name {0} -n NvidiaGpuDriverLinux --publisher Microsoft.HpcCompute "
        "--version 1.6\n"
        "# What became of it, in its own words.\n"
        "az vm extension show -g \"$group\" --vm-name {0} -n NvidiaGpuDriverLinux --instance-view \\\n"
        "    --query '{{status: provisioningState, message: instanceView.statuses[0].message}}'\n",
        s.name);
    if (s.virtual_gpu)
        return "# The image has no GPU driver: this puts it in, and restarts the machine where it has to.\n" +
               extension;
    return fmt::format(
        "# The image has no GPU driver: the extension puts in one that Azure signed and tried, and restarts the "
        "machine\n"
        "# where it has to. DRIVER=keyring takes NVIDIA's own packages instead, when CUDA=cuda-toolkit-13-0 or another "
        "has\n"
        "# to be there: nobody but you tries that one.\n"
        "if [ \"${{DRIVER:-extension}}\" = keyring ]; then\n"
        "    az vm run-command invoke -g \"$group\" -n {0} --command-id RunShellScript --scripts \\\n"
        "        'cloud-init status --wait; . /etc/os-release; release=ubuntu$(echo \"$VERSION_ID\" | tr -d .)' \\\n"
        "        'curl -fsSLo /tmp/keyring.deb "
        "\"https://developer.download.nvidia.com/compute/cuda/repos/$release/x86_64/cuda-keyring_1.1-1_all.deb\"' \\\n"
        "        \"dpkg -i /tmp/keyring.deb && apt-get update && apt-get install -y cuda-drivers ${{CUDA:-}}\"\n"
        "    az vm restart -g \"$group\" -n {0}\nelse\n{1}fi\n",
        s.name, indented(extension, "    "));
}

// As the machine itself, whose role is given here; the container is named by who starts the script.
std::string az_blobs(const AzureShape& s) {
    return fmt::format(
        "# Weights and data of a Blob container: BLOBS=ACCOUNT/CONTAINER has them at /data/CONTAINER through "
        "BlobFuse2.\n"
        "if [ -n \"${{BLOBS:-}}\" ]; then\n"
        "    storage=$(az storage account show -n \"${{BLOBS%/*}}\" --query id -o tsv)\n"
        "    az role assignment create --role 'Storage Blob Data Contributor' \\\n"
        "        --scope \"$storage/blobServices/default/containers/${{BLOBS#*/}}\" --assignee-principal-type "
        "ServicePrincipal \\\n"
        "        --assignee-object-id \"$(az vm show -g \"$group\" -n {0} --query identity.principalId -o tsv)\"\n"
        "    az vm run-command invoke -g \"$group\" -n {0} --command-id RunShellScript \\\n"
        "        --scripts \"cloud-init status --wait; /usr/local/sbin/mount-blobs ${{BLOBS%/*}} ${{BLOBS#*/}}\"\nfi\n",
        s.name);
}

// Machines that wait for each other over Ethernet stand in one datacenter. It is no InfiniBand, and not needed for it.
std::string az_neighbours(const AzureShape& s) {
    if (!s.neighbours) return "";
    return why("every rank waits for every other in each step: machines of one group stand in one datacenter",
               "learn.microsoft.com, Proximity placement groups") +
           fmt::format("az ppg create -g \"$group\" -n {}-ppg -l \"$location\" --intent-vm-sizes {}\n", s.name, s.size);
}

std::string az_machine(const AzureShape& s) {
    std::string out = "# 4. The machine, with its driver.\n" + s.image_comment;
    out += fmt::format(
        "az vm create -g \"$group\" -n {0} --size {1} --image {2} \\\n"
        "    --vnet-name {0}-net --subnet work --nsg '' {3} --accelerated-networking true \\\n"
        "    --security-type Standard --assign-identity '[system]' --authentication-type ssh --admin-username "
        "azureuser \\\n"
        "    --ssh-key-values \"$key\" --custom-data \"$here/cloud-init.yaml\"",
        s.name, s.size, az_image(s), s.guarded ? "--public-ip-address ''" : "--public-ip-sku Standard");
    if (s.disk_gib > 0)
        out +=
            fmt::format(" \\\n    --data-disk-sizes-gb {} --storage-sku os=Premium_LRS 0={}", s.disk_gib, s.disk_type);
    out += az_spot(s) + "\n";
    if (s.driver_extension) out += az_driver(s);
    if (s.off_at_night)
        out += fmt::format(
            "# Switched off every evening, since a forgotten GPU costs as much as a busy one. Off is "
            "deallocated: the disk\n"
            "# stays, and az vm start brings it back.\n"
            "az vm auto-shutdown -g \"$group\" -n {0} --time {1}\n",
            s.name, kShutdownTime);
    else
        out += fmt::format("# It is paid for until it is deallocated: az vm deallocate -g \"$group\" -n {}\n", s.name);
    out += az_blobs(s);
    return out + fmt::format(
                     "\n# 5. What is there, beside what the plan counts on.\n"
                     "found=$(az vm run-command invoke -g \"$group\" -n {0} --command-id RunShellScript \\\n"
                     "    --scripts 'cloud-init status --wait; /usr/local/sbin/node-check' --query 'value[0].message' "
                     "-o tsv)\n"
                     "echo \"$found\"\ncase $found in *'{1}'*) ;; *) exit 1 ;; esac\n",
                     s.name, kAsPlanned);
}

std::string az_scale_set(const AzureShape& s) {
    std::string out = "# 4. The machines, with their driver.\n" + s.image_comment;
    if (s.infiniband)
        out +=
            why("InfiniBand joins the VMs of one scale set with one placement group only, and machines started beyond "
                "the number would be in it",
                "learn.microsoft.com, Set up InfiniBand on HPC VMs");
    out += az_neighbours(s);
    if (asks_for_a_larger_group(s)) out += fmt::format("# {}\n", kMoreByRequest);
    if (s.least > 0) out += az_set_identity(s);
    out += fmt::format(
        "az vmss create -g \"$group\" -n {0} --vm-sku {1} --instance-count {2} --image {3} \\\n"
        "    --orchestration-mode {4} --single-placement-group {5}{6} \\\n"
        "    --vnet-name {0}-net --subnet work --nsg '' --lb '' --accelerated-networking true --upgrade-policy-mode "
        "Manual \\\n"
        "    --security-type Standard --assign-identity {7} --authentication-type ssh --admin-username "
        "azureuser \\\n"
        "    --ssh-key-values \"$key\" --custom-data \"$here/cloud-init.yaml\"",
        s.name, s.size, s.count, az_image(s), s.infiniband ? "Uniform" : "Flexible", s.infiniband ? "true" : "false",
        s.infiniband ? " --disable-overprovision" : " --platform-fault-domain-count 1",
        s.least > 0 ? metrics_identity(s) : "'[system]'");
    if (s.neighbours) out += fmt::format(" --ppg {}-ppg", s.name);
    if (s.disk_gib > 0)
        out +=
            fmt::format(" \\\n    --data-disk-sizes-gb {} --storage-sku os=Premium_LRS 0={}", s.disk_gib, s.disk_type);
    out += az_spot(s) + "\n";
    if (s.driver_extension)
        out += fmt::format(
            "az vmss extension set -g \"$group\" --vmss-name {} -n NvidiaGpuDriverLinux --publisher "
            "Microsoft.HpcCompute --version 1.6\n",
            s.name);
    if (s.least > 0) out += az_set_scaling(s);
    return out;
}

// By Azure's naming: an r among the small letters behind the number of vCPUs (learn.microsoft.com, VM sizes naming).
bool has_rdma(std::string_view size) {
    const std::size_t digit = size.find_first_of("0123456789", size.find('_') + 1);
    if (digit == std::string_view::npos) return false;
    const std::string_view features = size.substr(digit, size.find('_', digit) - digit);
    return features.find('r') != std::string_view::npos;
}

// Before the cluster, since it takes minutes once in a subscription.
std::string az_infiniband_feature() {
    return "# Without it the nodes of the pool may land on different InfiniBand networks (learn.microsoft.com, AKS).\n"
           "feature() { az feature \"$1\" --namespace Microsoft.ContainerService --name AKSInfinibandSupport --query "
           "properties.state -o tsv; }\nfeature register\n"
           "for _ in {1..60}; do [ \"$(feature show)\" != Registered ] || break; sleep 30; done\n"
           "[ \"$(feature show)\" = Registered ]\naz provider register -n Microsoft.ContainerService --wait\n";
}

// Measurements of a bundle have a workspace of their own, which what scales may then read.
std::string az_scaling_before(const AzureShape& s) {
    return fmt::format(
        "# Where what is measured is kept.\naz monitor account create -g \"$group\" -n {0}-metrics -l \"$location\"\n"
        "monitor=$(az monitor account show -g \"$group\" -n {0}-metrics --query id -o tsv)\n",
        s.name);
}

// KEDA asks Managed Prometheus as an identity that may read measurements and nothing else.
std::string az_scaling_after(const AzureShape& s) {
    return fmt::format(
        "# Replicas follow their load: KEDA reads it as an identity of its own\n"
        "# (learn.microsoft.com, Integrate KEDA with Managed Prometheus, recalled).\n"
        "az identity create -g \"$group\" -n {0}-scaler\n"
        "az identity federated-credential create -g \"$group\" --identity-name {0}-scaler -n keda \\\n"
        "    --subject system:serviceaccount:kube-system:keda-operator --audiences api://AzureADTokenExchange \\\n"
        "    --issuer \"$(az aks show -g \"$group\" -n {0} --query oidcIssuerProfile.issuerUrl -o tsv)\"\n"
        "az role assignment create --role 'Monitoring Data Reader' --scope \"$monitor\" \\\n"
        "    --assignee-principal-type ServicePrincipal \\\n"
        "    --assignee-object-id \"$(az identity show -g \"$group\" -n {0}-scaler --query principalId -o tsv)\"\n"
        "# The operator began before its identity was there.\n"
        "kubectl -n kube-system rollout restart deployment keda-operator\n"
        "endpoint=$(az monitor account show -g \"$group\" -n {0}-metrics --query metrics.prometheusQueryEndpoint -o "
        "tsv)\n"
        "client=$(az identity show -g \"$group\" -n {0}-scaler --query clientId -o tsv)\n"
        "sed \"s|QUERY_ENDPOINT|$endpoint|; s|CLIENT_ID|$client|\" \"$here/scaling.yaml\" | kubectl apply -f -\n",
        s.name);
}

// `scaled`: the bundle's service, whose replicas follow their load.
std::string az_cluster(const Deployment& d, const AzureShape& s, bool scaled) {
    const bool blobs = !blob_weights(d, s.name).empty() || checkpoint_claim(d).find("azureblob") != std::string::npos;
    std::string out;
    if (s.guarded) out += az_network(s);
    if (s.infiniband) out += az_infiniband_feature();
    if (scaled) out += az_scaling_before(s);
    out += s.guarded
               ? "# The cluster; its system pool runs what is no work. The API server has no public address either: "
                 "kubectl\n# is for machines of the network.\n"
               : "# 3. The cluster; its system pool runs what is no work.\n";
    out += "# GRAFANA: id of an Azure Managed Grafana, which then shows what is measured.\n";
    out += fmt::format(
        "az aks create -g \"$group\" -n {} --node-count 1 --node-vm-size {} --generate-ssh-keys "
        "--enable-managed-identity \\\n"
        "    --enable-azure-monitor-metrics ${{GRAFANA:+--grafana-resource-id \"$GRAFANA\"}}{} \\\n"
        "    --network-plugin azure --network-plugin-mode overlay --network-dataplane cilium",
        s.name, kSystemSize, blobs ? " --enable-blob-driver" : "");
    if (scaled)
        out +=
            " \\\n    --azure-monitor-workspace-resource-id \"$monitor\" --enable-keda --enable-oidc-issuer "
            "--enable-workload-identity";
    // Its nodes may pull from the registry of the work's image, without a secret.
    if (const std::string registry = d.image.empty() ? "" : registry_of(d.image); registry.ends_with(".azurecr.io"))
        out += fmt::format(" \\\n    --attach-acr {}", registry.substr(0, registry.find('.')));
    if (s.guarded)
        out += fmt::format(
            " \\\n    --enable-private-cluster --outbound-type userDefinedRouting \\\n"
            "    --service-cidr 10.30.0.0/16 --dns-service-ip 10.30.0.10 \\\n"
            "    --vnet-subnet-id \"$(az network vnet subnet show -g \"$group\" --vnet-name {}-net -n work --query id "
            "-o "
            "tsv)\"\n",
            s.name);
    else
        out += " \\\n    --api-server-authorized-ip-ranges \"$from\"\n";
    if (s.guarded)
        out += "# Who changed what in it.\n" +
               az_audited(fmt::format("az aks show -g \"$group\" -n {}", s.name),
                          "{\"category\": \"kube-audit-admin\", \"enabled\": true}, {\"category\": \"guard\", "
                          "\"enabled\": true}");
    if (s.guarded && blobs)
        out += fmt::format(
            "# The storage driver makes the endpoint of its account in this network, as the cluster.\n"
            "az role assignment create --role Contributor --scope \"$(az group show -n \"$group\" --query id -o tsv)\" "
            "\\\n    --assignee-principal-type ServicePrincipal \\\n"
            "    --assignee-object-id \"$(az aks show -g \"$group\" -n {} --query identity.principalId -o tsv)\"\n",
            s.name);
    out += az_neighbours(s);
    if (!s.infiniband && has_rdma(s.size))
        out += "# stoker: ignore[NET016] reason=\"no replica or job spans nodes, so that InfiniBand is not used\"\n";
    for (const AzureShape& pool : azure_pools(d)) {
        out += pool.stays ? fmt::format("# 4. The nodes that stay: as many, always.\n# {}\n", kPoolStays)
                          : std::string("# 4. The pool: from none to what the plan counts on. Idle GPU nodes go.\n");
        out += fmt::format("az aks nodepool add -g \"$group\" --cluster-name {} -n {} --node-vm-size {}", s.name,
                           pool.pool, s.size);
        if (!pool.stays)
            out += fmt::format(" --enable-cluster-autoscaler \\\n    --min-count 0 --max-count {}", pool.count);
        out += fmt::format("{} --node-count {}", pool.stays ? " \\\n   " : "",
                           d.kind == WorkloadKind::inference ? pool.count : 0);
        if (s.neighbours)
            out += fmt::format(" \\\n    --ppg \"$(az ppg show -g \"$group\" -n {}-ppg --query id -o tsv)\"", s.name);
        if (s.gpu) out += " \\\n    --node-taints sku=gpu:NoSchedule";
        if (s.gpu && d.nodes.gpu_vendor != "NVIDIA") out += " --gpu-driver none";
        if (pool.spot) out += " \\\n    --priority Spot --eviction-policy Delete --spot-max-price -1";
        out += "\n";
    }
    if (d.front && !d.front->machine.empty())
        out += fmt::format(
            "# What stands before the model has a pool without GPUs, and grows apart from it.\n"
            "az aks nodepool add -g \"$group\" --cluster-name {} -n {} --node-vm-size {} --enable-cluster-autoscaler "
            "\\\n"
            "    --min-count {} --max-count {} --node-count {}\n",
            s.name, kFrontPool, d.front->machine, d.front->least, d.front->most_machines, d.front->machines);
    out += fmt::format("az aks get-credentials -g \"$group\" -n {}\n", s.name);
    if (const std::string amd = amd_operator_hint(d); !amd.empty()) out += indented(amd + "\n", "# ");
    if (needs_device_plugin(d))
        out +=
            "# Without the device plug-in the nodes offer no nvidia.com/gpu.\nkubectl apply -f "
            "\"$here/device-plugin.yaml\"\n";
    if (needs_infiniband_plugin(d))
        out += why("InfiniBand in pods: without it they wait for rdma/shared_ib; helm has to be there",
                   "Azure/aks-rdma-infiniband, configs, 2025-12") +
               network_operator_words() + "\nkubectl apply -f \"$here/infiniband.yaml\"\n";
    return out;
}

std::vector<FileToWrite> az_script_files(const Deployment& d, bool scaled) {
    const AzureShape s = azure_shape(d);
    std::string out = "#!/bin/bash\n" + head_comment(d);
    const bool keyed = s.kind != AzureKind::cluster;
    const std::string call =
        fmt::format("{}FROM=203.0.113.0/24 ./{}-az.sh", keyed ? "SSH_KEY=~/.ssh/id_ed25519.pub " : "", d.name);
    out += fmt::format("#   {}          # FROM: where you come from\n#   {}{}# takes everything away again\n", call,
                       fmt::format("./{}-az.sh clean", d.name),
                       std::string(call.size() > d.name.size() + 14 ? call.size() - d.name.size() - 4 : 2, ' '));
    out += std::string("set -eu\n\n") + "# 0. What differs from one place to another.\n" +
           (keyed || needs_device_plugin(d) || needs_infiniband_plugin(d) ? "here=$(cd \"$(dirname \"$0\")\" && pwd)\n"
                                                                          : "");
    out += fmt::format("group=${{GROUP:-{}-rg}}\nlocation=${{LOCATION:-{}}}\n", s.name, s.location);
    out += "if [ \"${1:-}\" = clean ]; then exec az group delete -n \"$group\" --yes; fi  # 6.\n";
    if (keyed || !s.guarded)
        out += "from=${FROM:?CIDR of the addresses that may reach it}\n";
    else
        out += "from=${FROM:?CIDR of the addresses that may reach its machines}\n";
    if (keyed) out += "key=${SSH_KEY:?file of your public SSH key}\n";
    out += "\n";
    for (const AzureShape& pool : azure_pools(d)) out += az_quota(pool);
    out += az_group(s);
    std::vector<FileToWrite> files;
    if (s.kind == AzureKind::cluster) {
        out += az_cluster(d, s, scaled);
        for (FileToWrite& file : cluster_plugin_files(d)) files.push_back(std::move(file));
    } else {
        out += az_network(s) + (s.kind == AzureKind::machine ? az_machine(s) : az_scale_set(s));
        files.push_back({"cloud-init.yaml", cloud_config(d)});
    }
    files.insert(files.begin(), {d.name + "-az.sh", out, 0755});
    return files;
}

}  // namespace

std::vector<FileToWrite> az_files(const Deployment& d) {
    return az_script_files(d, false);
}

std::string aks_refusal(const Deployment& d) {
    if (std::string why = azure_refusal(d); !why.empty()) return why;
    return kubernetes_refusal(d);
}

// The whole of it: cluster, what measures, and the work as the kustomize tree with its weights on Blob.
std::vector<FileToWrite> aks_files(const Deployment& given) {
    Deployment d = given;
    d.orchestrator = Orchestrator::aks;
    const std::string scaling = azure_scaling(d);
    std::vector<FileToWrite> files = az_script_files(d, !scaling.empty());
    files.front().content += leader_worker_set_words(d) +
                             "# The work, and what measures it; overlays/test is the same with less.\n"
                             "kubectl apply -k \"$here/overlays/prod\"\nkubectl apply -f \"$here/monitoring.yaml\"\n";
    if (!scaling.empty()) files.front().content += az_scaling_after(azure_shape(d));
    if (files.front().content.find("here=$(cd") == std::string::npos) {
        std::string& script = files.front().content;
        script.insert(script.find("group=${GROUP"), "here=$(cd \"$(dirname \"$0\")\" && pwd)\n");
    }
    files.push_back({"monitoring.yaml", azure_monitoring(d)});
    if (!scaling.empty()) files.push_back({"scaling.yaml", scaling});
    const std::string name = dns_label(d.name, 50);
    // The autoscaler of the plain manifests wants an adapter that nobody puts in here: KEDA is the one.
    KustomizeParts parts{.more = {}, .patches = azure_service_patches(d, name), .autoscaler = false};
    if (std::string weights = blob_weights(d, name); !weights.empty())
        parts.more.push_back({"weights.yaml", std::move(weights)});
    for (FileToWrite& file : kustomize_tree(d, parts)) files.push_back(std::move(file));
    return files;
}

std::string cloud_init_refusal(const Deployment& d) {
    if (d.nodes.cloud == "this-machine") return "it is for machines that are still to be started, and this one runs";
    if (d.nodes.os == "windows") return "cloud-init sets up Linux, and where.os is windows";
    if (d.nodes.cloud == "on-prem") return on_prem_refusal(d);
    if (d.nodes.cloud == "azure" && azure_shape(d).kind == AzureKind::cluster)
        return "the machines are nodes of AKS, which boots them its own way; aks and kubernetes say it";
    return "";
}

std::vector<FileToWrite> cloud_init_files(const Deployment& d) {
    std::vector<FileToWrite> files{{"cloud-init.yaml", cloud_config(d)}};
    if (d.nodes.cloud == "azure") files.push_back({d.name + "-image.sh", custom_image_script(d), 0755});
    return files;
}

}  // namespace stoker

// slurm-cloud: nodes that Slurm itself starts and stops on Azure: the scale set, the fragments of slurm.conf, gres.conf
// and topology.conf, and the programs that resume and suspend its machines. CycleCloud does this by itself; here it is
// for a Slurm of one's own.
#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "deploy/render/azure_shape.h"
#include "deploy/render/first_boot.h"
#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

// Azure makes the host names of a Uniform set: this prefix and six digits in base 36 (learn.microsoft.com, VM instance
// ids from scale set VM names).
std::string host_prefix(const AzureShape& s) {
    return s.name.substr(0, 9);
}

std::string node_list(const Deployment& d, const AzureShape& s) {
    return d.nodes.count > 1 ? fmt::format("{}-[0-{}]", s.name, d.nodes.count - 1) : s.name + "-0";
}

std::string gres_type(const Deployment& d) {
    const std::string gpu = lower(d.nodes.gpu);
    return gpu.substr(0, gpu.find('-'));
}

// What both programs begin with: the numbers of the nodes that Slurm names.
std::string program_head(const Deployment& d, const AzureShape& s, const char* what) {
    return "#!/bin/bash\n" + head_comment(d) +
           fmt::format(
               "# {}: slurmctld calls it with a list of nodes. The machine it runs on signs in as itself\n"
               "# (az login --identity), with the role Virtual Machine Contributor on the group.\n"
               "set -eu\n\ngroup=${{GROUP:-{}-rg}}\nnodes=$(scontrol show hostnames \"${{1:?list of "
               "nodes}}\")\nids=()\n"
               "for node in $nodes; do ids+=(\"${{node##*-}}\"); done\n",
               what, s.name);
}

std::string resume_script(const Deployment& d, const AzureShape& s) {
    return program_head(d, s, "ResumeProgram") +
           fmt::format(
               "az vmss start -g \"$group\" -n {0} --instance-ids \"${{ids[@]}}\" --no-wait\n\n"
               "# Azure's name of a machine: a prefix and its number in base 36, six digits wide.\n"
               "digits=0123456789abcdefghijklmnopqrstuvwxyz\n"
               "for node in $nodes; do\n    left=${{node##*-}} text=\n"
               "    for _ in 1 2 3 4 5 6; do\n        text=${{digits:left % 36:1}}$text left=$((left / 36))\n    done\n"
               "    scontrol update nodename=\"$node\" nodeaddr=\"{1}$text\" nodehostname=\"{1}$text\"\ndone\n",
               s.name, host_prefix(s));
}

std::string suspend_script(const Deployment& d, const AzureShape& s) {
    return program_head(d, s, "SuspendProgram") +
           fmt::format(
               "# Deallocated: no longer paid for, and its disk stays.\n"
               "az vmss deallocate -g \"$group\" -n {} --instance-ids \"${{ids[@]}}\" --no-wait\n",
               s.name);
}

std::string fragment(const Deployment& d, const AzureShape& s) {
    const int gpus = static_cast<int>(std::ceil(d.nodes.gpus));
    std::string out = head_comment(d) + "# For slurm.conf.\n";
    if (gpus > 0) out += "GresTypes=gpu\n";
    out +=
        "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory\nReturnToService=2\n"
        "ResumeProgram=/etc/slurm/resume.sh\nSuspendProgram=/etc/slurm/suspend.sh\n";
    out +=
        why("seconds until a machine that was asked for has to be there, until one that was given back is gone, and "
            "that one may be idle",
            "Azure/cyclecloud-slurm at 049346f, 2026-07-15");
    out += "ResumeTimeout=1800\nSuspendTimeout=600\nSuspendTime=300\n";
    out +=
        "# Addresses are known when a machine has started, and not kept from one start to the next.\n"
        "CommunicationParameters=NoAddrCache\nTreeWidth=65533\n";
    const auto memory_mib = static_cast<std::int64_t>(d.nodes.memory_bytes * 0.95 / (1LL << 20));
    if (d.nodes.count > 1) out += "TopologyPlugin=topology/tree\n";
    out += fmt::format("# Memory: five per cent are the system's.\nNodeName={} CPUs={} RealMemory={}{} State=CLOUD\n",
                       node_list(d, s), d.nodes.vcpus, memory_mib,
                       gpus > 0 ? fmt::format(" Gres=gpu:{}:{}", gres_type(d), gpus) : "");
    return out + fmt::format("PartitionName={} Nodes={} Default=YES MaxTime=UNLIMITED State=UP\n",
                             gpus > 0 ? "gpu" : "cpu", node_list(d, s));
}

std::string set_script(const Deployment& d, const AzureShape& s) {
    std::string out = "#!/bin/bash\n" + head_comment(d);
    out += fmt::format(
        "#   SSH_KEY=~/.ssh/id_ed25519.pub SUBNET=ID ./{}-nodes.sh   # SUBNET: where slurmctld reaches its nodes\n",
        d.name);
    out += fmt::format(
        "set -eu\n\nhere=$(cd \"$(dirname \"$0\")\" && pwd)\ngroup=${{GROUP:-{}-rg}}\nlocation=${{LOCATION:-{}}}\n"
        "subnet=${{SUBNET:?id of the subnet}}\nkey=${{SSH_KEY:?file of your public SSH key}}\n\n"
        "az group create -n \"$group\" -l \"$location\" \\\n    --tags {}\n",
        s.name, s.location, az_tags(s.name));
    out += s.image_comment;
    out += why(
        "numbers of a Uniform set go up from 0 without a gap when none is made beyond the number, so that node N is "
        "machine N; one placement group is one InfiniBand network",
        "learn.microsoft.com, Scale sets");
    if (d.training && s.count > 1 && !s.infiniband)
        out += "# stoker: ignore[SKU006, NET007] reason=\"the plan counts on Ethernet: the gradients are small\"\n";
    if (asks_for_a_larger_group(s)) out += fmt::format("# {}\n", kMoreByRequest);
    out += fmt::format(
        "az vmss create -g \"$group\" -n {0} --vm-sku {1} --instance-count {2} --image {3}:{4}:{5}:{6} \\\n"
        "    --orchestration-mode Uniform --single-placement-group true --disable-overprovision "
        "--computer-name-prefix {7} \\\n"
        "    --subnet \"$subnet\" --lb '' --accelerated-networking true --upgrade-policy-mode Manual \\\n"
        "    --security-type Standard --assign-identity '[system]' --authentication-type ssh --admin-username "
        "azureuser \\\n"
        "    --ssh-key-values \"$key\" --custom-data \"$here/cloud-init.yaml\"{8}\n",
        s.name, s.size, s.count, s.publisher, s.offer, s.sku, s.version, host_prefix(s),
        s.spot ? " \\\n    --priority Spot --eviction-policy Deallocate --max-price -1" : "");
    return out +
           fmt::format("# Slurm starts those that a job needs.\naz vmss deallocate -g \"$group\" -n {} --no-wait\n",
                       s.name);
}

}  // namespace

std::string slurm_cloud_refusal(const Deployment& d) {
    if (std::string why = azure_refusal(d); !why.empty()) return why;
    return slurm_refusal(d);
}

std::vector<FileToWrite> slurm_cloud_files(const Deployment& d) {
    const AzureShape s = azure_shape(d);
    const int gpus = static_cast<int>(std::ceil(d.nodes.gpus));
    // The set has no data disk: its nodes share what the site mounts.
    Deployment plain = d;
    plain.nodes.disk.reset();
    std::vector<FileToWrite> files{{d.name + "-nodes.sh", set_script(d, s), 0755},
                                   {"cloud-init.yaml", cloud_config(plain)},
                                   {"slurm-cloud.conf", fragment(d, s)},
                                   {"resume.sh", resume_script(d, s), 0755},
                                   {"suspend.sh", suspend_script(d, s), 0755}};
    if (gpus > 0)
        files.push_back(
            {"gres.conf",
             head_comment(d) + fmt::format("NodeName={} Name=gpu Type={} File=/dev/{}\n", node_list(d, s), gres_type(d),
                                           d.nodes.gpu_vendor == "AMD" ? fmt::format("dri/renderD[128-{}]", 127 + gpus)
                                           : gpus > 1                  ? fmt::format("nvidia[0-{}]", gpus - 1)
                                                                       : "nvidia0")});
    if (d.nodes.count > 1)
        files.push_back(
            {"topology.conf", head_comment(d) + fmt::format("# One scale set is one switch of the tree to its jobs.\n"
                                                            "SwitchName={} Nodes={}\n",
                                                            s.name, node_list(d, s))});
    for (FileToWrite& file : slurm_files(d)) files.push_back(std::move(file));
    return files;
}

}  // namespace stoker

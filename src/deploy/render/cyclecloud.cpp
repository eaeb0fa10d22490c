// cyclecloud: parameters of CycleCloud's Slurm cluster, those of CycleCloud Workspace for Slurm where there is no
// CycleCloud yet, and the batch script.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "deploy/render/azure_shape.h"
#include "deploy/render/recipes.h"
#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

// Small machines that compute nothing.
constexpr std::string_view kWorkspaceMachine = "Standard_D4as_v5";

// The workspace's GPU partition has no spot, and its other one no InfiniBand that is sure to join the nodes.
std::string workspace_refusal(const AzureShape& s) {
    if (s.spot && s.gpu) return "its GPU partition knows no spot";
    return "";
}

Json workspace_parameters(const Deployment& d, const AzureShape& s) {
    const std::string image = fmt::format("{}:{}:{}:{}", s.publisher, s.offer, s.sku, s.version);
    const std::string plain = vm_image("containers of Batch").urn;
    Json out = Json::object();
    const auto set = [&](const char* name, Json value) {
        out.set(name, Json::object().set("value", std::move(value)));
    };
    // Without a partition of its own a size has none of its nodes.
    const auto partition = [&](bool ours, bool spot) {
        Json each = Json::object()
                        .set("sku", ours ? s.size : std::string(kWorkspaceMachine))
                        .set("osImage", ours ? image : plain)
                        .set("maxNodes", ours ? s.count : 1);
        if (spot) each.set("useSpot", s.spot && ours);
        return each;
    };
    const auto nfs = [](int gib) { return Json::object().set("type", "nfs-new").set("nfsCapacityInGb", gib); };
    set("clusterName", Json(s.name));
    set("adminUsername", Json("azureuser"));
    set("ccVMName", Json(s.name.substr(0, 50) + "-cyclecloud"));
    set("ccVMSize", Json(std::string(kWorkspaceMachine)));
    // Bastion is the way in: no machine has a public address. What they fetch leaves by the NAT gateway.
    set("network", Json::object()
                       .set("type", "new")
                       .set("addressSpace", "10.20.0.0/20")
                       .set("bastion", true)
                       .set("createNatGateway", true));
    set("storagePrivateDnsZone", Json::object().set("type", "new"));
    set("schedFilesystem", nfs(128));
    // Room for the checkpoints that are kept, and as much again.
    const double kept = d.checkpoint_bytes * (d.checkpoint.keep + 1) * 2 / (1LL << 30);
    set("sharedFilesystem", nfs(std::max(1024, static_cast<int>(std::ceil(kept)))));
    set("slurmSettings", Json::object()
                             .set("startCluster", true)
                             .set("version", release_in_use("slurm of cyclecloud-slurm-workspace").release)
                             .set("healthCheckEnabled", true));
    set("schedulerNode", Json::object().set("sku", std::string(kWorkspaceMachine)).set("osImage", plain));
    set("loginNodes", Json::object()
                          .set("sku", std::string(kWorkspaceMachine))
                          .set("osImage", plain)
                          .set("initialNodes", 1)
                          .set("maxNodes", 1));
    set("htc", partition(!s.gpu, true));
    set("hpc", partition(false, false));
    set("gpu", partition(s.gpu, false));
    set("tags", Json::object());
    return Json::object()
        .set("$schema", "https://schema.management.azure.com/schemas/2019-04-01/deploymentParameters.json#")
        .set("contentVersion", "1.0.0.0")
        .set("parameters", std::move(out));
}

std::string workspace_script(const Deployment& d, const AzureShape& s) {
    return "#!/bin/bash\n" + head_comment(d) +
           fmt::format(
               "# Where there is no CycleCloud yet: Azure CycleCloud Workspace for Slurm brings it, with scheduler, "
               "login node\n"
               "# and shared folders. az asks for the password of CycleCloud's administrator; the terms of its image "
               "are\n"
               "# yours to accept.\n"
               "#   SSH_KEY=~/.ssh/id_ed25519.pub ./{0}-workspace.sh acceptMarketplaceTerms=true\nset -eu\n\n"
               "here=$(cd \"$(dirname \"$0\")\" && pwd)\ngroup=${{GROUP:-{1}-rg}}\nlocation=${{LOCATION:-{2}}}\n"
               "key=${{SSH_KEY:?file of your public SSH key}}\n\n"
               "[ -d \"$here/workspace-{3}\" ] || git clone --quiet --depth 1 --branch {3} \\\n"
               "    https://github.com/Azure/cyclecloud-slurm-workspace.git \"$here/workspace-{3}\"\n"
               "az deployment sub create -n {1} -l \"$location\" -f \"$here/workspace-{3}/bicep/mainTemplate.bicep\" "
               "\\\n"
               "    -p \"$here/workspace.json\" -p location=\"$location\" resourceGroup=\"$group\" projectVersion={3} "
               "\\\n"
               "    key=\"{{\\\"type\\\": \\\"entered\\\", \\\"value\\\": \\\"$(cat \"$key\")\\\"}}\" \"$@\"\n",
               d.name, s.name, s.location, release_in_use("cyclecloud-slurm-workspace").release);
}

}  // namespace

std::string cyclecloud_refusal(const Deployment& d) {
    if (std::string why = azure_refusal(d); !why.empty()) return why;
    return slurm_refusal(d);
}

std::vector<FileToWrite> cyclecloud_files(const Deployment& d) {
    const AzureShape s = azure_shape(d);
    const int cores = d.nodes.vcpus * d.nodes.count;
    Json parameters = Json::object().set("Region", s.location).set("SchedulerMachineType", std::string(kSystemSize));
    if (s.gpu)
        parameters.set("GPUMachineType", s.size).set("MaxGPUExecuteCoreCount", cores).set("GPUUseLowPrio", s.spot);
    else
        parameters.set("HTCMachineType", s.size).set("MaxHTCExecuteCoreCount", cores).set("HTCUseLowPrio", s.spot);
    if (s.gpu) parameters.set("GPUImageName", fmt::format("{}:{}:{}:{}", s.publisher, s.offer, s.sku, s.version));
    // What a person reaches is the scheduler, over the network that the subnet belongs to.
    if (s.guarded) parameters.set("UsePublicNetwork", false).set("ExecuteNodesPublic", false);
    std::string out = "#!/bin/bash\n" + head_comment(d);
    out += fmt::format("#   CREDENTIALS=NAME SUBNET=GROUP/NETWORK/SUBNET ./{}-cyclecloud.sh\n", d.name);
    out +=
        "# Parameters of Azure/cyclecloud-slurm's template (read at 049346f, 2026-07-15).\nset -eu\n\n"
        "here=$(cd \"$(dirname \"$0\")\" && pwd)\n";
    if (s.infiniband)
        out +=
            "# The template keeps the GPU nodes of a job in one scale set: one scale set is one InfiniBand network.\n";
    out += fmt::format(
        "cyclecloud create_cluster slurm {0} -p \"$here/parameters.json\" \\\n"
        "    -P Credentials=\"${{CREDENTIALS:?name in CycleCloud}}\" -P "
        "SubnetId=\"${{SUBNET:?group/network/subnet}}\"\n"
        "cyclecloud start_cluster {0}\n",
        s.name);
    std::vector<FileToWrite> files{{d.name + "-cyclecloud.sh", out, 0755},
                                   {"parameters.json", parameters.dump(2) + "\n"}};
    if (const std::string why_not = workspace_refusal(s); why_not.empty()) {
        files.push_back({d.name + "-workspace.sh", workspace_script(d, s), 0755});
        files.push_back({"workspace.json", workspace_parameters(d, s).dump(2) + "\n"});
    } else {
        std::string& script = files.front().content;
        script.insert(script.find("set -eu"),
                      fmt::format("# CycleCloud Workspace for Slurm is not rendered: {}.\n", why_not));
    }
    for (FileToWrite& file : slurm_files(d)) {
        // The template's partition for these nodes.
        const std::size_t at = file.content.find("#SBATCH --nodes=");
        file.content.insert(at, s.gpu ? "#SBATCH --partition=gpu\n" : "#SBATCH --partition=htc\n");
        files.push_back(std::move(file));
    }
    return files;
}

}  // namespace stoker

// azure-ml, batch: what Azure's own job services read.
#include <fmt/format.h>

#include <cmath>

#include "base/json.h"
#include "base/text.h"
#include "deploy/image_name.h"
#include "deploy/render/azure_shape.h"
#include "deploy/render/engine_flags.h"
#include "deploy/render/recipes.h"
#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

// A container for a service that runs no image of its own.
std::string container_of(const Deployment& d) {
    if (!d.image.empty()) return d.image;
    const std::string engine = d.serving ? engine_of(d) : "pytorch";
    const auto image = engine_image(engine.empty() ? "pytorch" : engine, d);
    return image ? image->image : "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04:20251001.v1";
}

// Of a guarded workspace: its nodes lie in the network that the workspace has for itself.
constexpr std::string_view kNodeInside =
    "# The data is sensitive: no node has a public address.\nenable_node_public_ip: false\n";

// An endpoint in a network of one's own for each part of a service of Azure, and the zones in which its names are those
// addresses. Commands of a script that knows `group` and `subnet`.
std::string private_links(const std::string& name, std::string_view service_id, const std::vector<std::string>& parts,
                          const std::vector<std::string>& zones) {
    std::string out;
    for (const std::string& part : parts)
        out += fmt::format(
            "az network private-endpoint create -g \"$group\" -n {0}-{1} --subnet \"$subnet\" --connection-name "
            "{0}-{1} "
            "\\\n    --group-id {1} --private-connection-resource-id {2}\n",
            name, part, service_id);
    out += "# Within the network its names mean these addresses.\n";
    for (const std::string& zone : zones)
        out += fmt::format(
            "az network private-dns zone create -g \"$group\" -n {0}\n"
            "az network private-dns link vnet create -g \"$group\" -z {0} -n {1} -v \"${{subnet%/subnets/*}}\" -e "
            "false\n",
            zone, name);
    for (const std::string& part : parts)
        for (const std::string& zone : zones)
            out += fmt::format(
                "az network private-endpoint dns-zone-group {} -g \"$group\" --endpoint-name {}-{} -n names "
                "--private-dns-zone {} --zone-name {}\n",
                zone == zones.front() ? "create" : "add", name, part, zone, replace_all(zone, ".", "-"));
    return out;
}

// A workspace that nobody reaches from the internet, whose nodes reach the names that the plan knows and nothing else.
std::string ml_workspace(const Deployment& d, const AzureShape& s) {
    std::string out = head_comment(d);
    out += fmt::format(
        "$schema: https://azuremlschemas.azureedge.net/latest/workspace.schema.json\nname: {}\nlocation: {}\n", s.name,
        s.location);
    out +=
        "# Storage, key vault and registry are reached by private endpoints of the managed network, the workspace by\n"
        "# yours (private-link.sh).\npublic_network_access: Disabled\nmanaged_network:\n"
        "  isolation_mode: allow_only_approved_outbound\n"
        "  # Packages, images and weights; everything else stays inside.\n  outbound_rules:\n";
    int number = 0;
    for (const std::string& name : s.reached)
        out += fmt::format("  - {{name: out-{}, type: fqdn, destination: {}}}\n", number++, json_text(name));
    return out +
           "# No key of the storage is handed out: who reads it signs in.\nsystem_datastores_auth_mode: identity\n"
           "# Microsoft keeps less of what is diagnosed (learn.microsoft.com, Data encryption with Azure ML).\n"
           "hbi_workspace: true\n";
}

std::string ml_private_link(const Deployment& d, const AzureShape& s) {
    std::string out = "#!/bin/bash\n" + head_comment(d);
    out +=
        "#   GROUP=NAME SUBNET=ID ./private-link.sh   # SUBNET: of the network from which people reach the workspace\n"
        "set -eu\n\nhere=$(cd \"$(dirname \"$0\")\" && pwd)\ngroup=${GROUP:?resource group}\nsubnet=${SUBNET:?id of "
        "the "
        "subnet}\n\n"
        "az extension add -n ml --upgrade\naz ml workspace create -g \"$group\" -f \"$here/workspace.yaml\"\n";
    out += fmt::format(
        "# The managed network, before the first node would wait for it.\n"
        "az ml workspace provision-network -g \"$group\" -n {0}\n"
        "workspace=$(az ml workspace show -g \"$group\" -n {0} --query id -o tsv)\n",
        s.name);
    return out + private_links(s.name, "\"$workspace\"", {"amlworkspace"},
                               {"privatelink.api.azureml.ms", "privatelink.notebooks.azure.net"});
}

std::string ml_compute(const Deployment& d) {
    const AzureShape s = azure_shape(d);
    std::string out = "$schema: https://azuremlschemas.azureedge.net/latest/amlCompute.schema.json\n";
    out +=
        fmt::format("name: {}\ntype: amlcompute\nsize: {}\nlocation: {}\n", s.name.substr(0, 24), s.size, s.location);
    out += "tier: dedicated\n";
    out += fmt::format(
        "# Idle nodes go, down to none.\nmin_instances: 0\nmax_instances: {}\nidle_time_before_scale_down: 300\n",
        s.count);
    if (s.guarded) out += kNodeInside;
    return out + "identity: {type: system_assigned}\n";
}

std::string ml_instance(const Deployment& d) {
    const AzureShape s = azure_shape(d);
    std::string out = fmt::format(
        "{}#   az ml compute create -f {}.yaml\n"
        "$schema: https://azuremlschemas.azureedge.net/latest/computeInstance.schema.json\n"
        "name: {}\ntype: computeinstance\nsize: {}\nlocation: {}\n"
        "# A forgotten notebook costs as much as a busy one.\nidle_time_before_shutdown_minutes: "
        "60\nssh_public_access_enabled: false\n",
        head_comment(d), d.name, s.name.substr(0, 24), s.size, s.location);
    if (s.guarded) out += kNodeInside;
    return out;
}

std::string ml_job(const Deployment& d) {
    const AzureShape s = azure_shape(d);
    std::string out = head_comment(d);
    out += fmt::format("#   az ml compute create -f compute.yaml && az ml job create -f {}.yaml\n", d.name);
    out += "$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json\n";
    out += fmt::format("type: command\ndisplay_name: {}\nexperiment_name: {}\n", yaml_word(d.name), s.name);
    out += "# The folder that is sent: the program and what it reads.\ncode: .\n";
    out += fmt::format("command: >-\n  {}\n", program_words(d));
    if (d.image.empty()) out += "# The file names no image: this is the published one.\n";
    out += fmt::format("environment: {{image: {}}}\ncompute: azureml:{}\n", yaml_word(container_of(d)),
                       s.name.substr(0, 24));
    out += fmt::format(
        "resources:\n  instance_count: {}\n  # NCCL and data loaders share memory between processes; the default is 2 "
        "GB.\n"
        "  shm_size: {}g\n",
        d.training ? d.nodes.count : 1,
        std::max<std::int64_t>(2, static_cast<std::int64_t>(d.nodes.memory_bytes / 4e9)));
    if (d.training)
        out += fmt::format(
            "distribution:\n  # Azure ML starts the ranks and says RANK, WORLD_SIZE and MASTER_ADDR to each.\n"
            "  type: pytorch\n  process_count_per_instance: {}\n",
            d.ranks.per_node);
    out += "environment_variables:\n";
    for (const auto& [key, value] : work_environment(d))
        out += indented(reason_of(d, "environment." + key), "  ") + fmt::format("  {}: {}\n", key, json_text(value));
    if (!d.checkpoint.folder.empty())
        out +=
            "  # What lies under outputs/ is kept, also when the node is taken back.\n  STOKER_CHECKPOINT_DIR: "
            "./outputs/checkpoints\n";
    if (d.walltime_s > 0) out += reason_of(d, "walltime_s") + fmt::format("limits: {{timeout: {}}}\n", d.walltime_s);
    // The variable stands once.
    const std::size_t first = out.find("  STOKER_CHECKPOINT_DIR: \"");
    if (first != std::string::npos) out.erase(first, out.find('\n', first) + 1 - first);
    return out;
}

// A pool of containers takes an image with a container runtime inside, and its node agent is built for one release.
constexpr std::string_view kSubnetWord = "SUBNET";
constexpr std::string_view kBatchOffer = "ubuntu-hpc", kBatchAgent = "batch.node.ubuntu 22.04";

Json batch_pool(const Deployment& d) {
    AzureShape s = azure_shape(d);
    if (s.offer != kBatchOffer || !s.sku.starts_with("2204")) {
        const VmImage image = vm_image("containers of Batch");
        const auto parts = split(image.urn, ':');
        if (parts.size() == 4) s.publisher = parts[0], s.offer = parts[1], s.sku = parts[2], s.version = parts[3];
    }
    // One sample a minute over five, so that a pool grows at once and shrinks when nothing came for a while.
    const std::string kind = s.spot ? "$TargetLowPriorityNodes" : "$TargetDedicatedNodes";
    const int slots = std::max(1, d.ranks.per_node);
    const std::string formula = fmt::format(
        "pending = $PendingTasks.GetSamplePercent(5 * TimeInterval_Minute) < 70 ? max(0, $PendingTasks.GetSample(1)) : "
        "max($PendingTasks.GetSample(1), avg($PendingTasks.GetSample(5 * TimeInterval_Minute))); "
        "{} = min({}, {}); $NodeDeallocationOption = taskcompletion;",
        kind, s.count,
        // Nodes for those tasks that they hold together: one for each task would be paid for and idle.
        slots > 1 ? fmt::format("(pending + {}) / {}", slots - 1, slots) : "pending");
    Json image =
        Json::object().set("publisher", s.publisher).set("offer", s.offer).set("sku", s.sku).set("version", s.version);
    Json images = Json::array();
    images.push(container_of(d));
    Json machine =
        Json::object()
            .set("imageReference", std::move(image))
            .set("nodeAgentSkuId", std::string(kBatchAgent))
            .set("containerConfiguration",
                 Json::object().set("type", "dockerCompatible").set("containerImageNames", std::move(images)));
    Json pool = Json::object()
                    .set("id", s.name)
                    .set("vmSize", s.size)
                    .set("virtualMachineConfiguration", std::move(machine))
                    .set("taskSlotsPerNode", slots)
                    .set("taskSchedulingPolicy", Json::object().set("nodeFillType", "Pack"))
                    .set("enableInterNodeCommunication", false)
                    .set("targetNodeCommunicationMode", "Simplified")
                    .set("enableAutoScale", true)
                    .set("autoScaleFormula", formula)
                    .set("autoScaleEvaluationInterval", "PT5M");
    if (s.guarded)
        // The script puts the subnet in: its id has a subscription in it, which is nobody's here.
        pool.set("networkConfiguration",
                 Json::object()
                     .set("subnetId", std::string(kSubnetWord))
                     .set("publicIPAddressConfiguration", Json::object().set("provision", "NoPublicIPAddresses")));
    return pool;
}

Json batch_tasks(const Deployment& d) {
    Json tasks = Json::array();
    std::string line = program_words(d);
    // Slots of a node share its devices, and Batch tells no task which are its own: a task keeps a lock on each it
    // took, in the one folder that all containers of the node see.
    const int devices = d.nodes.gpus > 0 ? std::max(1, d.ranks.each.gpus) : 0;
    if (devices > 0 && d.ranks.per_node > 1) {
        const std::string taken =
            devices == 1 ? "$slot"
                         : fmt::format("$(seq -s, $((slot * {0})) $((slot * {0} + {1})))", devices, devices - 1);
        line = "/bin/sh -c " +
               shell_word(fmt::format(
                   "for slot in $(seq 0 {}); do exec 9>\"$AZ_BATCH_NODE_SHARED_DIR/slot$slot\"; if flock -n 9; then "
                   "export CUDA_VISIBLE_DEVICES={}; exec {}; fi; done; echo \"no device is free\" >&2; exit 1",
                   d.ranks.per_node - 1, taken, line));
    }
    for (int share = 0; share < d.ranks.count; ++share) {
        Json environment = Json::array();
        const auto add = [&](const std::string& name, const std::string& value) {
            environment.push(Json::object().set("name", name).set("value", value));
        };
        for (const auto& [key, value] : d.environment) add(key, value);
        add("STOKER_ARRAY_INDEX", std::to_string(share));
        add("STOKER_ARRAY_COUNT", std::to_string(d.ranks.count));
        tasks.push(Json::object()
                       .set("id", fmt::format("share-{}", share))
                       .set("commandLine", line)
                       .set("environmentSettings", std::move(environment))
                       .set("containerSettings",
                            Json::object()
                                .set("imageName", container_of(d))
                                .set("containerRunOptions", d.nodes.gpus > 0 ? "--gpus all --ipc=host" : "--ipc=host"))
                       .set("constraints", Json::object().set("maxTaskRetryCount", 3)));
    }
    return tasks;
}

}  // namespace

std::string azure_ml_refusal(const Deployment& d) {
    if (std::string why = azure_refusal(d); !why.empty()) return why;
    if (d.kind == WorkloadKind::notebook) return "";
    if (d.kind == WorkloadKind::inference)
        return "a service on Azure ML is an online endpoint, which is not rendered; kubernetes and aks say it";
    if (d.nodes.spot())
        return "the plan counts on spot, and Azure ML's low priority is retired (Azure end-of-life announcement 258, "
               "2026-03-31); where: {spot: never} plans without, kubernetes and slurm take spot";
    if (d.command.empty()) return "the file does not say what to run: add run: {command: python3 train.py}";
    if (!d.training && d.ranks.count > 1)
        return fmt::format("the plan has {} independent shares, and a command job is one; batch and kubernetes say it",
                           d.ranks.count);
    return "";
}

std::vector<FileToWrite> azure_ml_files(const Deployment& d) {
    std::vector<FileToWrite> files;
    if (const AzureShape s = azure_shape(d); s.guarded)
        files = {{"private-link.sh", ml_private_link(d, s), 0755}, {"workspace.yaml", ml_workspace(d, s)}};
    if (d.kind != WorkloadKind::notebook) files.push_back({"compute.yaml", head_comment(d) + ml_compute(d)});
    files.push_back({d.name + ".yaml", d.kind == WorkloadKind::notebook ? ml_instance(d) : ml_job(d)});
    return files;
}

std::string batch_refusal(const Deployment& d) {
    if (std::string why = azure_refusal(d); !why.empty()) return why;
    if (d.training || d.kind == WorkloadKind::inference || d.kind == WorkloadKind::notebook)
        return fmt::format("Batch runs independent tasks, and this is {}", to_string(d.kind));
    if (d.command.empty()) return "the file does not say what to run: add run: {command: python3 work.py, image: ...}";
    return "";
}

std::vector<FileToWrite> batch_files(const Deployment& d) {
    const AzureShape s = azure_shape(d);
    std::string out = "#!/bin/bash\n" + head_comment(d);
    out += fmt::format("#   ACCOUNT=NAME GROUP=NAME {}./{}-batch.sh\n", s.guarded ? "SUBNET=ID " : "", d.name);
    if (s.guarded)
        out +=
            "# The data is sensitive: no node has a public address, and the account is reached through endpoints in "
            "the\n"
            "# subnet. What the nodes fetch leaves by that network: its firewall has to know registry and weights.\n";
    out += "set -eu\n\nhere=$(cd \"$(dirname \"$0\")\" && pwd)\n";
    if (s.guarded)
        out +=
            "group=${GROUP:?resource group}\nsubnet=${SUBNET:?id of the subnet of the nodes}\n"
            "account=$(az batch account show -g \"$group\" -n \"${ACCOUNT:?Batch account}\" --query id -o tsv)\n"
            "az batch account set -g \"$group\" -n \"$ACCOUNT\" --public-network-access Disabled\n" +
            private_links(s.name, "\"$account\"", {"batchAccount", "nodeManagement"}, {"privatelink.batch.azure.com"}) +
            "\n# From here on only from within the network.\n";
    out += "az batch account login -g \"${GROUP:?resource group}\" -n \"${ACCOUNT:?Batch account}\"\n";
    if (s.spot)
        out += why("Spot nodes: of an account whose pools are in your own subscription; low priority is retired",
                   "Azure end-of-life announcement 132, 2025-09-30");
    out += "# The pool follows its queue: no task, no node.\n";
    out += s.guarded ? fmt::format(
                           "sed \"s|\\\"{0}\\\"|\\\"$subnet\\\"|\" \"$here/pool.json\" > \"$here/pool-here.json\"\n"
                           "az batch pool create --json-file \"$here/pool-here.json\"\n",
                           kSubnetWord)
                     : "az batch pool create --json-file \"$here/pool.json\"\n";
    out += fmt::format("az batch job create --id {0} --pool-id {0}\n", s.name);
    out += fmt::format(
        "# {} shares; one that is lost with its node starts again.{}\n"
        "az batch task create --job-id {} --json-file \"$here/tasks.json\"\n",
        d.ranks.count,
        d.nodes.gpus > 0 && d.ranks.per_node > 1 ? " Each locks a device of its node (flock of util-linux, in the "
                                                   "image),\n# since Batch tells no task which are its own."
                                                 : "",
        s.name);
    out += fmt::format(
        "# The job ends with its last task, and the pool is taken away with: az batch pool delete --pool-id {0}\n"
        "az batch job set --job-id {0} --on-all-tasks-complete terminateJob\n",
        s.name);
    return {{d.name + "-batch.sh", out, 0755},
            {"pool.json", batch_pool(d).dump(2) + "\n"},
            {"tasks.json", batch_tasks(d).dump(2) + "\n"}};
}

}  // namespace stoker

// azure-ml, batch, cyclecloud: what Azure's own job services read.
#include <fmt/format.h>

#include <cmath>

#include "base/json.h"
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

std::string ml_compute(const Deployment& d) {
    const AzureShape s = azure_shape(d);
    std::string out = "$schema: https://azuremlschemas.azureedge.net/latest/amlCompute.schema.json\n";
    out +=
        fmt::format("name: {}\ntype: amlcompute\nsize: {}\nlocation: {}\n", s.name.substr(0, 24), s.size, s.location);
    out += "tier: dedicated\n";
    out += fmt::format(
        "# Idle nodes go, down to none.\nmin_instances: 0\nmax_instances: {}\nidle_time_before_scale_down: 300\n",
        s.count);
    return out + "identity: {type: system_assigned}\n";
}

std::string ml_instance(const Deployment& d) {
    const AzureShape s = azure_shape(d);
    return fmt::format(
        "{}#   az ml compute create -f {}.yaml\n"
        "$schema: https://azuremlschemas.azureedge.net/latest/computeInstance.schema.json\n"
        "name: {}\ntype: computeinstance\nsize: {}\nlocation: {}\n"
        "# A forgotten notebook costs as much as a busy one.\nidle_time_before_shutdown_minutes: "
        "60\nssh_public_access_enabled: false\n",
        head_comment(d), d.name, s.name.substr(0, 24), s.size, s.location);
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

Json batch_pool(const Deployment& d) {
    const AzureShape s = azure_shape(d);
    // One sample a minute over five, so that a pool grows at once and shrinks when nothing came for a while.
    const std::string kind = s.spot ? "$TargetLowPriorityNodes" : "$TargetDedicatedNodes";
    const std::string formula = fmt::format(
        "pending = $PendingTasks.GetSamplePercent(5 * TimeInterval_Minute) < 70 ? max(0, $PendingTasks.GetSample(1)) : "
        "max($PendingTasks.GetSample(1), avg($PendingTasks.GetSample(5 * TimeInterval_Minute))); "
        "{} = min({}, pending); $NodeDeallocationOption = taskcompletion;",
        kind, s.count);
    Json image =
        Json::object().set("publisher", s.publisher).set("offer", s.offer).set("sku", s.sku).set("version", s.version);
    Json images = Json::array();
    images.push(container_of(d));
    Json machine =
        Json::object()
            .set("imageReference", std::move(image))
            .set("nodeAgentSkuId", s.offer == "ubuntu-hpc" ? "batch.node.ubuntu 22.04" : "batch.node.ubuntu 24.04")
            .set("containerConfiguration",
                 Json::object().set("type", "dockerCompatible").set("containerImageNames", std::move(images)));
    return Json::object()
        .set("id", s.name)
        .set("vmSize", s.size)
        .set("virtualMachineConfiguration", std::move(machine))
        .set("taskSlotsPerNode", std::max(1, d.ranks.per_node))
        .set("taskSchedulingPolicy", Json::object().set("nodeFillType", "Pack"))
        .set("enableInterNodeCommunication", false)
        .set("targetNodeCommunicationMode", "Simplified")
        .set("enableAutoScale", true)
        .set("autoScaleFormula", formula)
        .set("autoScaleEvaluationInterval", "PT5M");
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
    if (d.kind == WorkloadKind::notebook) return {{d.name + ".yaml", ml_instance(d)}};
    return {{"compute.yaml", head_comment(d) + ml_compute(d)}, {d.name + ".yaml", ml_job(d)}};
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
    out += fmt::format("#   ACCOUNT=NAME GROUP=NAME ./{}-batch.sh\n", d.name);
    out +=
        "set -eu\n\nhere=$(cd \"$(dirname \"$0\")\" && pwd)\n"
        "az batch account login -g \"${GROUP:?resource group}\" -n \"${ACCOUNT:?Batch account}\"\n";
    if (s.spot)
        out += why("Spot nodes: of an account whose pools are in your own subscription; low priority is retired",
                   "Azure end-of-life announcement 132, 2025-09-30");
    out += "# The pool follows its queue: no task, no node.\naz batch pool create --json-file \"$here/pool.json\"\n";
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
    for (FileToWrite& file : slurm_files(d)) {
        // The template's partition for these nodes.
        const std::size_t at = file.content.find("#SBATCH --nodes=");
        file.content.insert(at, s.gpu ? "#SBATCH --partition=gpu\n" : "#SBATCH --partition=htc\n");
        files.push_back(std::move(file));
    }
    return files;
}

}  // namespace stoker

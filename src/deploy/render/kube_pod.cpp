#include "deploy/render/kube_pod.h"

#include <fmt/format.h>

#include <cmath>

#include "deploy/render/recipes.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

// Of a node: the rest is the kubelet's, the system's and the daemon sets'. What they take differs from cluster to
// cluster, and a pod that asks for all of a node fits none.
constexpr double kShareOfNode = 0.9;
constexpr double kGib = 1024.0 * 1024 * 1024;

// Where an image keeps what it fetches: the hub's cache, but for TGI, whose image sets another one.
std::string_view weights_folder(std::string_view engine) {
    return engine == "tgi" ? "/data" : engine == "llama.cpp" ? "/models" : "/root/.cache/huggingface";
}

std::string list(const char* key, const std::vector<std::string>& words) {
    std::string out = fmt::format("{}:\n", key);
    for (const std::string& word : words) out += fmt::format("- {}\n", yaml_word(word));
    return out;
}

std::string variables(const Deployment& d, const PodToWrite& pod) {
    auto all = d.training ? work_environment(d) : d.environment;
    if (pod.checkpoints) all["STOKER_CHECKPOINT_DIR"] = "/checkpoints";
    for (const auto& [key, value] : pod.environment) all[key] = value;
    std::string out;
    for (const auto& [key, value] : all)
        out += reason_of(d, "environment." + key) + fmt::format("- name: {}\n  value: {}\n", key, json_text(value));
    for (const std::string& item : pod.raw_environment) out += item;
    return out.empty() ? "" : "env:\n" + out;
}

std::string resources(const Deployment& d, const PodToWrite& pod) {
    const std::int64_t cpus =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(d.nodes.vcpus * kShareOfNode / pod.share));
    const auto memory_gib = static_cast<std::int64_t>(d.nodes.memory_bytes * kShareOfNode / pod.share / kGib);
    std::string out =
        "# CPUs and memory: nine tenths of the node, since kubelet and daemon sets take of it too.\nresources:\n";
    std::string both;
    if (const int devices = devices_of_pod(d); devices > 0)
        both += fmt::format("    {}: {}\n", device_resource(d), devices);
    if (pod_takes_infiniband(d))
        both +=
            indented(d.nodes.cloud == "azure"
                         ? why("the InfiniBand devices, as the network operator of AKS shares them; without them NCCL "
                               "would go over Ethernet",
                               "Azure/aks-rdma-infiniband (recalled)")
                         : why("the InfiniBand devices by the name that infiniband.yaml of the target on-prem gives "
                               "them; your cluster may have another; without them NCCL would go over Ethernet",
                               "NVIDIA network operator, RDMA shared device plugin (recalled)"),
                     "    ") +
            "    rdma/shared_ib: 1\n";
    if (d.nodes.fabric.kind == "efa" && d.nodes.count > 1 && !d.serving) both += "    vpc.amazonaws.com/efa: 1\n";
    const std::string memory = memory_gib > 0 ? fmt::format("    memory: {}Gi\n", memory_gib) : "";
    return out + fmt::format("  requests:\n    cpu: {}\n", cpus) + memory + both + "  limits:\n" + memory + both;
}

std::string volumes(const Deployment& d, const PodToWrite& pod, std::string& mounts) {
    std::string out;
    if (devices_of_pod(d) > 0) {
        mounts += "- name: shm\n  mountPath: /dev/shm\n";
        out +=
            "- name: shm\n  # NCCL and data loaders share memory between processes; the default is 64 MiB.\n"
            "  emptyDir: {medium: Memory}\n";
    }
    if (d.environment.count("NCCL_TOPO_FILE") > 0 && !pod.server) {
        mounts += "- name: topology\n  mountPath: /opt/microsoft\n  readOnly: true\n";
        out +=
            "- name: topology\n  # An image without the file costs bandwidth, not the run: NCCL warns and goes by what "
            "it sees.\n  hostPath: {path: /opt/microsoft, type: DirectoryOrCreate}\n";
    }
    if (pod.checkpoints) {
        mounts += "- name: checkpoints\n  mountPath: /checkpoints\n";
        out += fmt::format("- name: checkpoints\n  persistentVolumeClaim: {{claimName: {}-checkpoints}}\n",
                           dns_label(d.name, 50));
    }
    if (pod.server) {
        const bool file = engine_of(d) == "llama.cpp";
        mounts += fmt::format("- name: weights\n  mountPath: {}\n", weights_folder(engine_of(d)));
        out += "- name: weights\n";
        out += file ? fmt::format(
                          "  # Yours to fill: it has {}.gguf.\n  persistentVolumeClaim: {{claimName: {}-weights}}\n",
                          d.model.name, dns_label(d.name, 50))
                    : "  emptyDir: {}\n";
    }
    if (!mounts.empty()) mounts = "volumeMounts:\n" + mounts;
    return out.empty() ? "" : "volumes:\n" + out;
}

std::string placing(const Deployment& d) {
    std::string out;
    std::string selector;
    if (d.nodes.cloud != "on-prem")
        selector += fmt::format("  node.kubernetes.io/instance-type: {}\n", yaml_word(d.nodes.machine));
    if (d.nodes.cloud == "azure" && d.nodes.spot()) selector += "  kubernetes.azure.com/scalesetpriority: spot\n";
    // Where a pool's nodes carry no taint of their own, pods of the other would go there.
    if (d.nodes.one_of_two && d.nodes.cloud == "aws")
        selector += fmt::format("  eks.amazonaws.com/capacityType: {}\n", d.nodes.spot() ? "SPOT" : "ON_DEMAND");
    if (d.nodes.one_of_two && d.nodes.cloud == "gcp" && d.nodes.spot())
        selector += "  cloud.google.com/gke-spot: \"true\"\n";
    if (!selector.empty()) out += "nodeSelector:\n" + selector;
    if (d.nodes.one_of_two && d.nodes.cloud == "gcp" && !d.nodes.spot())
        out +=
            "affinity:\n  nodeAffinity:\n    requiredDuringSchedulingIgnoredDuringExecution:\n      "
            "nodeSelectorTerms:\n"
            "      - matchExpressions: [{key: cloud.google.com/gke-spot, operator: DoesNotExist}]\n";
    if (devices_of_pod(d) == 0) return out;
    out += "tolerations:\n";
    if (d.nodes.cloud == "azure")
        out +=
            "# The taint that AKS documents for GPU pools (learn.microsoft.com, use-nvidia-gpu).\n"
            "- {key: sku, operator: Equal, value: gpu, effect: NoSchedule}\n";
    else
        out += fmt::format("- {{key: {}, operator: Exists, effect: NoSchedule}}\n",
                           resource_of_vendor(d.nodes.gpu_vendor));
    if (d.nodes.cloud == "azure" && d.nodes.spot())
        out +=
            "# AKS puts this taint on spot pools itself.\n"
            "- {key: kubernetes.azure.com/scalesetpriority, operator: Equal, value: spot, effect: NoSchedule}\n";
    return out;
}

}  // namespace

std::string device_resource(const Deployment& d) {
    // As the plug-in calls them with the strategy "mixed", on whichever machine they are cut.
    if (d.nodes.mig) return "nvidia.com/mig-" + d.nodes.mig->profile;
    return resource_of_vendor(d.nodes.gpu_vendor);
}

bool pod_takes_infiniband(const Deployment& d) {
    return d.nodes.fabric.kind == "infiniband" && d.nodes.count > 1 && (!d.serving || d.serving->nodes_per_replica > 1);
}

int devices_of_pod(const Deployment& d) {
    if (d.nodes.gpus <= 0) return 0;
    if (d.training) return gpus_per_node(d);
    return std::max(1, d.ranks.each.gpus);
}

std::string pod_spec(const Deployment& d, const PodToWrite& pod) {
    std::string mounts;
    const std::string volume_list = volumes(d, pod, mounts);
    std::string out;
    if (!pod.subdomain.empty()) out += fmt::format("subdomain: {}\n", pod.subdomain);
    out += fmt::format("restartPolicy: {}\n", pod.restart);
    // What the program does between TERM and KILL is write a checkpoint; a server ends the answers that it has begun.
    if (pod.server)
        out +=
            "# Answers that have begun are ended; the default cuts them off after 30 "
            "s.\nterminationGracePeriodSeconds: 120\n";
    if (d.training)
        out += fmt::format("terminationGracePeriodSeconds: {}\n", std::max<std::int64_t>(120, d.policy.grace_s));
    out += "# Nothing in the pod talks to the API server.\nautomountServiceAccountToken: false\n";
    // Without the Secret the image is pulled as by anybody.
    if (!d.image.empty())
        out += fmt::format(
            "# Of a private registry: kubectl create secret docker-registry {0} --docker-server={1} ...\n"
            "imagePullSecrets: [{{name: {0}}}]\n",
            dns_label(d.name, 50) + "-registry", registry_of(d.image));
    out += placing(d);
    std::string container = fmt::format("name: {}\n", pod.server ? "server" : "work");
    if (!d.image.empty()) {
        container += fmt::format("image: {}\n", yaml_word(d.image));
    } else if (const auto image = engine_image(pod.image_of, d)) {
        container += why("the file names no image: this is the published one", image->source);
        container += fmt::format("image: {}\n", yaml_word(image->image));
    }
    std::vector<std::string> command = pod.command;
    if (pod.checkpoints && d.training && !command.empty()) {
        container += kResumeReason;
        const std::string search = resume_search() + "; export STOKER_RESUME_FROM; exec \"$0\" \"$@\"";
        command.insert(command.begin(), {"/bin/sh", "-c", search});
    }
    container += list("command", command);
    if (d.folder.starts_with('/')) container += fmt::format("workingDir: {}\n", yaml_word(d.folder));
    container += variables(d, pod);
    if (!pod.port.empty()) container += fmt::format("ports:\n- {{name: http, containerPort: {}}}\n", pod.port);
    if (!pod.probe.empty())
        container += fmt::format(
            "# Loading the weights takes minutes: half an hour is given before it counts as failed.\n"
            "startupProbe:\n  httpGet: {{path: {0}, port: http}}\n  periodSeconds: 10\n  failureThreshold: 180\n"
            "readinessProbe:\n  httpGet: {{path: {0}, port: http}}\n  periodSeconds: 5\n"
            "# A server whose engine is gone does not come back by itself; one that is busy is not killed.\n"
            "livenessProbe:\n  httpGet: {{path: {0}, port: http}}\n  periodSeconds: 30\n  timeoutSeconds: 20\n"
            "  failureThreshold: 5\n",
            pod.probe);
    if (pod.server && !pod.port.empty())
        container +=
            "# The Service forgets a pod that goes within seconds, and sends to it until then.\n"
            "lifecycle: {preStop: {sleep: {seconds: 10}}}\n";
    container += "# Nothing in it becomes more than it was started as.";
    container += pod_takes_infiniband(d) ? " RDMA pins memory.\nsecurityContext: {allowPrivilegeEscalation: false, "
                                           "capabilities: {add: [IPC_LOCK]}}\n"
                                         : "\nsecurityContext: {allowPrivilegeEscalation: false}\n";
    container += resources(d, pod) + mounts;
    out += "containers:\n";
    const std::string body = indented(container, "  ");
    out += "- " + body.substr(2);
    return out + volume_list;
}

PodToWrite training_pod(const Deployment& d, std::string_view endpoint) {
    PodToWrite pod;
    pod.checkpoints = !d.checkpoint.folder.empty();
    pod.command = {"torchrun", "--nnodes", std::to_string(d.nodes.count), "--nproc_per_node",
                   std::to_string(d.ranks.per_node)};
    if (d.nodes.count > 1)
        for (const std::string& word : {std::string("--rdzv_id"), d.name, std::string("--rdzv_backend"),
                                        std::string("c10d"), std::string("--rdzv_endpoint"), std::string(endpoint)})
            pod.command.push_back(word);
    else
        pod.command.push_back("--standalone");
    pod.command.push_back("--no_python");
    pod.command.insert(pod.command.end(), d.command.begin(), d.command.end());
    return pod;
}

PodToWrite share_pod(const Deployment& d) {
    PodToWrite pod;
    pod.command = d.command;
    pod.share = std::max(1, d.ranks.per_node);
    pod.environment = {{"STOKER_ARRAY_COUNT", std::to_string(d.ranks.count)}};
    pod.raw_environment = {
        "- name: STOKER_ARRAY_INDEX\n"
        "  valueFrom: {fieldRef: {fieldPath: \"metadata.annotations['batch.kubernetes.io/job-completion-index']\"}}\n"};
    return pod;
}

PodToWrite serving_pod(const Deployment& d, std::string_view engine) {
    PodToWrite pod;
    const EngineCall call = engine_call(engine, d);
    pod.command = call.program;
    if (engine == "llama.cpp") {
        pod.command.push_back("--model");
        pod.command.push_back(fmt::format("{}/{}.gguf", weights_folder(engine), d.model.name));
        // Its images have it on no path that is searched.
        if (d.image.empty()) pod.command.front() = "/app/llama-server";
    }
    for (const EngineFlag& flag : call.flags) {
        pod.command.push_back(flag.name);
        if (!flag.value.empty()) pod.command.push_back(flag.value);
    }
    for (const char* word : {engine == "tgi" ? "--hostname" : "--host", "0.0.0.0", "--port", "8000"})
        pod.command.emplace_back(word);
    pod.port = "8000", pod.probe = call.health, pod.restart = "Always";
    pod.share = std::max(1, d.ranks.per_node);
    pod.server = true;
    pod.image_of = std::string(engine);
    const auto secret = [&](const std::string& name, const char* key, const char* comment) {
        pod.raw_environment.push_back(
            fmt::format("{}- name: {}\n  valueFrom: {{secretKeyRef: {{name: {}, key: {}, optional: true}}}}\n", comment,
                        name, dns_label(d.name, 50), key));
    };
    if (!call.key_variable.empty())
        secret(call.key_variable, "api-key", "# Once the Secret is there only callers with the key are answered.\n");
    if (engine != "llama.cpp") secret("HF_TOKEN", "hf-token", "# For weights behind a licence.\n");
    return pod;
}

std::string labels(const std::string& name) {
    return fmt::format("app.kubernetes.io/name: {}\napp.kubernetes.io/managed-by: stoker\n", name);
}

std::string labels(const Deployment& d) {
    return labels(dns_label(d.name, 50));
}

std::string checkpoint_claim(const Deployment& d) {
    if (d.checkpoint.folder.empty()) return "";
    const double kept = d.checkpoint_bytes * (d.checkpoint.keep + 1);
    const auto gib = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(kept / kGib)));
    std::string out = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n";
    out +=
        fmt::format("  name: {}-checkpoints\n  labels:\n{}spec:\n", dns_label(d.name, 50), indented(labels(d), "    "));
    if (d.nodes.count > 1) {
        out += "  # Every node writes its part.\n  accessModes: [ReadWriteMany]\n";
        if (d.nodes.cloud == "azure") out += "  storageClassName: azureblob-nfs-premium\n";
    } else {
        out += "  accessModes: [ReadWriteOnce]\n";
    }
    out += fmt::format("  # {} that are kept and one that is being written, {:.3g} GB each.\n", d.checkpoint.keep,
                       d.checkpoint_bytes / 1e9);
    return out + fmt::format("  resources: {{requests: {{storage: {}Gi}}}}\n", gib);
}

std::string kube_refusal(const Deployment& d) {
    if (d.nodes.os == "windows") return "the pods are Linux containers, and where.os is windows";
    if (d.nodes.gpus > 0 && device_resource(d).empty())
        return fmt::format("no device plug-in is known for {}", d.nodes.gpu);
    if (d.kind == WorkloadKind::notebook) return "a notebook is a machine for a person; az, bicep and terraform say it";
    if (d.serving && d.kind == WorkloadKind::inference) return "";
    if (d.command.empty())
        return "the file does not say what to run: add run: {command: python3 train.py, image: "
               "registry.example/trainer:1.4}";
    return "";
}

std::string kube_training_refusal(const Deployment& d) {
    if (!d.training)
        return fmt::format("it is a kind of job for trainings, and this is {}; kubernetes says it", to_string(d.kind));
    return kube_refusal(d);
}

}  // namespace stoker

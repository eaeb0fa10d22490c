#include "deploy/render/targets.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "deploy/render/kube_pod.h"

namespace stoker {
namespace {

constexpr auto kTargets = std::to_array<RenderTarget>({
    {"local", "the run section as a file that stoker run takes, on this machine", local_refusal, local_files},
    {"torchrun", "a script that starts the ranks of a training on each node, with the plan's layout", torchrun_refusal,
     torchrun_files},
    {"deepspeed", "DeepSpeed's JSON with ZeRO and batch, a hostfile, the launcher", deepspeed_refusal, deepspeed_files,
     "deepspeed"},
    {"accelerate", "Accelerate's YAML (DDP, FSDP 2, tensor and context parallel) and the launcher", accelerate_refusal,
     accelerate_files, "fsdp"},
    {"megatron", "Megatron-LM's arguments: degrees, batch, recompute, the model's shape", megatron_refusal,
     megatron_files, "megatron"},
    {"nemo", "a NeMo 2 recipe in Python, and torchrun", nemo_refusal, nemo_files, "megatron"},
    {"torchtitan", "torchtitan's command line", torchtitan_refusal, torchtitan_files, "fsdp"},
    {"ray", "a driver for Ray Train; of a service an application of Ray Serve", ray_refusal, ray_files},
    {"horovod", "mpirun with a hostfile, for data parallel work", horovod_refusal, horovod_files},
    {"vllm", "vLLM with the plan's degrees, context, batch, memory and precisions", vllm_refusal, vllm_files},
    {"sglang", "the same for SGLang", sglang_refusal, sglang_files},
    {"tgi", "the same for Text Generation Inference", tgi_refusal, tgi_files},
    {"tensorrt-llm", "the same for trtllm-serve, with its YAML", tensorrt_llm_refusal, tensorrt_llm_files},
    {"triton", "a model repository for Triton with its vLLM backend", triton_refusal, triton_files},
    {"llama-cpp", "llama.cpp's server, on GPUs or CPUs", llama_cpp_refusal, llama_cpp_files},
    {"slurm", "a batch script for sbatch: one gang, or an array of shares", slurm_refusal, slurm_files},
    {"pbs", "a script for OpenPBS and PBS Professional", pbs_refusal, pbs_files},
    {"sge", "a script for Grid Engine", sge_refusal, sge_files},
    {"kubernetes", "an Indexed Job with its Service, or Deployment, Service, disruption budget and autoscaler",
     kubernetes_refusal, kubernetes_files},
    {"kustomize", "the same as base and overlays, with namespace, priority, quota and network policy",
     kustomize_refusal, kustomize_files},
    {"keda", "a service whose replicas follow its load: PodMonitor, and ScaledObject of KEDA", keda_refusal,
     keda_files},
    {"jobset", "a training as JobSet, whose nodes are started again together", kube_training_refusal, jobset_files},
    {"pytorchjob", "a training for Kubeflow's training operator", kube_training_refusal, pytorchjob_files},
    {"mpijob", "a data parallel training for Kubeflow's MPI operator", mpijob_refusal, mpijob_files},
    {"rayjob", "a training as RayJob of KubeRay, with its driver", rayjob_refusal, rayjob_files},
    {"kueue", "a job that waits in a queue of Kueue, and the queue", kueue_refusal, kueue_files},
    {"aks", "AKS whole: cluster, pool, device plug-in, monitoring, weights on Blob, and the kustomize tree",
     aks_refusal, aks_files},
    {"az", "a script of az: network, and a VM, a scale set or AKS with a pool", azure_refusal, az_files},
    {"bicep", "the same in Bicep", azure_refusal, bicep_files},
    {"arm", "the same as ARM template", azure_refusal, arm_files},
    {"terraform", "the same for azurerm; of AWS and GCP the instances, or EKS and GKE", terraform_refusal,
     terraform_files},
    {"cloud-init", "the first boot of the plan's machines: disk, environment, a check; of Azure also an image of it",
     cloud_init_refusal, cloud_init_files},
    {"azure-ml", "compute and job of Azure ML; of a notebook the compute instance", azure_ml_refusal, azure_ml_files},
    {"batch", "pool, job and tasks of Azure Batch", batch_refusal, batch_files},
    {"cyclecloud", "parameters of CycleCloud's Slurm cluster and of Workspace for Slurm, and the batch script",
     cyclecloud_refusal, cyclecloud_files},
    {"slurm-cloud", "nodes of Azure that a Slurm of one's own starts and stops: fragments, programs, the scale set",
     slurm_cloud_refusal, slurm_cloud_files},
    {"on-prem", "driver, Slurm's configuration or k3s, and a health gate for machines of one's own", on_prem_refusal,
     on_prem_files},
});

std::string names_of_targets() {
    std::string names;
    for (const RenderTarget& each : kTargets) names += (names.empty() ? "" : ", ") + std::string(each.name);
    return names;
}

}  // namespace

std::span<const RenderTarget> render_targets() {
    return kTargets;
}

Result<const RenderTarget*> find_render_target(std::string_view name) {
    const auto found =
        std::find_if(kTargets.begin(), kTargets.end(), [&](const RenderTarget& each) { return each.name == name; });
    if (found != kTargets.end()) return &*found;
    return Error(ErrorKind::invalid,
                 fmt::format("nothing is rendered for {} yet; there is {}", name, names_of_targets()), {},
                 "stoker deploy --list says what each is");
}

// What people who run this platform keep in files; the first that can say the work. Behind them what starts it by hand.
constexpr std::pair<Orchestrator, std::array<std::string_view, 2>> kUsual[] = {
    {Orchestrator::local, {"local", "torchrun"}},
    {Orchestrator::slurm, {"slurm", ""}},
    {Orchestrator::cyclecloud_slurm, {"slurm", ""}},
    {Orchestrator::aks, {"kubernetes", ""}},
    {Orchestrator::azure_ml, {"azure-ml", "torchrun"}},
    {Orchestrator::vmss, {"bicep", ""}},
    {Orchestrator::batch, {"batch", ""}},
    {Orchestrator::ray, {"ray", ""}},
    {Orchestrator::kubernetes, {"kubernetes", ""}},
};

Result<const RenderTarget*> usual_render_target(const Deployment& deployment, std::string* passed_over) {
    std::string why;
    std::vector<const RenderTarget*> order;
    const auto add = [&](std::string_view name) {
        for (const RenderTarget& each : kTargets)
            if (each.name == name) order.push_back(&each);
    };
    for (const auto& [orchestrator, names] : kUsual)
        if (orchestrator == deployment.orchestrator)
            for (const std::string_view name : names) add(name);
    for (const RenderTarget& each : kTargets) order.push_back(&each);
    for (const RenderTarget* each : order) {
        // What runs here is not meant for another cluster.
        if (each->name == "local" && deployment.nodes.cloud != "this-machine") continue;
        const std::string refusal = each->refusal(deployment);
        if (refusal.empty()) {
            if (passed_over != nullptr && !why.empty()) *passed_over = fmt::format("{}; {} it is", why, each->name);
            return each;
        }
        if (why.empty()) why = fmt::format("{}: {}", each->name, refusal);
    }
    return Error(ErrorKind::unsupported, fmt::format("no target renders this; {}", why), {},
                 "stoker deploy FILE without --render shows the deployment; --list says which targets there are");
}

Result<Deployment> rendered(Deployment deployment, const RenderTarget& target) {
    if (const std::string why = target.refusal(deployment); !why.empty())
        return Error(ErrorKind::unsupported, fmt::format("{} cannot say this: {}", target.name, why));
    deployment.target = target.name;
    deployment.files = target.files(deployment);
    return deployment;
}

}  // namespace stoker

#include "plan/platform.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"

namespace stoker {
namespace {

struct OrchestratorInfo {
    Orchestrator orchestrator;
    std::string_view key, label, complexity, good_for;
};
constexpr std::array<OrchestratorInfo, 10> kOrchestrators{{
    {Orchestrator::local, "local", "one machine without an orchestrator", "low",
     "one machine and one job, started by hand"},
    {Orchestrator::slurm, "slurm", "Slurm", "medium", "gangs of MPI and torchrun ranks on machines of your own"},
    {Orchestrator::cyclecloud_slurm, "cyclecloud-slurm", "Slurm on CycleCloud", "medium",
     "multi-node training gangs; nodes come and go with the queue"},
    {Orchestrator::aks, "aks", "AKS", "medium", "containers and inference at scale; pods and nodes scale apart"},
    {Orchestrator::azure_ml, "azure-ml", "Azure ML", "low", "managed jobs with tracking; clusters scale to zero"},
    {Orchestrator::vmss, "vmss", "VM scale set", "low-medium",
     "equal GPU VMs from a custom image, scaled as instances"},
    {Orchestrator::batch, "batch", "Azure Batch", "low",
     "many independent tasks; no scheduler to install, no fee beyond the VMs"},
    {Orchestrator::ray, "ray", "Ray", "high", "elastic Python workloads and RLHF, on AKS or VMs"},
    {Orchestrator::kubernetes, "kubernetes", "Kubernetes", "medium", "containers on a cluster of your own"},
    {Orchestrator::none, "none", "none", "low", ""},
}};
// They are found by their place.
static_assert([] {
    for (std::size_t i = 0; i < kOrchestrators.size(); ++i)
        if (static_cast<std::size_t>(kOrchestrators[i].orchestrator) != i) return false;
    return true;
}());
const OrchestratorInfo& info_of(Orchestrator orchestrator) {
    return kOrchestrators[static_cast<std::size_t>(orchestrator)];
}

bool needs(const Workload& workload, std::string_view what) {
    return std::any_of(workload.needs.begin(), workload.needs.end(),
                       [&](const std::string& need) { return equals_ignore_case(need, what); });
}

// What a workload may say it needs of its scheduler, containers or scaling, and who gives it. In this order.
struct NeedRule {
    std::string_view need;
    Orchestrator orchestrator;
    std::string_view reason;
};
constexpr std::array<NeedRule, 16> kNeedRules{{
    {"ray", Orchestrator::ray, "elastic Python actors"},
    {"slurm", Orchestrator::cyclecloud_slurm, "a Slurm queue; nodes come and go with it"},
    {"pbs", Orchestrator::cyclecloud_slurm, "CycleCloud runs PBS (Torque) as well as Slurm"},
    {"torque", Orchestrator::cyclecloud_slurm, "CycleCloud runs PBS (Torque) as well as Slurm"},
    {"grid-engine", Orchestrator::cyclecloud_slurm, "CycleCloud runs Grid Engine as well as Slurm"},
    {"mpi-queue", Orchestrator::cyclecloud_slurm, "MPI jobs wait in a queue until all their nodes are there"},
    {"kubernetes", Orchestrator::aks, "the team lives in Kubernetes"},
    {"microservices", Orchestrator::aks, "services of several containers that scale apart"},
    {"pod-autoscaling", Orchestrator::aks, "pods and nodes scale apart"},
    {"mlflow", Orchestrator::azure_ml, "experiment tracking is built in"},
    {"experiment-tracking", Orchestrator::azure_ml, "experiment tracking is built in"},
    {"model-registry", Orchestrator::azure_ml, "model management is built in"},
    {"custom-image", Orchestrator::vmss, "equal VMs from an image of your own, driver inside"},
    {"instance-autoscaling", Orchestrator::vmss, "VMs are added and removed by a metric"},
    {"task-queue", Orchestrator::batch, "independent tasks: queue, retry and scale-down without a cluster to install"},
    {"batch-service", Orchestrator::batch,
     "independent tasks: queue, retry and scale-down without a cluster to install"},
}};

struct Decision {
    Orchestrator orchestrator;
    std::string reason;
};

// Machines of one's own; of a kind without a number there are many.
int own_machines(const Catalog& catalog) {
    int count = 0;
    for (const NodeType& node : catalog.node_types())
        if (node.cloud == "on-prem") count += node.available > 0 ? node.available : 1000;
    return count;
}

// The selection criteria are scheduling (gang or not), containers, and how the load scales.
Decision decide(const Workload& workload, const Catalog& catalog, const NodeType& node, const Candidate& candidate) {
    if (!workload.orchestrator.empty())
        for (const auto& one : kOrchestrators)
            if (one.key == workload.orchestrator) return {one.orchestrator, "named in the workload"};
    if (node.cloud == "this-machine") return {Orchestrator::local, "runs on this machine"};
    const bool one_is_enough = node.available <= 0 && candidate.nodes == 1;
    if (node.cloud == "on-prem" && (own_machines(catalog) == 1 || one_is_enough))
        return {Orchestrator::local, "one machine of your own: nothing to schedule over"};
    if (node.cloud == "on-prem")
        return workload.kind == WorkloadKind::inference
                   ? Decision{Orchestrator::kubernetes, "replicas behind a service on machines of your own"}
                   : Decision{Orchestrator::slurm, "gangs on machines of your own: all ranks start together or none"};
    const bool azure = node.cloud == "azure";
    for (const NeedRule& rule : kNeedRules)
        if (azure && needs(workload, rule.need))
            return {rule.orchestrator, fmt::format("{} is among the needs: {}", rule.need, rule.reason)};
    switch (workload.kind) {
        case WorkloadKind::training:
        case WorkloadKind::fine_tuning:
            if (needs(workload, "ray")) return {Orchestrator::ray, "ray is among the needs: elastic Python actors"};
            if (!azure)
                return candidate.nodes > 1
                           ? Decision{Orchestrator::slurm, "a gang of several nodes: all ranks start together"}
                           : Decision{Orchestrator::local, "one VM and one job: started over ssh, and deleted after"};
            if (candidate.nodes > 1)
                return {Orchestrator::cyclecloud_slurm,
                        fmt::format("a gang of {} nodes: all ranks start together{}, nodes go when the queue is empty",
                                    candidate.nodes, is_rdma(node) ? ", one scale set is one InfiniBand domain" : "")};
            return {Orchestrator::azure_ml, "one node and one job: managed, tracked, scales to zero when idle"};
        case WorkloadKind::inference:
            if (!azure) return {Orchestrator::kubernetes, "replicas behind a service"};
            if (candidate.nodes <= 1 && candidate.replicas <= 1)
                return {Orchestrator::vmss, "one replica: a scale set of one restarts it and can grow"};
            return {Orchestrator::aks,
                    fmt::format("{} replicas behind a load balancer: pods scale with the load, nodes with the pods",
                                candidate.replicas)};
        case WorkloadKind::batch_inference:
        case WorkloadKind::embedding:
            if (workload.traffic.requests_per_second)
                return {azure ? Orchestrator::aks : Orchestrator::kubernetes, "replicas behind a load balancer"};
            return {azure ? Orchestrator::batch : Orchestrator::kubernetes,
                    "independent tasks from a pile: queue, retry and scale-down come with it"};
        case WorkloadKind::preprocessing:
            return {azure ? Orchestrator::batch : Orchestrator::kubernetes, "independent tasks over files; no gang"};
        case WorkloadKind::notebook:
            return {azure ? Orchestrator::azure_ml : Orchestrator::local,
                    "a compute instance with Jupyter that stops itself when idle"};
        case WorkloadKind::simulation:
            return {azure ? (candidate.nodes > 1 ? Orchestrator::batch : Orchestrator::vmss) : Orchestrator::local,
                    candidate.nodes > 1 ? "frames are independent tasks" : "one workstation"};
    }
    return {Orchestrator::none, ""};
}

// Somebody waits for each answer, and there is no end.
bool answers(const Workload& workload) {
    return workload.kind == WorkloadKind::inference ||
           (workload.kind == WorkloadKind::embedding && workload.traffic.requests_per_second.has_value());
}

std::vector<std::string> alternatives(const Workload& workload, const NodeType& node, const Candidate& candidate,
                                      Orchestrator chosen) {
    std::vector<std::string> out;
    auto offer = [&](Orchestrator other, std::string_view text) {
        if (other != chosen) out.push_back(fmt::format("{}: {}", info_of(other).label, text));
    };
    if (chosen == Orchestrator::local && (node.cloud == "on-prem" || node.cloud == "this-machine")) return out;
    if (node.cloud != "azure") {
        offer(Orchestrator::kubernetes, info_of(Orchestrator::kubernetes).good_for);
        return out;
    }
    if (candidate.nodes == 1 && workload.kind != WorkloadKind::inference)
        offer(Orchestrator::local,
              "a single VM is enough for one run; nothing restarts it, and it bills until you delete it");
    if (is_training(workload.kind)) {
        offer(Orchestrator::azure_ml,
              "managed jobs and experiment tracking, least work; less say over placement and images");
        offer(Orchestrator::cyclecloud_slurm, "worth it once several people queue for several nodes");
        offer(Orchestrator::aks,
              "if the team already runs Kubernetes; gang scheduling needs a batch scheduler (Kueue or Volcano) on top");
        offer(Orchestrator::vmss, "equal nodes from one image; gang start and retries are yours to write");
        offer(Orchestrator::ray,
              "elastic Python training on AKS or VMs (also where DeepSpeed and Horovod run); high complexity");
    } else {
        offer(Orchestrator::azure_ml, "managed endpoints or jobs; less control over the engine");
        offer(Orchestrator::aks, "containers, pods and nodes scale apart");
        if (!answers(workload))
            offer(Orchestrator::batch, "no installation and no fee beyond the VMs; VMs live only as long as the pool");
        offer(Orchestrator::vmss, node.has_gpu() ? "instances scale on a GPU metric; custom image with drivers"
                                                 : "instances scale on a metric; the image is yours");
    }
    return out;
}

// What the cloud would run by itself: for a service a hosted model, for a job managed training.
struct ManagedService {
    std::string_view hosted_model, endpoint, training, pile, tasks;
};
ManagedService managed_service(std::string_view cloud) {
    if (cloud == "azure")
        return {"Azure AI", "an Azure ML online endpoint", "Azure ML managed training", "an Azure ML batch endpoint",
                "Azure ML jobs"};
    if (cloud == "aws")
        return {"Amazon Bedrock", "a SageMaker endpoint", "SageMaker training", "SageMaker batch transform",
                "AWS Batch"};
    if (cloud == "gcp")
        return {"Vertex AI", "a Vertex AI endpoint", "Vertex AI training", "Vertex AI batch inference",
                "Google Cloud Batch"};
    return {"an API", "a managed endpoint", "managed training, where the provider has it,", "managed batch jobs",
            "managed batch jobs"};
}

std::string paas_sentence(const Workload& workload, const NodeType& node, Orchestrator chosen, int nodes) {
    if (node.cloud == "on-prem" || node.cloud == "this-machine")
        return "PaaS not chosen: the machines are already there and paid for";
    if (chosen == Orchestrator::azure_ml) return "PaaS chosen: Azure ML runs it on the same VM size at the VM's price";
    const ManagedService managed = managed_service(node.cloud);
    switch (answers(workload) ? WorkloadKind::inference : workload.kind) {
        case WorkloadKind::inference:
            return fmt::format(
                "PaaS first: a hosted model ({}) or {} needs no GPU of yours; this plan is for when you need control "
                "of the model, the engine or the data's place, or when the load keeps the GPUs busy",
                managed.hosted_model, managed.endpoint);
        case WorkloadKind::training:
        case WorkloadKind::fine_tuning:
            return fmt::format(
                "PaaS first: {} runs the same work without machines to keep; not chosen because {}", managed.training,
                nodes > 1 ? "several nodes that start together need control over placement, image and recovery"
                          : "one machine is as easily kept, with its image and data at hand");
        case WorkloadKind::batch_inference:
        case WorkloadKind::embedding:
            return fmt::format(
                "PaaS alternative: {} on the same machines; not chosen because independent tasks need a queue and no "
                "more",
                managed.pile);
        case WorkloadKind::notebook:
            return fmt::format("PaaS alternative: {}",
                               node.cloud == "aws"   ? "a SageMaker notebook instance on the same machine"
                               : node.cloud == "gcp" ? "Vertex AI Workbench on the same machine"
                                                     : "a managed notebook, where the provider has it");
        default:
            return fmt::format(
                "PaaS alternative: {} on the same machines; not chosen because independent tasks need a "
                "queue and no more",
                managed.tasks);
    }
}

}  // namespace

std::string_view to_string(Orchestrator orchestrator) {
    return info_of(orchestrator).key;
}
std::string_view label(Orchestrator orchestrator) {
    return info_of(orchestrator).label;
}
std::string_view complexity(Orchestrator orchestrator) {
    return info_of(orchestrator).complexity;
}

PlatformChoice choose_platform(const Workload& workload, const Context& context, const Candidate& candidate) {
    const NodeType& node = context.node(candidate.node_type);
    const Decision decision = decide(workload, context.catalog, node, candidate);
    PlatformChoice platform;
    platform.orchestrator = decision.orchestrator;
    platform.name = label(decision.orchestrator);
    platform.reason = decision.reason;
    platform.complexity = complexity(decision.orchestrator);
    platform.alternatives = alternatives(workload, node, candidate, decision.orchestrator);
    platform.paas = paas_sentence(workload, node, decision.orchestrator, candidate.nodes);
    const ImageChoice image = choose_image(workload, context.catalog, node, decision.orchestrator);
    platform.image = image.name;
    platform.image_reason = image.reason;
    return platform;
}

}  // namespace stoker

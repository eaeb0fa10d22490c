// jobset, pytorchjob, mpijob, rayjob, kueue: trainings for the operators of Kubernetes that start gangs.
#include <fmt/format.h>

#include <cmath>

#include "deploy/render/kube_pod.h"
#include "deploy/render/kubernetes.h"
#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

std::string kube_name(const Deployment& d) {
    return dns_label(d.name, 40);
}

std::string kube_head(const Deployment& d, std::string_view kind) {
    return fmt::format("{}#   kubectl apply -f {}.yaml   # with the CRDs of {}\n", head_comment(d), d.name, kind);
}

std::string object(const Deployment& d, std::string_view api, std::string_view kind) {
    return fmt::format("apiVersion: {}\nkind: {}\nmetadata:\n  name: {}\n  labels:\n{}spec:\n", api, kind, kube_name(d),
                       indented(labels(d), "    "));
}

std::string claim_before(const Deployment& d) {
    const std::string claim = checkpoint_claim(d);
    return claim.empty() ? "" : claim + "---\n";
}

int starts_again(const Deployment& d) {
    return d.checkpoint.folder.empty() ? d.policy.restarts : d.policy.attempts - 1;
}

std::string pod_template(const Deployment& d, const PodToWrite& pod, std::string_view indent) {
    return indented("template:\n  metadata:\n    labels:\n" + indented(labels(d), "      ") + "  spec:\n" +
                        indented(pod_spec(d, pod), "    "),
                    indent);
}

}  // namespace

std::vector<FileToWrite> jobset_files(const Deployment& d) {
    const std::string name = kube_name(d);
    std::string out =
        kube_head(d, "kubernetes-sigs/jobset") + claim_before(d) + object(d, "jobset.x-k8s.io/v1alpha2", "JobSet");
    out += fmt::format(
        "  # When one node is lost all are started again, from the last checkpoint.\n"
        "  failurePolicy: {{maxRestarts: {}}}\n",
        starts_again(d));
    out += "  network: {enableDNSHostnames: true, publishNotReadyAddresses: true}\n";
    out += fmt::format(
        "  replicatedJobs:\n  - name: nodes\n    replicas: 1\n    template:\n      spec:\n"
        "        completionMode: Indexed\n        completions: {0}\n        parallelism: {0}\n"
        "        backoffLimit: 0\n",
        d.nodes.count);
    // Pods are called JOBSET-REPLICATEDJOB-0-INDEX, in the domain of the JobSet.
    out += pod_template(d, training_pod(d, fmt::format("{0}-nodes-0-0.{0}:29500", name)), "        ");
    return {{d.name + ".yaml", out}};
}

std::vector<FileToWrite> pytorchjob_files(const Deployment& d) {
    std::string out =
        kube_head(d, "kubeflow/training-operator") + claim_before(d) + object(d, "kubeflow.org/v1", "PyTorchJob");
    PodToWrite pod = training_pod(d, "");
    // The operator puts PET_* into each pod, which torchrun reads: nodes, ranks a node, rendezvous.
    pod.command = {"torchrun", "--no_python"};
    pod.command.insert(pod.command.end(), d.command.begin(), d.command.end());
    pod.restart = "OnFailure";
    out += fmt::format(
        "  # The operator writes it into each pod, where torchrun reads it (PET_NPROC_PER_NODE).\n"
        "  nprocPerNode: \"{}\"\n",
        d.ranks.per_node);
    out += fmt::format("  runPolicy: {{cleanPodPolicy: None, backoffLimit: {}}}\n  pytorchReplicaSpecs:\n",
                       starts_again(d));
    const auto replicas = [&](const char* role, int count) {
        std::string text = pod_spec(d, pod);
        // The operator knows its container by this name.
        if (const std::size_t at = text.find("- name: work\n"); at != std::string::npos)
            text.replace(at, 13, "- name: pytorch\n");
        const std::size_t restart = text.find("restartPolicy: OnFailure\n");
        text.erase(restart, std::string_view("restartPolicy: OnFailure\n").size());
        return fmt::format(
            "    {}:\n      replicas: {}\n      restartPolicy: OnFailure\n      template:\n        metadata:\n"
            "          labels:\n{}        spec:\n{}",
            role, count, indented(labels(d), "            "), indented(text, "          "));
    };
    out += replicas("Master", 1);
    if (d.nodes.count > 1) out += replicas("Worker", d.nodes.count - 1);
    return {{d.name + ".yaml", out}};
}

std::string mpijob_refusal(const Deployment& d) {
    if (std::string why = horovod_refusal(d); !why.empty()) return why;
    return kube_training_refusal(d);
}

std::vector<FileToWrite> mpijob_files(const Deployment& d) {
    std::string out =
        kube_head(d, "kubeflow/mpi-operator") + claim_before(d) + object(d, "kubeflow.org/v2beta1", "MPIJob");
    out += fmt::format(
        "  slotsPerWorker: {}\n  runPolicy: {{cleanPodPolicy: Running, backoffLimit: {}}}\n  mpiReplicaSpecs:\n",
        d.ranks.per_node, starts_again(d));
    PodToWrite launcher;
    launcher.command = {"mpirun",    "-np",     std::to_string(d.ranks.count),
                        "--bind-to", "none",    "-mca",
                        "pml",       "ob1",     "-mca",
                        "btl",       "^openib", "-x",
                        "PATH",      "-x",      "LD_LIBRARY_PATH"};
    for (const auto& [key, value] : work_environment(d)) launcher.command.insert(launcher.command.end(), {"-x", key});
    launcher.command.insert(launcher.command.end(), d.command.begin(), d.command.end());
    // The launcher computes nothing: one core and no device.
    Deployment small = d;
    if (!d.checkpoint.folder.empty()) small.checkpoint.folder = "/checkpoints";
    small.nodes.gpus = 0, small.nodes.gpu.clear(), small.nodes.vcpus = 2, small.nodes.memory_bytes = 4.0 * (1LL << 30);
    small.nodes.fabric = {};
    small.nodes.machine.clear(), small.nodes.cloud = "on-prem";
    if (small.image.empty()) {
        // The same image, with MPI in it, as the ranks.
        PodToWrite probe;
        const std::string spec = pod_spec(d, probe);
        if (const std::size_t at = spec.find("  image: "); at != std::string::npos)
            small.image = spec.substr(at + 9, spec.find('\n', at) - at - 9);
    }
    out += fmt::format("    Launcher:\n      replicas: 1\n") + pod_template(small, launcher, "      ");
    PodToWrite worker;
    worker.command = {"/usr/sbin/sshd", "-De"};
    worker.checkpoints = !d.checkpoint.folder.empty();
    out += fmt::format("    Worker:\n      replicas: {}\n", d.nodes.count) + pod_template(d, worker, "      ");
    return {{d.name + ".yaml", out}};
}

std::vector<FileToWrite> rayjob_files(const Deployment& d) {
    std::string out = kube_head(d, "ray-project/kuberay") + claim_before(d);
    const std::string name = kube_name(d);
    const FileToWrite driver = ray_files(d).front();
    out += fmt::format(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {}-driver\n  labels:\n{}data:\n  {}: |\n{}---\n", name,
        indented(labels(d), "    "), driver.path, indented(driver.content, "    "));
    out += object(d, "ray.io/v1", "RayJob");
    out += fmt::format(
        "  entrypoint: python /driver/{}\n  shutdownAfterJobFinishes: true\n  ttlSecondsAfterFinished: 600\n"
        "  backoffLimit: {}\n  rayClusterSpec:\n",
        driver.path, starts_again(d));
    const auto with_driver = [&](std::string spec) {
        const std::string mount = "  - name: driver\n    mountPath: /driver\n";
        const std::string volume = fmt::format("- name: driver\n  configMap: {{name: {}-driver}}\n", name);
        if (const std::size_t at = spec.find("  volumeMounts:\n"); at != std::string::npos) {
            spec.insert(at + std::string_view("  volumeMounts:\n").size(), mount);
            spec.insert(spec.find("\nvolumes:\n") + std::string_view("\nvolumes:\n").size(), volume);
            return spec;
        }
        return spec + "  volumeMounts:\n" + mount + "volumes:\n" + volume;
    };
    const auto ray_pod = [&](const Deployment& of, const char* role) {
        PodToWrite pod;
        pod.restart = "Never";
        pod.checkpoints = !d.checkpoint.folder.empty() && std::string_view(role) == "worker";
        std::string spec = pod_spec(of, pod);
        // KubeRay writes the command of its pods, and restarts them by itself.
        if (const std::size_t at = spec.find("  command:\n"); at != std::string::npos) spec.erase(at, 11);
        if (const std::size_t at = spec.find("restartPolicy: Never\n"); at != std::string::npos) spec.erase(at, 21);
        if (const std::size_t at = spec.find("- name: work\n"); at != std::string::npos)
            spec.replace(at, 13, fmt::format("- name: ray-{}\n", role));
        // Head and workers fetch Ray's own parts of the API server through KubeRay only.
        return with_driver(std::move(spec));
    };
    Deployment head = d;
    head.nodes.gpus = 0, head.nodes.gpu.clear(), head.nodes.vcpus = 4, head.nodes.memory_bytes = 16.0 * (1LL << 30);
    head.nodes.fabric = {}, head.nodes.machine.clear(), head.nodes.cloud = "on-prem", head.environment.clear();
    out +=
        "    headGroupSpec:\n      # It places and watches: no rank runs there.\n      rayStartParams: {num-cpus: "
        "\"0\"}\n"
        "      template:\n        spec:\n" +
        indented(ray_pod(head, "head"), "          ");
    out += fmt::format(
        "    workerGroupSpecs:\n    - groupName: nodes\n      replicas: {0}\n      minReplicas: {0}\n"
        "      maxReplicas: {0}\n      rayStartParams: {{}}\n      template:\n        spec:\n",
        d.nodes.count);
    out += indented(ray_pod(d, "worker"), "          ");
    return {{d.name + ".yaml", out}};
}

std::string rayjob_refusal(const Deployment& d) {
    if (std::string why = kube_training_refusal(d); !why.empty()) return why;
    return d.image.empty() ? "the pods need an image with Ray and the program: add run: {image: ...}" : "";
}

std::string kueue_refusal(const Deployment& d) {
    if (d.serving && d.kind == WorkloadKind::inference)
        return "a queue holds work that ends, and this is a service; kubernetes says it";
    return kube_refusal(d);
}

std::vector<FileToWrite> kueue_files(const Deployment& d) {
    const std::string name = kube_name(d);
    std::string queue = head_comment(d);
    queue +=
        "#   kubectl apply -f queue.yaml   # once, by who runs the cluster; with the CRDs of kubernetes-sigs/kueue\n";
    queue += fmt::format("apiVersion: kueue.x-k8s.io/v1beta1\nkind: ResourceFlavor\nmetadata: {{name: {}}}\nspec:\n",
                         dns_label(d.nodes.machine));
    queue += d.nodes.cloud == "on-prem"
                 ? std::string("  nodeLabels: {}\n")
                 : fmt::format("  nodeLabels: {{node.kubernetes.io/instance-type: {}}}\n", yaml_word(d.nodes.machine));
    const std::string resource = d.nodes.gpus > 0 ? device_resource(d) : "";
    const auto memory_gib = static_cast<std::int64_t>(d.nodes.memory_bytes * d.nodes.count / (1LL << 30));
    queue += fmt::format(
        "---\napiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {{name: {}}}\nspec:\n"
        "  namespaceSelector: {{}}\n  # Who does not fit waits behind who does.\n"
        "  queueingStrategy: BestEffortFIFO\n  resourceGroups:\n"
        "  - coveredResources: [cpu, memory{}]\n    flavors:\n    - name: {}\n      resources:\n"
        "      # What the plan rents: {} x {}.\n"
        "      - {{name: cpu, nominalQuota: {}}}\n      - {{name: memory, nominalQuota: {}Gi}}\n",
        name, resource.empty() ? "" : ", " + resource, dns_label(d.nodes.machine), d.nodes.count, d.nodes.machine,
        d.nodes.vcpus * d.nodes.count, memory_gib);
    if (!resource.empty())
        queue += fmt::format("      - {{name: {}, nominalQuota: {}}}\n", resource,
                             static_cast<int>(std::ceil(d.nodes.gpus)) * d.nodes.count);
    queue += fmt::format(
        "---\napiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\nmetadata: {{name: {0}, namespace: default}}\n"
        "spec: {{clusterQueue: {0}}}\n",
        name);
    std::string work = head_comment(d) + fmt::format("#   kubectl apply -n default -f {}.yaml\n", d.name);
    std::string all = kubernetes_manifests(d);
    const std::size_t job = all.find("apiVersion: batch/v1\n");
    work += all.substr(0, job) + indexed_job(d, fmt::format("kueue.x-k8s.io/queue-name: {}\n", name), true);
    return {{"queue.yaml", queue}, {d.name + ".yaml", work}};
}

}  // namespace stoker

#include "deploy/render/kube_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "deploy/render/kube_front.h"
#include "deploy/render/kube_pod.h"
#include "deploy/render/kubernetes.h"
#include "deploy/render/pools.h"
#include "deploy/render/recipes.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

bool is_service(const Deployment& d) {
    return d.serving && d.kind == WorkloadKind::inference;
}

// Kind of the object with the pods, and where their specs are in it.
struct PodsAt {
    const char* kind;
    std::vector<const char*> specs;
};
PodsAt pods_at(const Deployment& d) {
    if (!is_service(d)) return {"Job", {"/spec/template/spec"}};
    if (d.serving->nodes_per_replica > 1)
        return {"LeaderWorkerSet",
                {"/spec/leaderWorkerTemplate/leaderTemplate/spec", "/spec/leaderWorkerTemplate/workerTemplate/spec"}};
    return {"Deployment", {"/spec/template/spec"}};
}

std::string priority_class(const Deployment& d, const std::string& name) {
    // Far below system-cluster-critical (2,000,000,000), and apart enough for classes between them.
    const bool service = is_service(d);
    const int value = service ? 1'000'000 : d.training ? 100'000 : 10'000;
    return fmt::format(
        "# {}\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata:\n  name: {}\nvalue: {}\n"
        "preemptionPolicy: {}\ndescription: \"{}\"\n---\n",
        service      ? "Requests wait for nobody: jobs on the same nodes make room."
        : d.training ? "Waits for room and takes nobody's: a gang that is preempted loses its steps since the "
                       "checkpoint."
                     : "Fills what is left, and makes room first.",
        name, value, service ? "PreemptLowerPriority" : "Never",
        service      ? "services"
        : d.training ? "trainings"
                     : "work in independent shares");
}

}  // namespace

std::string namespace_guard(const Deployment& d, const std::string& name) {
    std::string out = fmt::format("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {}\n---\n", name);
    out += priority_class(d, name);
    const std::string resource = d.nodes.gpus > 0 ? device_resource(d) : "";
    if (!resource.empty())
        out += fmt::format(
            "# What the plan counts on, and no device more. Of devices Kubernetes enforces requests.* only.\n"
            "apiVersion: v1\nkind: ResourceQuota\nmetadata:\n  name: devices\nspec:\n  hard:\n    requests.{}: "
            "\"{}\"\n---\n",
            resource, static_cast<int>(std::ceil(d.nodes.gpus)) * d.nodes.count);
    out +=
        "# Pods of the namespace talk to each other; from outside only the service port is reached.\n"
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata:\n  name: inside\nspec:\n  podSelector: {}\n"
        "  policyTypes: [Ingress]\n  ingress:\n  - from: [{podSelector: {}}]\n";
    if (!is_service(d)) return out;
    if (!d.front) return out + "  - ports: [{port: http, protocol: TCP}]\n";
    out +=
        "  # What measures, and what the model is scaled by, asks it as well.\n"
        "  - from: [{namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: "
        "[kube-system, monitoring]}]}}]\n    ports: [{port: http, protocol: TCP}]\n";
    return out + fmt::format(
                     "---\n# From outside only what stands before the model is reached, not the model.\n"
                     "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata:\n  name: front\nspec:\n"
                     "  podSelector: {{matchLabels: {{app.kubernetes.io/name: {}}}}}\n  policyTypes: [Ingress]\n"
                     "  ingress:\n  - ports: [{{port: http, protocol: TCP}}]\n",
                     front_name(d));
}

std::string priority_patches(const Deployment& d, const std::string& name) {
    const PodsAt pods = pods_at(d);
    std::string out = fmt::format("- target: {{kind: {}}}\n  patch: |-\n", pods.kind);
    for (const char* spec : pods.specs)
        out += fmt::format("    - {{op: add, path: {}/priorityClassName, value: {}}}\n", spec, name);
    return out;
}

bool needs_device_plugin(const Deployment& d) {
    return d.nodes.gpus > 0 && d.nodes.gpu_vendor == "NVIDIA" && d.nodes.cloud != "gcp";
}

bool needs_infiniband_plugin(const Deployment& d) {
    return pod_takes_infiniband(d) && (d.nodes.cloud == "azure" || d.nodes.cloud == "on-prem");
}

namespace {

std::vector<FileToWrite> device_plugin_files(const Deployment& d) {
    const auto plugin = engine_image("device-plugin", d.nodes.gpu_vendor);
    if (!needs_device_plugin(d) || !plugin) return {};
    std::string azure_taints;
    if (d.nodes.cloud == "azure")
        azure_taints =
            "      - {key: sku, operator: Equal, value: gpu, effect: NoSchedule}\n"
            "      - {key: kubernetes.azure.com/scalesetpriority, operator: Equal, value: spot, effect: NoSchedule}\n";
    return {
        {"device-plugin.yaml",
         head_comment(d) +
             "# NVIDIA's device plug-in, with the toleration of the pool's taint that its own manifest lacks.\n"
             "apiVersion: apps/v1\nkind: DaemonSet\nmetadata:\n  name: nvidia-device-plugin\n  namespace: "
             "kube-system\nspec:\n"
             "  selector: {matchLabels: {name: nvidia-device-plugin}}\n  template:\n    metadata:\n"
             "      labels: {name: nvidia-device-plugin}\n    spec:\n      priorityClassName: system-node-critical\n"
             "      tolerations:\n      - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}\n" +
             azure_taints +
             fmt::format("      containers:\n      - name: nvidia-device-plugin\n        image: {}\n", plugin->image) +
             "        env:\n        - {name: FAIL_ON_INIT_ERROR, value: \"false\"}\n" +
             (d.nodes.mig
                  ? fmt::format("        # Parts are offered as {}, whole GPUs that are left as nvidia.com/gpu.\n"
                                "        - {{name: MIG_STRATEGY, value: mixed}}\n"
                                "        # To see parts of GPUs it needs more than to see GPUs "
                                "(NVIDIA/k8s-device-plugin, its chart).\n"
                                "        - {{name: NVIDIA_MIG_MONITOR_DEVICES, value: all}}\n"
                                "        securityContext: {{capabilities: {{add: [SYS_ADMIN]}}}}\n",
                                device_resource(d))
                  : std::string("        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: "
                                "[ALL]}}\n")) +
             "        volumeMounts:\n        - {name: device-plugin, mountPath: /var/lib/kubelet/device-plugins}\n"
             "      volumes:\n      - {name: device-plugin, hostPath: {path: /var/lib/kubelet/device-plugins}}\n"}};
}

std::vector<FileToWrite> infiniband_plugin_files(const Deployment& d) {
    const auto driver = engine_image("doca-driver", ""), plugin = engine_image("rdma-plugin", "");
    if (!needs_infiniband_plugin(d) || !driver || !plugin) return {};
    // The operator takes an image in three parts.
    const auto parts = [](const EngineImage& image) {
        const std::size_t slash = image.image.rfind('/'), colon = image.image.rfind(':');
        return fmt::format("    repository: {}\n    image: {}\n    version: {}\n", image.image.substr(0, slash),
                           image.image.substr(slash + 1, colon - slash - 1), image.image.substr(colon + 1));
    };
    const bool azure = d.nodes.cloud == "azure";
    return {
        {"infiniband.yaml",
         head_comment(d) +
             "# Read by NVIDIA's network operator. One pod a node takes all of its ports, so that any number of them "
             "will do.\n"
             "apiVersion: mellanox.com/v1alpha1\nkind: NicClusterPolicy\nmetadata:\n  name: nic-cluster-policy\n"
             "spec:\n  nodeAffinity:\n    requiredDuringSchedulingIgnoredDuringExecution:\n"
             "      nodeSelectorTerms:\n      - matchExpressions:\n"
             "        - {key: feature.node.kubernetes.io/pci-15b3.present, operator: In, values: [\"true\"]}\n" +
             (azure ? "  tolerations:\n  - {key: sku, operator: Equal, value: gpu, effect: NoSchedule}\n"
                      "  - {key: kubernetes.azure.com/scalesetpriority, operator: Equal, value: spot, effect: "
                      "NoSchedule}\n" +
                          indented(why("the driver, which AKS's own image does not have", driver->source), "  ") +
                          "  ofedDriver:\n" + parts(*driver)
                    // The driver is that of the kernel, by node-setup.sh.
                    : fmt::format("  tolerations:\n  - {{key: {}, operator: Exists, effect: NoSchedule}}\n",
                                  device_resource(d))) +
             indented(why("the plug-in, which hands them out", plugin->source), "  ") + "  rdmaSharedDevicePlugin:\n" +
             parts(*plugin) +
             "    config: |\n      {\"configList\": [{\"resourceName\": \"shared_ib\", \"rdmaHcaMax\": 63,\n"
             "        \"selectors\": {\"vendors\": [\"15b3\"], \"linkTypes\": [\"infiniband\"]}}]}\n"}};
}

}  // namespace

std::vector<FileToWrite> cluster_plugin_files(const Deployment& d) {
    std::vector<FileToWrite> files = device_plugin_files(d);
    for (FileToWrite& file : infiniband_plugin_files(d)) files.push_back(std::move(file));
    return files;
}

std::string network_operator_words() {
    return "helm upgrade --install network-operator network-operator --repo https://helm.ngc.nvidia.com/nvidia \\\n"
           "    --version " +
           release_in_use("network-operator").release +
           " -n network-operator --create-namespace --wait \\\n"
           "    --set 'node-feature-discovery.worker.tolerations[0].operator=Exists'";
}

std::string amd_operator_hint(const Deployment& d) {
    if (d.nodes.gpus <= 0 || d.nodes.gpu_vendor != "AMD") return "";
    return "Until AMD's GPU operator is in it, with cert-manager and a DeviceConfig that tolerates sku=gpu, its nodes\n"
           "offer no amd.com/gpu and the pods stay Pending: https://instinct.docs.amd.com/projects/gpu-operator";
}

std::vector<ClusterStep> cluster_steps(const Deployment& d, std::string_view group) {
    const std::string amd = amd_operator_hint(d);
    if (amd.empty() && !needs_device_plugin(d) && !needs_infiniband_plugin(d)) return {};
    const std::string name = dns_label(d.name, 40);
    std::vector<ClusterStep> steps{{"", d.nodes.cloud == "aws"
                                            ? "aws eks update-kubeconfig --name " + name
                                            : fmt::format("az aks get-credentials -g {} -n {}", group, name)}};
    if (needs_device_plugin(d))
        steps.push_back(
            {"Without the plug-in its nodes offer no nvidia.com/gpu", "kubectl apply -f device-plugin.yaml"});
    if (!amd.empty()) steps.push_back({amd, ""});
    if (needs_infiniband_plugin(d)) {
        steps.push_back({"Without NVIDIA's network operator they offer no rdma/shared_ib, and pods wait for it",
                         network_operator_words()});
        steps.push_back({"", "kubectl apply -f infiniband.yaml"});
    }
    return steps;
}

std::string cluster_hint(const Deployment& d, std::string_view comment, std::string_view group) {
    const std::vector<ClusterStep> steps = cluster_steps(d, group);
    if (steps.empty()) return "";
    std::string out = fmt::format("{} When the cluster is there:\n", comment);
    for (const ClusterStep& step : steps) {
        if (!step.reason.empty())
            out += indented(step.reason + (step.command.empty() ? "\n" : ":\n"), fmt::format("{} ", comment));
        if (!step.command.empty()) out += indented(step.command + "\n", fmt::format("{}   ", comment));
    }
    return out;
}

std::string azure_monitoring(const Deployment& d) {
    const std::string name = dns_label(d.name, 50);
    std::string out = head_comment(d);
    const auto exporter = engine_image("dcgm-exporter", d.nodes.gpus > 0 ? d.nodes.gpu_vendor : "");
    if (exporter)
        out += fmt::format(
            "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: gpu-monitoring\n---\n"
            "# One exporter on each GPU node: use, memory, temperature, XID and ECC errors under DCGM's names.\n"
            "apiVersion: apps/v1\nkind: DaemonSet\nmetadata:\n  name: dcgm-exporter\n  namespace: gpu-monitoring\n"
            "spec:\n  selector: {{matchLabels: {{app.kubernetes.io/name: dcgm-exporter}}}}\n  template:\n    "
            "metadata:\n"
            "      labels: {{app.kubernetes.io/name: dcgm-exporter}}\n    spec:\n"
            "      nodeSelector: {{kubernetes.azure.com/accelerator: nvidia}}\n      tolerations:\n"
            "      - {{key: sku, operator: Equal, value: gpu, effect: NoSchedule}}\n"
            "      - {{key: kubernetes.azure.com/scalesetpriority, operator: Equal, value: spot, effect: NoSchedule}}\n"
            "      automountServiceAccountToken: false\n      containers:\n      - name: dcgm-exporter\n"
            "        image: {}\n        env:\n"
            "        - {{name: DCGM_EXPORTER_LISTEN, value: \":9400\"}}\n"
            "        # Which pod has which device, from the kubelet.\n"
            "        - {{name: DCGM_EXPORTER_KUBERNETES, value: \"true\"}}\n"
            "        ports:\n        - {{name: metrics, containerPort: 9400}}\n"
            "        # Counters of the profiler are read as administrator only (NVIDIA/dcgm-exporter, README).\n"
            "        securityContext: {{runAsUser: 0, capabilities: {{add: [SYS_ADMIN]}}}}\n"
            "        resources: {{requests: {{cpu: 100m, memory: 256Mi}}, limits: {{memory: 512Mi}}}}\n"
            "        volumeMounts:\n        - {{name: pods, mountPath: /var/lib/kubelet/pod-resources, readOnly: "
            "true}}\n"
            "      volumes:\n      - {{name: pods, hostPath: {{path: /var/lib/kubelet/pod-resources}}}}\n---\n"
            "# Of Azure's Managed Prometheus: the group is its own, not the Prometheus operator's.\n"
            "apiVersion: azmonitoring.coreos.com/v1\nkind: PodMonitor\nmetadata:\n  name: dcgm-exporter\n"
            "  namespace: gpu-monitoring\nspec:\n"
            "  selector: {{matchLabels: {{app.kubernetes.io/name: dcgm-exporter}}}}\n"
            "  podMetricsEndpoints:\n  - {{port: metrics, interval: 30s}}\n---\n",
            exporter->image);
    if (is_service(d) && d.serving->nodes_per_replica == 1)
        out += fmt::format(
            "# Latency, requests in flight and tokens, as the engine itself tells them.\n"
            "apiVersion: azmonitoring.coreos.com/v1\nkind: PodMonitor\nmetadata:\n  name: {0}\n"
            "  namespace: {0}-prod\nspec:\n  selector: {{matchLabels: {{app.kubernetes.io/name: {0}}}}}\n"
            "  podMetricsEndpoints:\n  - {{port: http, path: /metrics, interval: 15s}}\n---\n",
            name);
    return out +
           "# Node pools that Azure manages whole have an exporter of their own, which is read when this says so\n"
           "# (learn.microsoft.com, Monitor GPU metrics, 2026-05-01); a pool of this bundle has the one above.\n"
           "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ama-metrics-settings-configmap\n"
           "  namespace: kube-system\ndata:\n  schema-version: v1\n  config-version: ver1\n"
           "  default-scrape-settings-enabled: |-\n    dcgmexporter = true\n";
}

std::string azure_scaling(const Deployment& d) {
    if (!is_service(d) || d.serving->nodes_per_replica > 1) return "";
    const auto signal = scaling_signal(d);
    if (!signal) return "";
    const std::string name = dns_label(d.name, 50), space = name + "-prod";
    return head_comment(d) +
           fmt::format(
               "# Applied by the script of this folder, which knows QUERY_ENDPOINT and CLIENT_ID.\n"
               "apiVersion: keda.sh/v1alpha1\nkind: TriggerAuthentication\nmetadata:\n  name: {0}\n  namespace: {1}\n"
               "spec:\n  # It may read measurements, and nothing else.\n"
               "  podIdentity: {{provider: azure-workload, identityId: CLIENT_ID}}\n",
               name, space) +
           scaled_object(d, *signal,
                         fmt::format("authenticationRef: {{name: {}}}\nmetadata:\n  # Of Azure's Managed Prometheus.\n"
                                     "  serverAddress: QUERY_ENDPOINT\n",
                                     name),
                         space);
}

std::string leader_worker_set_words(const Deployment& d) {
    if (!is_service(d) || d.serving->nodes_per_replica < 2) return "";
    const Release release = release_in_use("lws");
    return why("replicas of several nodes are a LeaderWorkerSet, whose controller Kubernetes does not bring",
               release.source) +
           fmt::format(
               "kubectl apply --server-side -f "
               "https://github.com/kubernetes-sigs/lws/releases/download/{}/manifests.yaml\n"
               "kubectl -n lws-system rollout status deployment lws-controller-manager --timeout 10m\n",
               release.release);
}

std::string blob_weights(const Deployment& d, const std::string& name) {
    if (!is_service(d) || d.serving->nodes_per_replica > 1) return "";
    // Weights fit the devices of a replica, so that no more is kept than those hold.
    const double held = d.nodes.gpus > 0 ? d.nodes.gpu_memory_bytes * devices_of_pod(d) : d.nodes.memory_bytes;
    const double gib = std::max(10.0, std::ceil(held / (1LL << 30)));
    return fmt::format(
        "# Weights lie in a Blob container: who comes when they are there reads them; replicas that start together on "
        "an "
        "empty\n# one fetch them each.\n"
        "# /mnt is the node's own disk, NVMe where the size has it: what is read once is read from there again.\n"
        "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata:\n  name: {0}-weights\n"
        "provisioner: blob.csi.azure.com\n"
        "# Weights outlive the claim: to fetch them again costs more than to keep them.\nreclaimPolicy: Retain\n"
        "{3}parameters: {{protocol: fuse2, skuName: Premium_LRS{4}}}\nmountOptions:\n- \"-o allow_other\"\n"
        "- \"--file-cache-timeout-in-seconds=86400\"\n- \"--tmp-path=/mnt/blobfuse-{0}\"\n"
        "- \"--cache-size-mb={1:.0f}\"\n# A listing at every mount is paid for.\n"
        "- \"--cancel-list-on-mount-seconds=10\"\n---\n"
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: {0}-weights\nspec:\n"
        "  accessModes: [ReadWriteMany]\n  storageClassName: {0}-weights\n"
        "  resources: {{requests: {{storage: {2:.0f}Gi}}}}\n",
        name, gib * 1024, gib,
        d.sensitive ? "# Its storage account has an endpoint in the cluster's network, and none on the internet.\n"
                    : "",
        d.sensitive ? ", networkEndpointType: privateEndpoint" : "");
}

std::string azure_service_patches(const Deployment& d, const std::string& name) {
    if (!is_service(d) || d.serving->nodes_per_replica > 1) return "";
    std::string claims = "# The claim in the place of an empty folder.\n";
    for (const Deployment& pool : pools_of(d))
        claims += fmt::format(
            "- patch: |-\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata: {{name: {0}{1}}}\n"
            "    spec:\n      template:\n        spec:\n          volumes:\n"
            "          - name: weights\n            emptyDir: null\n"
            "            persistentVolumeClaim: {{claimName: {0}-weights}}\n",
            name, pool_suffix(pool));
    return claims +
           fmt::format(
               "# Behind a load balancer of the network, not of the internet: who calls from outside comes through "
               "your\n"
               "# gateway.\n"
               "- patch: |-\n    apiVersion: v1\n    kind: Service\n    metadata:\n      name: {}\n"
               "      annotations: {{service.beta.kubernetes.io/azure-load-balancer-internal: \"true\"}}\n"
               "    spec: {{type: LoadBalancer}}\n",
               d.front ? front_name(d) : name) +
           (!d.front || d.front->machine.empty()
                ? ""
                : fmt::format("# In the pool of its own (AKS labels the nodes of each with its name).\n"
                              "- patch: |-\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata: {{name: {}}}\n"
                              "    spec:\n      template:\n        spec:\n"
                              "          nodeSelector: {{kubernetes.azure.com/agentpool: {}}}\n",
                              front_name(d), kFrontPool));
}

}  // namespace stoker

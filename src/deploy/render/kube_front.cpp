#include "deploy/render/kube_front.h"

#include <fmt/format.h>

#include "deploy/render/engine_flags.h"
#include "deploy/render/kube_pod.h"
#include "deploy/render/recipes.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

std::string metadata(const std::string& name) {
    return fmt::format("metadata:\n  name: {}\n  labels:\n{}", name, indented(labels(name), "    "));
}

// A pod that asks for no device may still stand on a GPU node, and keep it from being given back.
std::string off_gpu_nodes(const Deployment& d) {
    if (d.nodes.gpus <= 0) return "";
    if (d.nodes.cloud == "on-prem")
        return "# It tolerates no taint of GPU nodes. Where all nodes of your own have GPUs and no taint, it is beside "
               "the "
               "model\n# and asks for no device.\n";
    return fmt::format(
        "# It tolerates no taint of GPU nodes, and is never on one that has lost its taint either.\n"
        "affinity:\n  nodeAffinity:\n    requiredDuringSchedulingIgnoredDuringExecution:\n      nodeSelectorTerms:\n"
        "      - matchExpressions:\n        - {{key: node.kubernetes.io/instance-type, operator: NotIn, values: "
        "[{}]}}\n",
        yaml_word(d.nodes.machine));
}

std::string pod_of(const Deployment& d, const std::string& name) {
    const FrontWork& front = *d.front;
    const std::string model = dns_label(d.name, 50);
    std::string out =
        "# Answers that have begun are ended.\nterminationGracePeriodSeconds: 120\n"
        "# Nothing in the pod talks to the API server.\nautomountServiceAccountToken: false\n";
    out += fmt::format(
        "# Of a private registry: kubectl create secret docker-registry {0} --docker-server={1} ...\n"
        "imagePullSecrets: [{{name: {0}}}]\n",
        model + "-registry", registry_of(front.image));
    out += off_gpu_nodes(d);
    out += fmt::format(
        "# A node that is lost takes not all of them.\ntopologySpreadConstraints:\n- maxSkew: 1\n  topologyKey: "
        "kubernetes.io/hostname\n  whenUnsatisfiable: ScheduleAnyway\n"
        "  labelSelector: {{matchLabels: {{app.kubernetes.io/name: {}}}}}\n",
        name);
    std::string container = fmt::format("name: front\nimage: {}\n", yaml_word(front.image));
    if (!front.command.empty()) {
        container += "command:\n";
        for (const std::string& word : front.command) container += fmt::format("- {}\n", yaml_word(word));
    }
    container += fmt::format("env:\n# Where the model answers.\n- name: MODEL_URL\n  value: {}\n",
                             json_text(fmt::format("http://{}", model)));
    container += fmt::format(
        "- name: MODEL_API_KEY\n  valueFrom: {{secretKeyRef: {{name: {}, key: api-key, optional: true}}}}\n", model);
    container += fmt::format("ports:\n- {{name: http, containerPort: {}}}\n", front.port);
    container += front.health.empty()
                     ? std::string("readinessProbe:\n  tcpSocket: {port: http}\n  periodSeconds: 5\n")
                     : fmt::format("readinessProbe:\n  httpGet: {{path: {}, port: http}}\n  periodSeconds: 5\n",
                                   yaml_word(front.health));
    container +=
        "# The Service forgets a pod that goes within seconds, and sends to it until then.\n"
        "lifecycle: {preStop: {sleep: {seconds: 10}}}\n"
        "# Nothing in it becomes more than it was started as.\nsecurityContext: {allowPrivilegeEscalation: false}\n";
    const std::int64_t mib = whole_mib(front.memory_bytes);
    container += fmt::format(
        "# No device: GPUs are the model's.\nresources:\n  requests:\n    cpu: {0}m\n    memory: {1}Mi\n  limits:\n    "
        "memory: {1}Mi\n",
        front.cpu_milli, mib);
    return out + "containers:\n- " + indented(container, "  ").substr(2);
}

}  // namespace

std::string front_name(const Deployment& d) {
    return dns_label(d.name, 50) + "-front";
}

std::string front_manifests(const Deployment& d) {
    if (!d.front) return "";
    const FrontWork& front = *d.front;
    const std::string name = front_name(d);
    std::string out = fmt::format(
        "---\n# What stands before the model: it needs no GPU, and scales apart from it.\napiVersion: apps/v1\nkind: "
        "Deployment\n{0}spec:\n  replicas: {1}\n  selector: {{matchLabels: {{app.kubernetes.io/name: {2}}}}}\n"
        "  strategy: {{type: RollingUpdate, rollingUpdate: {{maxSurge: 1, maxUnavailable: 0}}}}\n"
        "  template:\n    metadata:\n      labels:\n{3}    spec:\n{4}",
        metadata(name), front.replicas, name, indented(labels(name), "        "), indented(pod_of(d, name), "      "));
    out += fmt::format(
        "---\n# Who calls comes here.\napiVersion: v1\nkind: Service\n{}spec:\n  type: ClusterIP\n  selector:\n"
        "    app.kubernetes.io/name: {}\n  ports:\n  - {{name: http, port: 80, targetPort: http}}\n",
        metadata(name), name);
    if (front.replicas > 1)
        out += fmt::format(
            "---\n# A drain of nodes takes one at a time.\napiVersion: policy/v1\nkind: PodDisruptionBudget\n{}spec:\n"
            "  maxUnavailable: 1\n  selector: {{matchLabels: {{app.kubernetes.io/name: {}}}}}\n",
            metadata(name), name);
    return out +
           fmt::format(
               "---\n# Its own CPUs, which metrics-server tells (AKS, GKE and k3s bring it; EKS as an add-on): {0} "
               "pods are\n# what the load of the file takes at {1:.0f} % busy, and twice as many are the most, since "
               "that load is a mean.\n"
               "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\n{2}spec:\n"
               "  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {3}}}\n"
               "  minReplicas: {4}\n  maxReplicas: {5}\n  metrics:\n  - type: Resource\n"
               "    resource: {{name: cpu, target: {{type: Utilization, averageUtilization: {1:.0f}}}}}\n",
               front.replicas, front.busy * 100, metadata(name), name, front.least, front.most);
}

}  // namespace stoker

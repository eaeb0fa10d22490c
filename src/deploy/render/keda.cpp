// keda: a service whose replicas follow the requests in flight through KEDA and Prometheus: the kubernetes target's
// objects, a PodMonitor that reads the engine's metrics, and a ScaledObject in the place of the autoscaler.
#include <fmt/format.h>

#include "deploy/render/kube_front.h"
#include "deploy/render/kubernetes.h"
#include "deploy/render/pools.h"
#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

// Of kube-prometheus-stack; another installation has another.
constexpr std::string_view kPrometheus = "http://prometheus-operated.monitoring.svc:9090";

std::string pod_monitor(const Deployment& d, const std::string& name) {
    return fmt::format(
        "---\n# Read by the Prometheus operator, every 15 s: a queue that grows is seen before it is long.\n"
        "apiVersion: monitoring.coreos.com/v1\nkind: PodMonitor\n{}spec:\n"
        "  selector: {{matchLabels: {{app.kubernetes.io/name: {}}}}}\n"
        "  podMetricsEndpoints:\n  - {{port: http, path: /metrics, interval: 15s}}\n",
        manifest_metadata(d, name), name);
}

}  // namespace

std::string scaled_object(const Deployment& d, const ScalingSignal& signal, std::string_view prometheus,
                          std::string_view space) {
    const std::string name = dns_label(d.name, 50);
    const int replicas = elastic_pool(d).serving->replicas, kept = d.serving->replicas - replicas;
    std::string query = fmt::format("sum({}{{{}pod=~\"{}-.*\"}})", signal.metric,
                                    space.empty() ? "" : fmt::format("namespace=\"{}\",", space), name);
    // Those that stay carry their part.
    if (kept > 0) query = fmt::format("clamp_min({} - {:.0f}, 0)", query, kept * signal.most_in_flight);
    return fmt::format(
        "---\n# Of all replicas together, divided by what one carries within the limits ({0:.0f} in flight, from the\n"
        "# plan): so many replicas there are. {1}{8} are what the load of the file takes, and never more are started.\n"
        "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\n{2}{7}spec:\n"
        "  scaleTargetRef: {{name: {3}}}\n  minReplicaCount: {4}\n  maxReplicaCount: {1}\n"
        "  pollingInterval: 15\n"
        "  # Without an answer of Prometheus all of them run: too many cost money, too few lose requests.\n"
        "  fallback: {{failureThreshold: 4, replicas: {1}}}\n"
        "  advanced:\n    horizontalPodAutoscalerConfig:\n      behavior:\n"
        "        # A replica takes minutes to load: none is given up for a short lull.\n"
        "        scaleDown: {{stabilizationWindowSeconds: 900}}\n"
        "  triggers:\n  - type: prometheus\n{5}"
        "      query: {6}\n      threshold: \"{0:.0f}\"\n",
        signal.most_in_flight, replicas, manifest_metadata(d, name), name, signal.least, indented(prometheus, "    "),
        query, space.empty() ? "" : fmt::format("  namespace: {}\n", space), beside_words(d));
}

std::string keda_refusal(const Deployment& d) {
    if (!d.serving || d.kind != WorkloadKind::inference) return "only a service has replicas that follow its load";
    if (std::string why = kubernetes_refusal(d); !why.empty()) return why;
    if (d.serving->nodes_per_replica > 1)
        return "a replica takes several nodes, and a LeaderWorkerSet is not scaled by single pods";
    if (!scaling_signal(d))
        return "one replica carries the load, or the engine tells nothing to scale by: kubernetes says it whole";
    return "";
}

std::vector<FileToWrite> keda_files(const Deployment& d) {
    const std::string name = dns_label(d.name, 50);
    return {
        {d.name + ".yaml", fmt::format("{}#   kubectl apply -f {}.yaml\n"
                                       "# It takes KEDA (keda.sh/v1alpha1) and the Prometheus operator.\n",
                                       head_comment(d), d.name) +
                               service_manifests(d) + pod_monitor(d, name) +
                               scaled_object(d, *scaling_signal(d),
                                             fmt::format("metadata:\n"
                                                         "  # Of kube-prometheus-stack in the namespace monitoring; "
                                                         "yours may be elsewhere.\n"
                                                         "  serverAddress: {}\n",
                                                         kPrometheus),
                                             "") +
                               front_manifests(d)}};
}

}  // namespace stoker

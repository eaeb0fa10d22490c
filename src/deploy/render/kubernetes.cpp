// kubernetes: a training as an Indexed Job whose pods find each other through a headless Service; independent shares as
// an Indexed Job; a service as Deployment, Service, PodDisruptionBudget and autoscaler, or as LeaderWorkerSet where a
// replica takes several nodes.
#include <fmt/format.h>

#include <cmath>

#include "deploy/render/kube_front.h"
#include "deploy/render/kube_pod.h"
#include "deploy/render/kubernetes.h"
#include "deploy/render/pools.h"
#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

std::string metadata(const Deployment& d, std::string_view name) {
    return fmt::format("metadata:\n  name: {}\n  labels:\n{}", name, indented(labels(d), "    "));
}

// What tells the pods of one of two pools from the other's; empty: there is one.
std::string_view pool_word(const Deployment& d) {
    return !d.nodes.one_of_two ? "" : d.nodes.spot() ? "spot" : "on-demand";
}

std::string pool_label(const Deployment& d) {
    return d.nodes.one_of_two ? fmt::format("app.kubernetes.io/component: {}\n", pool_word(d)) : "";
}

// The pods of a service, or of one of its pools.
std::string pods_selected(const Deployment& d) {
    return fmt::format("matchLabels: {{app.kubernetes.io/name: {}{}}}", dns_label(d.name, 50),
                       d.nodes.one_of_two ? fmt::format(", app.kubernetes.io/component: {}", pool_word(d)) : "");
}

std::string headless_service(const Deployment& d) {
    const std::string name = dns_label(d.name, 50);
    return fmt::format(
        "apiVersion: v1\nkind: Service\n{}spec:\n  clusterIP: None\n"
        "  # Ranks look for the first before any of them is ready.\n  publishNotReadyAddresses: true\n"
        "  selector: {{job-name: {}}}\n",
        metadata(d, name), name);
}

// Requests that one replica has in flight at the most it sustains (Little's law): what an autoscaler can see.
double most_in_flight(const Deployment& d) {
    const PredictedServing& p = *d.prediction.serving;
    if (!(p.most_requests_per_s > 0) || !(p.requests_per_s > 0) || p.replicas < 1) return 0;
    const double output_tokens = p.tokens_per_s.mid / p.requests_per_s;
    const double seconds = p.ttft_s.mid + output_tokens * p.tpot_s.mid;
    return std::floor(p.most_requests_per_s / p.replicas * seconds);
}

std::string_view running_metric(std::string_view engine) {
    if (engine == "vllm") return "vllm:num_requests_running";
    if (engine == "sglang") return "sglang:num_running_reqs";
    if (engine == "tgi") return "tgi_batch_current_size";
    if (engine == "llama.cpp") return "llamacpp:requests_processing";
    return "";
}

std::string service_of(const Deployment& d) {
    const std::string name = dns_label(d.name, 50);
    return fmt::format(
        "apiVersion: v1\nkind: Service\n{}spec:\n  type: ClusterIP\n  selector:\n    app.kubernetes.io/name: {}\n"
        "  ports:\n  - {{name: http, port: 80, targetPort: http}}\n",
        metadata(d, name), name);
}

std::string replicas_apart(const Deployment& d) {
    if (d.nodes.placement != NodePlacement::apart || d.ranks.per_node > 1) return "";
    return reason_of(d, "nodes.placement") +
           fmt::format(
               "topologySpreadConstraints:\n"
               "- maxSkew: 1\n  topologyKey: kubernetes.io/hostname\n  whenUnsatisfiable: DoNotSchedule\n"
               "  labelSelector: {{{}}}\n",
               pods_selected(d));
}

std::string deployment_of(const Deployment& d, std::string_view engine) {
    const std::string name = dns_label(d.name, 50) + std::string(pool_suffix(d));
    const ServingWork& work = *d.serving;
    std::string out;
    if (d.nodes.one_of_two)
        out += d.nodes.spot() ? "# The replicas on spot: they go with their nodes, and come back when there are some.\n"
                              : "# The replicas that stay, whatever is taken away.\n";
    out += "apiVersion: apps/v1\nkind: Deployment\n" + metadata(d, name) + "spec:\n";
    out += fmt::format("  replicas: {}\n  selector: {{{}}}\n", work.replicas, pods_selected(d));
    out +=
        "  # No GPU is free for a replica more than planned: one goes before its successor comes.\n"
        "  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}\n"
        "  progressDeadlineSeconds: 3600\n";
    out +=
        "  template:\n    metadata:\n      labels:\n" + indented(labels(d) + pool_label(d), "        ") + "    spec:\n";
    return out + indented(replicas_apart(d) + pod_spec(d, serving_pod(d, engine)), "      ");
}

std::string disruption_budget(const Deployment& d) {
    if (d.serving->replicas < 2) return "";
    const std::string name = dns_label(d.name, 50);
    return fmt::format(
        "---\n# A drain of nodes takes one replica at a time.\napiVersion: policy/v1\nkind: "
        "PodDisruptionBudget\n{}spec:\n"
        "  maxUnavailable: 1\n  selector: {{matchLabels: {{app.kubernetes.io/name: {}}}}}\n",
        metadata(d, name), name);
}

std::string autoscaler(const Deployment& d) {
    const auto signal = scaling_signal(d);
    if (!signal) return "";
    const std::string name = dns_label(d.name, 50);
    const auto& [metric, in_flight, least] = *signal;
    const int replicas = elastic_pool(d).serving->replicas;
    return fmt::format(
        "---\n# Requests in flight, not CPU: a busy GPU shows on no CPU. {} comes from the engine's own metrics "
        "through\n"
        "# prometheus-adapter; without it the number stays as it is (the target keda brings what it needs). {:.0f} in\n"
        "# flight is the most that the plan lets a replica carry within the limits;\n"
        "# {} replicas{} are what it costs at the load that the file asks for, and never more are started.\n"
        "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\n{}spec:\n"
        "  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {}}}\n"
        "  minReplicas: {}\n  maxReplicas: {}\n"
        "  metrics:\n  - type: Pods\n    pods:\n      metric: {{name: \"{}\"}}\n"
        "      target: {{type: AverageValue, averageValue: \"{:.0f}\"}}\n"
        "  behavior:\n    # A replica takes minutes to load: none is given up for a short lull.\n"
        "    scaleDown: {{stabilizationWindowSeconds: 900}}\n",
        metric, in_flight, replicas, beside_words(d), metadata(d, name), name, least, replicas, metric, in_flight);
}

// Several nodes a replica: the leader answers, the others follow it (LeaderWorkerSet, a CRD of kubernetes-sigs/lws).
std::string leader_worker_set(const Deployment& d, std::string_view engine) {
    const ServingWork& work = *d.serving;
    PodToWrite pod = serving_pod(d, engine);
    std::string line;
    for (const std::string& word : pod.command) line += (line.empty() ? "" : " ") + shell_word(word);
    if (engine == "sglang")
        line +=
            fmt::format(" --nnodes {} --node-rank \"$LWS_WORKER_INDEX\" --dist-init-addr \"$LWS_LEADER_ADDRESS:29500\"",
                        work.nodes_per_replica);
    else
        line += fmt::format(" --nnodes {} --node-rank \"$LWS_WORKER_INDEX\" --master-addr \"$LWS_LEADER_ADDRESS\"",
                            work.nodes_per_replica);
    PodToWrite worker = pod;
    pod.command = {"sh", "-c", "exec " + line};
    worker.command = {"sh", "-c", "exec " + line + (engine == "vllm" ? " --headless" : "")};
    worker.probe.clear(), worker.port.clear();
    const auto part = [&](const char* key, const PodToWrite& each) {
        return fmt::format("    {}:\n      metadata:\n        labels:\n{}          role: {}\n      spec:\n{}", key,
                           indented(labels(d) + pool_label(d), "          "), std::string_view(key).substr(0, 6),
                           indented(pod_spec(d, each), "        "));
    };
    return fmt::format(
               "# A replica takes {} nodes, started and restarted together: LeaderWorkerSet of kubernetes-sigs/lws.\n"
               "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\n{}spec:\n  replicas: {}\n"
               "  leaderWorkerTemplate:\n    size: {}\n    restartPolicy: RecreateGroupOnPodRestart\n",
               work.nodes_per_replica, metadata(d, dns_label(d.name, 50) + std::string(pool_suffix(d))), work.replicas,
               work.nodes_per_replica) +
           part("leaderTemplate", pod) + part("workerTemplate", worker);
}

std::string serving_manifests(const Deployment& d, bool scaled) {
    const std::string engine = engine_of(d);
    if (d.serving->nodes_per_replica > 1) {
        std::string out;
        for (const Deployment& pool : pools_of(d)) out += leader_worker_set(pool, engine) + "---\n";
        out += service_of(d);
        // Only leaders answer.
        const std::string selector = fmt::format("selector:\n    app.kubernetes.io/name: {}\n", dns_label(d.name, 50));
        return out.replace(out.rfind(selector), selector.size(), selector + "    role: leader\n") + front_manifests(d);
    }
    return service_manifests(d) + (scaled ? autoscaler(d) : "") + front_manifests(d);
}

}  // namespace

std::string manifest_metadata(const Deployment& d, std::string_view name) {
    return metadata(d, name);
}

std::optional<ScalingSignal> scaling_signal(const Deployment& d) {
    const Deployment part = elastic_pool(d);
    ScalingSignal signal{.metric = std::string(running_metric(engine_of(d))),
                         .most_in_flight = d.prediction.serving ? most_in_flight(d) : 0,
                         .least = d.nodes.placement == NodePlacement::apart && !part.nodes.one_of_two ? 2 : 1};
    if (part.serving->replicas < 2 || !(signal.most_in_flight >= 1) || signal.metric.empty()) return std::nullopt;
    if (signal.least >= part.serving->replicas) return std::nullopt;
    return signal;
}

std::string service_manifests(const Deployment& d) {
    std::string out;
    for (const Deployment& pool : pools_of(d)) out += deployment_of(pool, engine_of(d)) + "---\n";
    return out + service_of(d) + disruption_budget(d);
}

std::string indexed_job(const Deployment& d, std::string_view more_labels, bool suspended) {
    const std::string name = dns_label(d.name, 50);
    const bool gang = d.training.has_value();
    const int pods = gang ? d.nodes.count : d.ranks.count;
    std::string out =
        fmt::format("apiVersion: batch/v1\nkind: Job\n{}{}spec:\n", metadata(d, name), indented(more_labels, "    "));
    if (suspended) out += "  # Kueue starts it, all pods or none.\n  suspend: true\n";
    if (pods > 1) out += "  completionMode: Indexed\n";
    out += fmt::format("  completions: {}\n  parallelism: {}\n", pods, pods);
    const int again = gang ? (d.checkpoint.folder.empty() ? d.policy.restarts : d.policy.attempts - 1) : 3;
    if (gang && pods > 1)
        out += fmt::format("  # When one pod ends the others fail too: {} of them, {} time{} again.\n", pods, again,
                           again == 1 ? "" : "s");
    out += fmt::format("  backoffLimit: {}\n", again * pods);
    out +=
        "  podFailurePolicy:\n    rules:\n"
        "    # An eviction, a drain or a preemption is no failure of the work.\n"
        "    - {action: Ignore, onPodConditions: [{type: DisruptionTarget, status: \"True\"}]}\n";
    if (d.lease.hard_max_s > 0) out += fmt::format("  activeDeadlineSeconds: {}\n", d.lease.hard_max_s);
    out += "  # What has ended is looked at for a day.\n  ttlSecondsAfterFinished: 86400\n";
    out += "  template:\n    metadata:\n      labels:\n" + indented(labels(d), "        ") + "    spec:\n";
    PodToWrite pod = gang ? training_pod(d, fmt::format("{}-0.{}:29500", name, name)) : share_pod(d);
    if (gang && pods > 1) pod.subdomain = name;
    if (!gang && pods == 1) pod.raw_environment.clear(), pod.environment.clear();
    return out + indented(pod_spec(d, pod), "      ");
}

std::string kubernetes_manifests(const Deployment& d, bool autoscaler) {
    if (d.serving && d.kind == WorkloadKind::inference) return serving_manifests(d, autoscaler);
    std::string out;
    if (const std::string claim = checkpoint_claim(d); !claim.empty()) out += claim + "---\n";
    if (d.training && d.nodes.count > 1) out += headless_service(d) + "---\n";
    return out + indexed_job(d, "", false);
}

std::string kubernetes_refusal(const Deployment& d) {
    if (std::string why = kube_refusal(d); !why.empty()) return why;
    if (!d.serving || d.kind != WorkloadKind::inference) return "";
    const std::string engine = engine_of(d);
    if (engine.empty())
        return fmt::format(
            "the plan counts on {}, for which no server is known here; framework: vllm in the file plans "
            "for one",
            d.framework);
    if (std::string why = engine_refusal(engine, d); !why.empty()) return why;
    if (d.serving->nodes_per_replica > 1 && d.serving->shape.data > 1)
        return "a replica spans nodes and attends in data parallel groups: vllm says it, node by node";
    return "";
}

std::vector<FileToWrite> kubernetes_files(const Deployment& d) {
    return {{d.name + ".yaml",
             fmt::format("{}#   kubectl apply -f {}.yaml\n", head_comment(d), d.name) + kubernetes_manifests(d)}};
}

}  // namespace stoker

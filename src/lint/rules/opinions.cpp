// K8S017, K8S020, K8S022, K8S030, K8S034: matters of policy, off unless a profile or --select asks for them.
#include <algorithm>

#include <fmt/format.h>

#include "lint/rules/common_containers.h"

namespace stoker::lint {

namespace {

const Container* opinions_gpu_container(const Workload& workload) {
    for (const Container& each : workload.containers)
        if (!each.init && accelerator_of(each)) return &each;
    return nullptr;
}

bool opinions_has_gang(const Workload& workload) {
    const auto marks = [](const Node* metadata) {
        for (const char* list : {"labels", "annotations"})
            for (const Node& each : children(metadata ? metadata->find(list) : nullptr))
                for (const std::string_view word :
                     {"kueue", "volcano", "pod-group", "podgroup", "coscheduling", "kai.scheduler", "runai", "gang"})
                    if (contains_nocase(each.key, word)) return true;
        return false;
    };
    const Node* scheduler = workload.pod->find("schedulerName");
    const Node* policy = workload.object->at({"spec", "runPolicy", "schedulingPolicy"});
    return marks(workload.object->find("metadata")) || marks(workload.pod_metadata) || policy ||
           workload.api_version.starts_with("batch.volcano.sh") ||
           (scheduler && scheduler->text != "default-scheduler");
}

bool opinions_is_dev(std::string_view name_space) {
    for (const std::string_view word : {"dev", "test", "sandbox", "lab", "playground"})
        if (name_space == word || name_space.starts_with(std::string(word) + "-") ||
            name_space.ends_with("-" + std::string(word)))
            return true;
    return false;
}

}  // namespace

void check_k8s017(const Bundle& bundle, Report& report) {
    each_object(bundle, [&](const Workload& scaler) {
        const bool keda = scaler.kind == "ScaledObject";
        if ((!keda && scaler.kind != "HorizontalPodAutoscaler") || !opinions_is_dev(scaler.name_space)) return;
        const Node* name = scaler.object->at({"spec", "scaleTargetRef", "name"});
        const Node* least = scaler.object->at({"spec", keda ? "minReplicaCount" : "minReplicas"});
        if (!name || !least || Value::of(least).as_int().value_or(0) < 1) return;
        each_object(bundle, [&](const Workload& workload) {
            if (workload.name == name->text && workload.pod && asks_accelerator(workload))
                report.add(*least->source, least->span, scaler.address,
                           "a GPU workload of a development namespace never scales to zero");
        });
    });
}

void check_k8s020(const File& file, Report& report) {
    each_pod(file, [&](const Workload& workload) {
        if (workload.kind != "Job" || !workload.api_version.starts_with("batch/") || !asks_accelerator(workload))
            return;
        const Node* spec = workload.object->find("spec");
        if (!spec || spec->find("ttlSecondsAfterFinished") || spec->find("activeDeadlineSeconds")) return;
        const Node* kind = workload.object->find("kind");
        Finding* finding =
            report.add(*kind->source, kind->whole(), workload.address,
                       "a GPU Job with neither deadline nor time to live: a hung one holds its GPUs for ever");
        if (const Node* first = spec->find("template"))
            if (auto edit = line_before(*first, "ttlSecondsAfterFinished: 86400"))
                report.fix(finding, *first->source, FixClass::safe, "delete the Job a day after it ended",
                           {std::move(*edit)});
    });
}

void check_k8s022(const File& file, Report& report) {
    each_pod(file, [&](const Workload& workload) {
        const Container* container = opinions_gpu_container(workload);
        if (!container || workload.replicas.as_int().value_or(1) < 2) return;
        const bool gang_kind =
            workload.kind.ends_with("Job") && workload.kind != "CronJob" && workload.kind != "RayJob";
        if (!gang_kind || opinions_has_gang(workload)) return;
        if (workload.object->at({"spec", "elasticPolicy"})) return;
        report.add(*container->node->source, container->anchor, workload.address,
                   fmt::format(
                       "{} workers with GPUs and no gang scheduling: some start, hold their GPUs and wait for the rest",
                       workload.replicas.text));
    });
}

void check_k8s030(const File& file, Report& report) {
    each_pod(file, [&](const Workload& workload) {
        if (workload.kind != "Deployment" || !asks_accelerator(workload)) return;
        const Node* surge = workload.object->at({"spec", "strategy", "rollingUpdate", "maxSurge"});
        const Node* type = workload.object->at({"spec", "strategy", "type"});
        if (type && type->text == "Recreate") return;
        if (surge && (surge->text == "0" || surge->text == "0%" || !surge->known)) return;
        const Node* kind = workload.object->find("kind");
        const Node* at = surge ? surge : kind;
        report.add(*at->source, at->whole(), workload.address,
                   "a rollout starts a new GPU pod before it ends an old one: without a free GPU it hangs");
    });
}

void check_k8s034(const File& file, Report& report) {
    each_container(file, [&](const Workload& workload, const Container& container) {
        if (container.init || !accelerator_of(container) || workload.replicas.as_int().value_or(1) < 2) return;
        const Node* cache = nullptr;
        for (const Node& mount : children(container.node->find("volumeMounts"))) {
            const Node *path = mount.find("mountPath"), *name = mount.find("name");
            if (!path || !name || !contains_nocase(path->text, "cache")) continue;
            for (const Node& volume : children(workload.pod->find("volumes")))
                if (const Node* its = volume.find("name"); its && its->text == name->text && volume.find("emptyDir"))
                    cache = path;
        }
        if (!cache) return;
        bool hub = false, streamed = false;
        for (const WordList& command : commands_of(container)) {
            const Value model = option_of(*command.words, {"--model", "--model-path", "--model-id"});
            const std::string_view text = model.known() ? model.text : std::string_view();
            hub |= !text.empty() && text.front() != '/' && text.front() != '.' &&
                   std::count(text.begin(), text.end(), '/') == 1;
            streamed |= has_word(*command.words, "streamer");
        }
        if (!hub || streamed) return;
        report.add(
            *cache->source, cache->span, container.address,
            fmt::format("{} replicas download the model into an emptyDir at every start", workload.replicas.text));
    });
}

}  // namespace stoker::lint

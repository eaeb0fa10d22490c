// An autoscaler that looks at the CPU of a workload that waits for its GPU.
#include <algorithm>
#include <map>

#include "lint/rules/common_containers.h"

namespace stoker::lint {

namespace {

// The first metric when all are CPU or memory; null: there is another, or one cannot be read.
const Node* k8s016_only_cpu(const Node& spec) {
    if (const Node* old = spec.find("targetCPUUtilizationPercentage"); old && !spec.find("metrics")) return old;
    const Node* metrics = spec.find("metrics");
    if (!metrics || !metrics->is_array()) return nullptr;
    const Node* first = nullptr;
    for (const Node& metric : children(metrics)) {
        const Node* name = metric.at({"resource", "name"});
        if (!name) name = metric.at({"containerResource", "name"});
        if (!name || !name->known || (name->text != "cpu" && name->text != "memory")) return nullptr;
        if (!first) first = name;
    }
    return first;
}

// The first trigger of KEDA when all are CPU or memory.
const Node* k8s016_only_cpu_triggers(const Node& spec) {
    const Node* first = nullptr;
    for (const Node& trigger : children(spec.find("triggers"))) {
        const Node* type = trigger.find("type");
        if (!type || !type->known || (type->text != "cpu" && type->text != "memory")) return nullptr;
        if (!first) first = type;
    }
    return first;
}

}  // namespace

void check_k8s016(const Bundle& bundle, Report& report) {
    each_object(bundle, [&](const Workload& scaler) {
        const bool keda = scaler.kind == "ScaledObject";
        if (scaler.kind != "HorizontalPodAutoscaler" && !keda) return;
        const Node* spec = scaler.object->find("spec");
        const Node* target = spec ? spec->find("scaleTargetRef") : nullptr;
        const Node *written = target ? target->find("kind") : nullptr, *name = target ? target->find("name") : nullptr;
        const Node* metric = !spec ? nullptr : keda ? k8s016_only_cpu_triggers(*spec) : k8s016_only_cpu(*spec);
        if (!(written || keda) || !name || !metric || !name->known) return;
        const std::string_view kind = written ? written->text : std::string_view("Deployment");  // as KEDA has it
        // A folder of samples has one name several times: which of them is meant is not known.
        std::map<const Node*, bool> called_so;
        each_object(bundle, [&](const Workload& workload) {
            if (workload.kind == kind && workload.name == name->text && workload.pod)
                called_so[workload.object] = called_so[workload.object] || asks_accelerator(workload);
        });
        if (std::any_of(called_so.begin(), called_so.end(), [](const auto& each) { return !each.second; })) return;
        each_object(bundle, [&](const Workload& workload) {
            if (workload.kind != kind || workload.name != name->text || !asks_accelerator(workload)) return;
            if (workload.name_space != scaler.name_space && !workload.name_space.empty() && !scaler.name_space.empty())
                return;
            Finding* finding =
                report.add(*metric->source, metric->span, scaler.address,
                           "a GPU workload is scaled by CPU or memory, which say nothing about the load of "
                           "its GPU");
            if (!finding) return;
            finding->advice = "scale by queue length, running requests or DCGM metrics (KEDA, custom metrics)";
            report.relate(finding, *workload.object->source, workload.object->find("kind")->span,
                          "the workload that it scales");
        });
    });
}

}  // namespace stoker::lint

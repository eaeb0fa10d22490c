// An autoscaler that looks at the CPU of a workload that waits for its GPU.
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

}  // namespace

void check_k8s016(const Bundle& bundle, Report& report) {
    each_object(bundle, [&](const Workload& scaler) {
        if (scaler.kind != "HorizontalPodAutoscaler") return;
        const Node* spec = scaler.object->find("spec");
        const Node* target = spec ? spec->find("scaleTargetRef") : nullptr;
        const Node *kind = target ? target->find("kind") : nullptr, *name = target ? target->find("name") : nullptr;
        const Node* metric = spec ? k8s016_only_cpu(*spec) : nullptr;
        if (!kind || !name || !metric || !name->known) return;
        each_object(bundle, [&](const Workload& workload) {
            if (workload.kind != kind->text || workload.name != name->text || !asks_accelerator(workload)) return;
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

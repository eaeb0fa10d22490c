#include <fmt/format.h>

#include "lint/rules/common_containers.h"

namespace stoker::lint {

void check_k8s025(const File& file, Report& report) {
    each_pod(file, [&](const Workload& workload) {
        if (!workload.kind.starts_with("Ray")) return;
        const Node* group = workload.pod->parent ? workload.pod->parent->parent : nullptr;  // spec, template, group
        const Node* told = group ? group->at({"rayStartParams", "num-gpus"}) : nullptr;
        const auto number = Value::of(told).as_int();
        if (!number || *number == 0) return;  // 0 keeps tasks off a head with a GPU, on purpose
        for (const Container& container : workload.containers) {
            if (container.init) continue;
            const Quantity* device = accelerator_of(container);
            const auto devices = accelerators_of(container);
            if (!device || !devices || *devices == *number) return;
            Finding* finding = report.add(*told->source, told->span, workload.address,
                                          fmt::format("num-gpus is {}, but the container has {}: Ray places tasks on "
                                                      "devices that are not there, or leaves some idle",
                                                      *number, *devices));
            report.relate(finding, *device->amount.source, device->key_span, "the container's devices");
            return;
        }
    });
}

}  // namespace stoker::lint

#include <fmt/format.h>

#include <set>

#include "lint/rules/common_containers.h"

namespace stoker::lint {

void check_k8s025(const File& file, Report& report) {
    // A template may be that of several groups, by an anchor.
    const auto judge = [&](const Workload& workload, const Node& group) {
        const Node* told = group.at({"rayStartParams", "num-gpus"});
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
    };
    const auto groups = [&](const Workload& workload, const Node& node, int depth, const auto& again) -> void {
        if (depth > 8) return;
        if (node.find("rayStartParams") && node.at({"template", "spec"}) == workload.pod) return judge(workload, node);
        for (const Node& child : children(&node))
            if (!child.is_scalar()) again(workload, child, depth + 1, again);
    };
    std::set<const Node*> seen;
    each_pod(file, [&](const Workload& workload) {
        if (workload.kind.starts_with("Ray") && workload.object && seen.insert(workload.pod).second)
            groups(workload, *workload.object, 0, groups);
    });
}

}  // namespace stoker::lint

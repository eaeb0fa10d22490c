#include <fmt/format.h>

#include "lint/rules/common_containers.h"

namespace stoker::lint {

void check_k8s026(const File& file, Report& report) {
    each_container(file, [&](const Workload&, const Container& container) {
        const Quantity *slice = nullptr, *whole = nullptr;
        for (const Quantity& each : container.resources) {
            if (each.amount.is("0")) continue;
            if (each.resource.starts_with("nvidia.com/mig-") && !slice) slice = &each;
            if (each.resource == "nvidia.com/gpu" && !whole) whole = &each;
        }
        if (!slice || !whole) return;
        const Source& source = *slice->amount.node->source;
        Finding* finding =
            report.add(source, slice->key_span, container.address,
                       fmt::format("the container asks for {} and for whole GPUs: a process sees one MIG "
                                   "device or whole GPUs, not both",
                                   slice->resource));
        report.relate(finding, source, whole->key_span, "the whole GPUs");
    });
}

}  // namespace stoker::lint

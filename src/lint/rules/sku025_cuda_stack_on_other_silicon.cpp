#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

namespace stoker::lint {

namespace {

// Images that hold CUDA programs and nothing for AMD.
bool sku025_cuda(std::string_view image) {
    if (contains_nocase(image, "rocm")) return false;
    return contains_nocase(image, "nvidia/cuda") || starts_with_ignore_case(image, "nvcr.io/nvidia/") ||
           contains_nocase(image, "-cuda") || contains_nocase(image, ":cuda") || contains_nocase(image, "tensorrt");
}

}  // namespace

void check_sku025(const File& file, Report& report) {
    for (const Workload& workload : file.workloads)
        for (const Container& container : workload.containers) {
            if (!container.image.known() || !sku025_cuda(container.image.text)) continue;
            for (const Quantity& quantity : container.resources) {
                if (quantity.resource != "amd.com/gpu" || quantity.amount.as_int().value_or(0) < 1) continue;
                Finding* finding = report.add(
                    container.image, container.address,
                    fmt::format("{} holds a CUDA program, and this container asks for AMD GPUs", container.image.text));
                if (finding && container.node)
                    report.relate(finding, *container.node->source, quantity.key_span, "AMD GPUs");
                break;
            }
        }
    each_resource(file, [&](const Resource& resource) {
        const KnownSize* size = size_of(resource, report);
        const Value& image = resource.get(Attr::environment);
        if (!size || size->vendor != "AMD" || !image.known() || !sku025_cuda(image.text)) return;
        Finding* finding =
            report.add(image, resource.address,
                       fmt::format("{} holds a CUDA program, and {} has AMD GPUs", image.text, size->name));
        report.relate(finding, *resource.get(Attr::size).source, resource.get(Attr::size).span, "the size");
    });
}

}  // namespace stoker::lint

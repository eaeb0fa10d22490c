#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

namespace stoker::lint {

void check_sku008(const Bundle& bundle, Report& report) {
    Beside beside(bundle, report.knowledge());
    each_resource(bundle, [&](const Resource& resource) {
        const KnownSize* size = size_of(resource, report);
        if (!size || !size->gpu() || size->accelerators >= 1 || resource.type == ResourceType::other) return;
        const Work& work = beside.work(resource);
        const Evidence* why = work.training ? &*work.training : nullptr;
        std::optional<Evidence> asks;
        for (const File* file : bundle.files) {
            if (!same_folder(*file, resource.file->outermost())) continue;
            for (const Workload& workload : file->workloads)
                for (const Container& container : workload.containers)
                    for (const Quantity& quantity : container.resources)
                        if (!asks && quantity.resource == "nvidia.com/gpu" &&
                            quantity.amount.as_int().value_or(0) > 1 && container.node)
                            asks =
                                Evidence{container.node->source, quantity.key_span, "more than one GPU is asked for"};
        }
        if (!why && asks) why = &*asks;
        if (!why) return;
        Finding* finding = report.add(
            resource.get(Attr::size), resource.address,
            fmt::format(
                "{} has {:.2g} of a GPU with its share of the memory: it is made for desktops, not for training",
                size->name, size->accelerators));
        if (finding) report.relate(finding, *why->source, why->span, why->what);
    });
}

}  // namespace stoker::lint

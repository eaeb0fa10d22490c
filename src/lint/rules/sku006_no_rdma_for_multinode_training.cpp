#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

#include <algorithm>

namespace stoker::lint {

void check_sku006(const Bundle& bundle, Report& report) {
    Beside beside(bundle, report.knowledge());
    each_resource(bundle, [&](const Resource& resource) {
        const KnownSize* size = size_of(resource, report);
        if (!size || !size->gpu() || size->rdma() || !size->name.starts_with("Standard_")) return;
        if (resource.type != ResourceType::scale_set && !is_pool(resource) &&
            resource.type != ResourceType::aml_compute && resource.type != ResourceType::batch_pool)
            return;
        std::int64_t nodes = 0;
        for (const Attr attr : {Attr::count, Attr::max_count, Attr::dedicated_nodes})
            nodes = std::max(nodes, resource.get(attr).as_int().value_or(0));
        if (nodes < 2) return;
        const Work& work = beside.work(resource);
        if (!work.multi_node) return;
        Finding* finding = report.add(
            resource.get(Attr::size), resource.address,
            fmt::format("a training over several nodes on {}, which has no InfiniBand: gradients cross Ethernet",
                        size->name));
        if (!finding) return;
        report.relate(finding, *work.multi_node->source, work.multi_node->span, "the training");
        finding->advice = "small models may live with it: stoker estimate tells the step time on both";
    });
}

}  // namespace stoker::lint

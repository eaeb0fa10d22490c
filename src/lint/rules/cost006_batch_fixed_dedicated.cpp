#include "lint/rules/common_cloud.h"

namespace stoker::lint {

void check_cost006(const File& file, Report& report) {
    each_resource(file, [&](const Resource& resource) {
        const Value& nodes = resource.get(Attr::dedicated_nodes);
        if (resource.type != ResourceType::batch_pool || nodes.as_int().value_or(0) < 1 || !has_gpu(resource, report))
            return;
        if (resource.get(Attr::autoscale_formula).present()) return;
        Finding* finding =
            report.add(nodes, resource.address,
                       "a GPU pool of Batch with a fixed number of nodes: they are paid for between jobs");
        tell_idle_cost(report, finding, resource, nodes.as_int());
    });
}

}  // namespace stoker::lint

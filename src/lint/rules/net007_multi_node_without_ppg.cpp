#include "lint/rules/common_cloud.h"

#include <algorithm>

namespace stoker::lint {

void check_net007(const Bundle& bundle, Report& report) {
    Beside beside(bundle, report.knowledge());
    each_resource(bundle, [&](const Resource& resource) {
        if (resource.type != ResourceType::scale_set && !is_pool(resource)) return;
        if (!has_gpu(resource, report) || has_rdma(resource, report) || !size_of(resource, report)) return;
        if (count_of(resource).value_or(0) < 2 || resource.get(Attr::ppg).present()) return;
        const auto zones = resource.all(Attr::zone);
        if (zones.size() == 1 ||
            std::any_of(zones.begin(), zones.end(), [](const Value* zone) { return zone->unknown(); }))
            return;
        if (!beside.work(resource).multi_node) return;
        Finding* finding =
            add_at_header(report, resource,
                          "nodes of a multi-node training have neither a proximity placement group nor one zone: "
                          "they may stand in different buildings");
        if (finding)
            finding->advice =
                "name one zone, or attach a proximity placement group; the latter makes failed allocations likelier";
    });
}

}  // namespace stoker::lint

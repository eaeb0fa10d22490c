#include "lint/rules/common_cloud.h"

namespace stoker::lint {

void check_net003(const Bundle& bundle, Report& report) {
    Beside beside(bundle, report.knowledge());
    each_resource(bundle, [&](const Resource& resource) {
        if (resource.type != ResourceType::scale_set && !is_pool(resource)) return;
        if (zones_of(resource) < 2 || !has_gpu(resource, report)) return;
        const auto count = count_of(resource), most = resource.get(Attr::max_count).as_int();
        if (most.value_or(count.value_or(2)) < 2) return;
        const bool rdma = has_rdma(resource, report);
        if (!rdma && !beside.work(resource).multi_node) return;
        const Value& zone = resource.get(Attr::zone);
        Finding* finding = add_at_use(
            report, zone, resource.address,
            rdma ? "nodes of an InfiniBand size in several zones: there is no InfiniBand between zones"
                 : "nodes of a multi-node training in several zones: every exchange of gradients crosses them");
        if (!finding) return;
        if (!rdma) finding->severity = Severity::warning;
        finding->advice = "name one zone; general advice to spread over zones is for services, not for training";
    });
}

}  // namespace stoker::lint

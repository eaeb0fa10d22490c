#include "lint/rules/common_cloud.h"

namespace stoker::lint {

void check_npl014(const Bundle& bundle, Report& report) {
    each_resource(bundle, [&](const Resource& pool) {
        if (!is_gpu_pool(pool, report) || pool.get(Attr::min_count).as_int() != std::optional<std::int64_t>(0)) return;
        const Resource* cluster = nullptr;
        each_beside(bundle, pool, [&](const Resource& other) {
            if (other.type == ResourceType::cluster) cluster = &other;
        });
        if (!cluster || cluster->get(Attr::scale_down_unneeded).present()) return;
        Finding* finding =
            add_at_header(report, *cluster, "the autoscaler keeps idle GPU nodes for its default of 10 minutes");
        report.relate(finding, *pool.source, pool.header, "the GPU pool");
    });
}

}  // namespace stoker::lint

#include "lint/rules/common_cloud.h"

namespace stoker::lint {

void check_npl002(const File& file, Report& report) {
    each_resource(file, [&](const Resource& resource) {
        if (!is_pool(resource) || !has_gpu(resource, report)) return;
        const bool first_of_az = resource.type == ResourceType::cluster;
        if (!first_of_az && !resource.get(Attr::pool_mode).is_nocase("System")) return;
        Finding* finding =
            add_at_use(report, resource.get(Attr::size), resource.address,
                       "the system pool has a GPU size: it can never shrink to zero, and cluster services "
                       "share its nodes with GPU work");
        if (finding) finding->advice = "give the system pool a CPU size and the GPU size a user pool of its own";
    });
}

}  // namespace stoker::lint

#include "lint/rules/common_cloud.h"

namespace stoker::lint {

void check_npl015(const Bundle& bundle, Report& report) {
    const Resource* pool = nullptr;
    each_resource(bundle, [&](const Resource& resource) {
        if (!pool && resource.type == ResourceType::node_pool && is_gpu_pool(resource, report)) pool = &resource;
    });
    if (!pool || pool->get(Attr::managed_gpu).known()) return;
    for (const File* file : bundle.files)
        if (contains_nocase(file->source().text(), "dcgm-exporter") ||
            contains_nocase(file->source().text(), "gpu-operator") ||
            contains_nocase(file->source().text(), "gpu_operator"))
            return;
    report.add(*pool->source, pool->header, "gpu-metrics",
               "nothing measures the GPUs of this pool: idle and throttled ones go unseen");
}

}  // namespace stoker::lint

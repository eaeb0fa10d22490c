#include "lint/rules/common_cloud.h"

namespace stoker::lint {

void check_sku028(const File& file, Report& report) {
    const std::string& day = report.options().as_of;
    each_resource(file, [&](const Resource& resource) {
        if (!has_gpu(resource, report)) return;
        const Value& nodes = resource.get(Attr::low_priority_nodes);
        if (resource.type == ResourceType::batch_pool && nodes.as_int().value_or(0) > 0 &&
            (day.empty() || day >= "2025-09-30"))
            report.add(nodes, resource.address, "low-priority nodes of Batch were retired on 2025-09-30: use Spot");
        const Value& priority = resource.get(Attr::priority);
        if (resource.type == ResourceType::aml_compute &&
            (priority.is_nocase("LowPriority") || priority.is_nocase("low_priority")) &&
            (day.empty() || day >= "2026-03-31"))
            report.add(priority, resource.address,
                       "low priority of Azure ML was retired on 2026-03-31: use dedicated or Spot nodes");
    });
}

}  // namespace stoker::lint

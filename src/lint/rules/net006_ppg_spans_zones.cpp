#include "lint/rules/common_cloud.h"

namespace stoker::lint {

void check_net006(const File& file, Report& report) {
    std::optional<bool> gpu;  // of the file, when it is asked for
    const auto has_gpu_work = [&] {
        if (!gpu) gpu = gpu_file(file, report);
        return *gpu;
    };
    each_resource(file, [&](const Resource& resource) {
        if (resource.type != ResourceType::scale_set && !is_pool(resource)) return;
        const Value& group = resource.get(Attr::ppg);
        if (group.absent() || zones_of(resource) < 2 || !has_gpu_work()) return;
        Finding* finding =
            add_at_use(report, resource.get(Attr::zone), resource.address,
                       "a proximity placement group lies in one zone: with several zones nothing is allocated");
        report.relate(finding, *group.source, group.span, "the placement group");
    });
}

}  // namespace stoker::lint

#include "lint/rules/common_cloud.h"

namespace stoker::lint {

void check_sku027(const Bundle& bundle, Report& report) {
    each_resource(bundle, [&](const Resource& pool) {
        const Value& managed = pool.get(Attr::managed_gpu);
        if (!is_pool(pool) || !managed.is_nocase("Managed")) return;
        if (says_yes(pool.get(Attr::autoscaling))) {
            Finding* finding =
                report.add(managed, pool.address, "a managed GPU pool cannot be scaled by the cluster autoscaler");
            report.relate(finding, *pool.get(Attr::autoscaling).source, pool.get(Attr::autoscaling).span,
                          "autoscaling");
            return;
        }
        each_beside(bundle, pool, [&](const Resource& chart) {
            const Value& name = chart.get(Attr::chart_name);
            if (chart.type != ResourceType::chart || !name.known()) return;
            if (!contains_nocase(name.text, "gpu-operator") && !contains_nocase(name.text, "nvidia-device-plugin"))
                return;
            Finding* finding = report.add(managed, pool.address,
                                          "a managed GPU pool brings its own device plugin, and another is installed");
            report.relate(finding, *name.source, name.span, "the other one");
        });
        for (const File* file : bundle.files) {
            if (!same_folder(*file, pool.file->outermost())) continue;
            for_each_part(*file, [&](const File& part) {
                for (const Workload& workload : part.workloads)
                    for (const Container& container : workload.containers) {
                        if (!container.image.known() || !contains_nocase(container.image.text, "k8s-device-plugin"))
                            continue;
                        Finding* finding =
                            report.add(managed, pool.address,
                                       "a managed GPU pool brings its own device plugin, and another is installed");
                        report.relate(finding, *container.image.source, container.image.span, "the other one");
                    }
            });
        }
    });
}

}  // namespace stoker::lint

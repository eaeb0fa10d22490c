#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

namespace stoker::lint {

void check_sku007(const Bundle& bundle, Report& report) {
    Beside beside(bundle, report.knowledge());
    each_resource(bundle, [&](const Resource& resource) {
        const KnownSize* size = size_of(resource, report);
        if (!size || size->gpu() || !size->name.starts_with("Standard_")) return;
        if (std::string_view("DEFB").find(size->name[9]) == std::string_view::npos) return;
        if (resource.type != ResourceType::vm && resource.type != ResourceType::scale_set &&
            resource.type != ResourceType::aml_compute && resource.type != ResourceType::batch_pool)
            return;
        // A GPU, or a size that cannot be followed.
        const bool other = beside.any(resource, [&](const Resource& near) {
            const Value& its = near.get(Attr::size);
            return its.unknown() || (its.known() && gpu_size(its.text, report.knowledge())) ||
                   is_gpu_pool(near, report);
        });
        if (other) return;
        const Work& work = beside.work(resource);
        if (!work.training || work.training->what == "a DeepSpeed configuration") return;
        Finding* finding = report.add(resource.get(Attr::size), resource.address,
                                      fmt::format("a training on {}, which has no GPU", size->name));
        tell_cost_beside_gpu(report, finding, *size);
        if (finding) report.relate(finding, *work.training->source, work.training->span, work.training->what);
    });
}

}  // namespace stoker::lint

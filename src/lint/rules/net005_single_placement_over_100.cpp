#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

namespace stoker::lint {

void check_net005(const File& file, Report& report) {
    each_resource(file, [&](const Resource& resource) {
        if (resource.type != ResourceType::scale_set || !has_gpu(resource, report)) return;
        const Value& single = resource.get(Attr::single_placement_group);
        // azurerm's default for its Uniform sets is true.
        const bool implied = single.absent() && resource.written.starts_with("azurerm_") &&
                             resource.get(Attr::orchestration).is("Uniform");
        const auto count = count_of(resource);
        if ((!says_yes(single) && !implied) || !count || *count <= report.options().max_placement) return;
        add_at_use(report, resource.get(Attr::count), resource.address,
                   fmt::format("{} instances in a single placement group, which holds {} at most", *count,
                               report.options().max_placement));
    });
}

}  // namespace stoker::lint

#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

namespace stoker::lint {

void check_cost003(const File& file, Report& report) {
    each_resource(file, [&](const Resource& resource) {
        const Value& least = resource.get(Attr::min_count);
        const auto count = least.as_int();
        if (resource.type != ResourceType::aml_compute || !count || *count < 1 || !has_gpu(resource, report)) return;
        Finding* finding =
            report.add(least, resource.address,
                       fmt::format("the GPU cluster keeps {} node{} when no job runs", *count, *count == 1 ? "" : "s"));
        tell_idle_cost(report, finding, resource, count);
        fix_value(report, finding, least, FixClass::safe, "let it shrink to 0", "0");
    });
}

}  // namespace stoker::lint

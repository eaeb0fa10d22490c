#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

namespace stoker::lint {

void check_npl006(const File& file, Report& report) {
    std::optional<bool> gpu;  // of the file, when it is asked for
    const auto has_gpu_work = [&] {
        if (!gpu) gpu = gpu_file(file, report);
        return *gpu;
    };
    each_resource(file, [&](const Resource& resource) {
        const Value& sku = resource.get(Attr::os_sku);
        if (!is_pool(resource) || !sku.known()) return;
        if (!equals_ignore_case(sku.text, "Mariner") && !equals_ignore_case(sku.text, "CBLMariner") &&
            !equals_ignore_case(sku.text, "AzureLinux2"))
            return;
        if (!is_gpu_pool(resource, report) && !has_gpu_work()) return;
        Finding* finding =
            report.add(sku, resource.address,
                       fmt::format("{} is Azure Linux 2.0, unsupported since 2025-11-30; its images were removed on "
                                   "2026-03-31",
                                   sku.text));
        if (finding) finding->advice = "use AzureLinux3 or Ubuntu";
        fix_value(report, finding, sku, FixClass::unsafe, "use AzureLinux3", "AzureLinux3");
    });
}

}  // namespace stoker::lint

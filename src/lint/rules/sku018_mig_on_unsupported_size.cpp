#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

namespace stoker::lint {

void check_sku018(const File& file, Report& report) {
    each_resource(file, [&](const Resource& resource) {
        const Value& profile = resource.get(Attr::gpu_instance);
        if (!profile.known() || !starts_with_ignore_case(profile.text, "MIG")) return;
        const KnownSize* size = size_of(resource, report);
        if (!size || !size->gpu()) return;
        for (const std::string_view able :
             {"A100", "A30", "H100", "H200", "GH200", "B200", "B300", "GB200", "GB300", "RTX-PRO-6000"})
            if (size->accelerator.starts_with(able)) return;
        Finding* finding =
            report.add(profile, resource.address,
                       fmt::format("the {} of {} cannot be partitioned with MIG", size->accelerator, size->name));
        report.relate(finding, *resource.get(Attr::size).source, resource.get(Attr::size).span, "the size");
    });
}

}  // namespace stoker::lint

#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

namespace stoker::lint {

void check_sku013(const File& file, Report& report) {
    each_resource(file, [&](const Resource& resource) {
        const Value& security = resource.get(Attr::security_type);
        const KnownSize* size = size_of(resource, report);
        if (!size || size->trusted_launch != std::optional(false) || !security.is_nocase("TrustedLaunch")) return;
        Finding* finding =
            report.add(security, resource.address,
                       fmt::format("{} does not support Trusted Launch: the machine cannot be created", size->name));
        report.relate(finding, *resource.get(Attr::size).source, resource.get(Attr::size).span, "the size");
    });
}

}  // namespace stoker::lint

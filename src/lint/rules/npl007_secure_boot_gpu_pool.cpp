#include "lint/rules/common_cloud.h"

namespace stoker::lint {

void check_npl007(const File& file, Report& report) {
    each_resource(file, [&](const Resource& resource) {
        if (!is_gpu_pool(resource, report) || !says_yes(resource.get(Attr::secure_boot))) return;
        const Value &sku = resource.get(Attr::os_sku), &driver = resource.get(Attr::gpu_driver);
        if (sku.unknown() || driver.unknown() || driver.is_nocase("None")) return;
        if (sku.known() && !starts_with_ignore_case(sku.text, "Ubuntu")) return;
        Finding* finding =
            report.add(resource.get(Attr::secure_boot), resource.address,
                       "Secure Boot on an Ubuntu GPU pool: the driver that AKS installs is not signed for it and does "
                       "not load");
        if (finding)
            finding->advice = "turn Secure Boot off, use Azure Linux, or bring a signed driver with gpu driver None";
    });
}

}  // namespace stoker::lint

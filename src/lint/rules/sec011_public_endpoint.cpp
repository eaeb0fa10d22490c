#include "lint/rules/common_cloud.h"

namespace stoker::lint {

void check_sec011(const Bundle& bundle, Report& report) {
    each_resource(bundle, [&](const Resource& resource) {
        if (resource.type != ResourceType::workspace && resource.type != ResourceType::registry &&
            resource.type != ResourceType::storage)
            return;
        const Value& access = resource.get(Attr::public_network_access);
        if (!says_yes(access)) return;
        bool endpoint = false, gpu = false;
        each_beside(bundle, resource, [&](const Resource& other) {
            endpoint = endpoint || other.get(Attr::private_endpoint).present();
            gpu = gpu || has_gpu(other, report);
        });
        if (endpoint || !gpu) return;
        report.add(access, resource.address,
                   "models and data behind this are reachable from the internet, and there is no private endpoint");
    });
}

}  // namespace stoker::lint

#include "lint/rules/common_scripts.h"

namespace stoker::lint {

void check_net016(const File& file, Report& report) {
    const Resource* pool = nullptr;
    const Resource* feature = nullptr;
    bool rack = false;
    for_each_part(file, [&](const File& part) {
        for (const Resource& resource : part.resources) {
            if (resource.type == ResourceType::feature &&
                resource.get(Attr::feature_name).is_nocase("AKSInfinibandSupport"))
                feature = &resource;
            if (resource.type != ResourceType::node_pool || !resource.written.starts_with("az ")) continue;
            const Value& size = resource.get(Attr::size);
            const KnownSize* known = size.known() ? report.knowledge().size(size.text) : nullptr;
            if (!known || !known->rdma()) continue;
            pool = &resource;
            rack = contains_nocase(known->name, "GB200") || contains_nocase(known->name, "GB300");
        }
    });
    if (!pool) return;
    const Value& size = pool->get(Attr::size);
    if (rack && feature) {
        Finding* finding = report.add(
            *feature->source, feature->header, pool->address,
            "AKSInfinibandSupport is registered, but pools of " + std::string(size.text) + " need it unregistered");
        if (finding) finding->advice = "run az feature unregister for it before the pool is made";
    } else if (!rack && !feature) {
        Finding* finding = report.add(size, pool->address,
                                      "this script makes an AKS pool of " + std::string(size.text) +
                                          " and does not register AKSInfinibandSupport: the nodes may come up without "
                                          "InfiniBand");
        if (finding)
            finding->advice =
                "az feature register --namespace Microsoft.ContainerService --name AKSInfinibandSupport; "
                "ignore this where the subscription has it";
    }
}

}  // namespace stoker::lint

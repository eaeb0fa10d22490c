#include "lint/rules/common_cloud.h"

namespace stoker::lint {

void check_cost002(const Bundle& bundle, Report& report) {
    const Resource* first = nullptr;
    bool budget = false;
    each_resource(bundle, [&](const Resource& resource) {
        budget = budget || resource.type == ResourceType::budget;
        if (!first && resource.type != ResourceType::other && resource.type != ResourceType::size_list &&
            has_gpu(resource, report))
            first = &resource;
    });
    if (first && !budget)
        report.add(*first->source, first->header, "budget",
                   "GPU resources without a budget: nobody is told when the bill runs away");
}

}  // namespace stoker::lint

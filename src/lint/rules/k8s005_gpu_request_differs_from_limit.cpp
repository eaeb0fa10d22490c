#include <fmt/format.h>

#include "lint/rules/common_containers.h"

namespace stoker::lint {

void check_k8s005(const File& file, Report& report) {
    each_with_resources(file, [&](const Container& container) {
        for (const Quantity& request : container.resources) {
            if (request.limit || !is_accelerator_resource(request.resource)) continue;
            const Quantity* limit = container.limit(request.resource);
            if (!limit) continue;
            const auto wanted = request.amount.as_int(), most = limit->amount.as_int();
            if (!wanted || !most || *wanted == *most) continue;
            Finding* finding =
                report.add(request.amount, container.address,
                           fmt::format("{} requests {} and limits {}: the API server refuses a pod whose "
                                       "two values differ",
                                       request.resource, *wanted, *most));
            report.relate(finding, *limit->amount.source, limit->amount.span, "the limit");
            if (limit->amount.node && !request.amount.node->merged)
                report.fix(finding, *request.amount.source, FixClass::unsafe, "set the request to the limit",
                           {{request.amount.span, std::string(limit->amount.source->text(limit->amount.span))}});
        }
    });
}

}  // namespace stoker::lint

#include <fmt/format.h>

#include "lint/rules/common_containers.h"

namespace stoker::lint {

void check_k8s038(const File& file, Report& report) {
    for_each_part(file, [&](const File& part) {
        for (const Workload& workload : part.workloads) {
            if (workload.kind != "ResourceQuota" || !workload.api_version.starts_with("v1")) continue;
            for (const Node& each : children(workload.object->at({"spec", "hard"}))) {
                std::string_view resource = each.key;
                if (resource.starts_with("requests.")) continue;
                if (resource.starts_with("limits.")) resource.remove_prefix(7);
                if (!is_accelerator_resource(resource)) continue;
                Finding* finding =
                    report.add(*each.source, each.key_span, workload.address + "/" + std::string(each.key),
                               fmt::format("a quota on {} is accepted and never enforced: for extended resources only "
                                           "requests.{} counts",
                                           each.key, resource));
                if (!finding) continue;
                finding->advice = fmt::format("write requests.{}", resource);
                const std::string wanted = fmt::format("requests.{}", resource);
                if (!each.parent->find(wanted))
                    report.fix(finding, *each.source, FixClass::unsafe, "write " + wanted, {{each.key_span, wanted}});
            }
        }
    });
}

}  // namespace stoker::lint

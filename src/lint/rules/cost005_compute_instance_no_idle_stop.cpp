#include "lint/rules/common_cloud.h"

namespace stoker::lint {

void check_cost005(const File& file, Report& report) {
    each_resource(file, [&](const Resource& resource) {
        if (resource.type != ResourceType::aml_instance || !has_gpu(resource, report)) return;
        if (resource.get(Attr::idle_shutdown).present() || resource.get(Attr::schedule).present()) return;
        if (resource.node && (resource.node->find("schedules") || resource.node->find("schedule"))) return;
        Finding* finding = add_at_header(report, resource, "a GPU compute instance that never stops by itself");
        tell_idle_cost(report, finding, resource, 1);
        if (finding) finding->advice = "stop it when idle (idle_time_before_shutdown_minutes: 30) or at fixed hours";
    });
}

}  // namespace stoker::lint

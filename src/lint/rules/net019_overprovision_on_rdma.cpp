#include "lint/rules/common_cloud.h"

namespace stoker::lint {

void check_net019(const File& file, Report& report) {
    each_resource(file, [&](const Resource& resource) {
        if (resource.type != ResourceType::scale_set || is_az(resource) || !has_rdma(resource, report)) return;
        if (resource.get(Attr::orchestration).is_nocase("Flexible")) return;
        const Value& extra = resource.get(Attr::overprovision);
        if (extra.present() && !says_yes(extra)) return;
        const std::string message =
            "overprovisioning makes and deletes extra nodes at every start: the list of hosts changes under the job";
        Finding* finding =
            extra.present() ? report.add(extra, resource.address, message) : add_at_header(report, resource, message);
        if (extra.present()) fix_value(report, finding, extra, FixClass::safe, "turn overprovisioning off", "false");
    });
}

}  // namespace stoker::lint

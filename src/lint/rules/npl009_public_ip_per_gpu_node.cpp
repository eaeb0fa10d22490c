#include "lint/rules/common_cloud.h"

namespace stoker::lint {

void check_npl009(const File& file, Report& report) {
    each_resource(file, [&](const Resource& resource) {
        const Value& address = resource.get(Attr::node_public_ip);
        if (!is_gpu_pool(resource, report) || !says_yes(address)) return;
        Finding* finding = report.add(address, resource.address, "every node of this GPU pool gets a public address");
        if (finding && address.source->text(address.span).find("true") != std::string_view::npos)
            fix_value(report, finding, address, FixClass::safe, "give nodes no public address", "false");
    });
}

}  // namespace stoker::lint

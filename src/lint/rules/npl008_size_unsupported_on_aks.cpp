#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

namespace stoker::lint {

void check_npl008(const File& file, Report& report) {
    each_resource(file, [&](const Resource& resource) {
        if (!is_pool(resource) || resource.written.starts_with("aws_") || resource.written.starts_with("google_"))
            return;
        const Value& size = resource.get(Attr::size);
        if (!size.known()) return;
        std::string_view bare = size.text;
        if (starts_with_ignore_case(bare, "Standard_")) bare.remove_prefix(9);
        const bool nvv4 = starts_with_ignore_case(bare, "NV") && bare.size() > 3 &&
                          equals_ignore_case(bare.substr(bare.size() - 3), "_v4");
        if (!nvv4) return;
        report.add(size, resource.address,
                   fmt::format("AKS does not support {}: its AMD GPUs have no driver there", size.text));
    });
}

}  // namespace stoker::lint

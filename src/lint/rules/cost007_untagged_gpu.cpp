#include "lint/rules/common_cloud.h"

namespace stoker::lint {

void check_cost007(const File& file, Report& report) {
    each_resource(file, [&](const Resource& resource) {
        if (resource.type != ResourceType::vm && resource.type != ResourceType::scale_set && !is_pool(resource)) return;
        if (!has_gpu(resource, report) || is_az(resource)) return;
        for (const Value* tag : resource.all(Attr::tag)) {
            if (!tag->known() && tag->text.find('=') == std::string_view::npos) return;
            for (const std::string_view word : {"owner", "cost", "team", "project", "department"})
                if (contains_nocase(tag->text.substr(0, tag->text.find('=')), word)) return;
        }
        add_at_header(report, resource, "a GPU resource that says neither whose it is nor who pays");
    });
}

}  // namespace stoker::lint

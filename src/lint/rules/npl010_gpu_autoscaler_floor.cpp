#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

namespace stoker::lint {

void check_npl010(const File& file, Report& report) {
    each_resource(file, [&](const Resource& resource) {
        const auto least = resource.get(Attr::min_count).as_int();
        if (!is_gpu_pool(resource, report) || !least || *least < 1) return;
        bool test = false;
        for (const auto& [attr, value] : resource.attributes)
            if ((attr == Attr::name || attr == Attr::tag || attr == Attr::node_label) && value.known())
                for (const std::string_view word : {"dev", "test", "sandbox", "lab"})
                    test = test || contains_nocase(value.text, word);
        if (!test) return;
        Finding* finding = add_at_use(
            report, resource.get(Attr::min_count), resource.address,
            fmt::format("a GPU pool for tests keeps {} node{} when nobody works", *least, *least == 1 ? "" : "s"));
        tell_idle_cost(report, finding, resource, least);
    });
}

}  // namespace stoker::lint

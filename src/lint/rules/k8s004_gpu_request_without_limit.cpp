#include <fmt/format.h>

#include "lint/rules/common_containers.h"

namespace stoker::lint {

void check_k8s004(const File& file, Report& report) {
    each_with_resources(file, [&](const Container& container) {
        for (const Quantity& request : container.resources) {
            if (request.limit || !is_accelerator_resource(request.resource) || container.limit(request.resource))
                continue;
            const Node& node = *request.amount.node;
            Finding* finding = report.add(
                *node.source, node.whole(), container.address,
                fmt::format("{} is requested without a limit: the API server refuses the pod", request.resource));
            if (!finding) continue;
            finding->advice = fmt::format("write {} under resources.limits too", request.resource);
            const Node* resources = container.node->find("resources");
            if (!resources) continue;  // an operator keeps them elsewhere
            const Node* limits = resources->find("limits");
            const std::string row = fmt::format("{}: {}", request.resource, node.source->text(node.span));
            std::optional<Edit> edit;
            if (limits && limits->is_object() && limits->first)
                edit = line_before(*limits->first, row);
            else if (!limits && node.parent)
                edit = line_before(*node.parent, "limits:\n  " + row);
            if (edit) report.fix(finding, *node.source, FixClass::safe, "add the limit: " + row, {std::move(*edit)});
        }
    });
}

}  // namespace stoker::lint

#include "lint/rules/common_cloud.h"

namespace stoker::lint {

void check_npl013(const File& file, Report& report) {
    each_resource(file, [&](const Resource& extension) {
        if (extension.type != ResourceType::extension) return;
        const Value& publisher = extension.get(Attr::extension_publisher);
        if (!is_nvidia_extension(extension) && !is_amd_extension(extension) &&
            !publisher.is_nocase("Microsoft.HpcCompute"))
            return;
        for (const Value* target : extension.all(Attr::target)) {
            const bool named = starts_with_ignore_case(target->text, "aks-") && contains_nocase(target->text, "-vmss");
            if (!named && !contains_nocase(target->text, "azurerm_kubernetes_cluster") &&
                !contains_nocase(target->text, "node_resource_group") &&
                !contains_nocase(target->text, "nodeResourceGroup") && !target->text.starts_with("MC_"))
                continue;
            Finding* finding =
                add_at_header(report, extension,
                              "AKS does not support extensions on the scale sets of its nodes: an upgrade or repair "
                              "of the nodes undoes it");
            report.relate(finding, *target->source, target->span, "the nodes of the cluster");
            return;
        }
    });
}

}  // namespace stoker::lint

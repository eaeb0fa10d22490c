#include "lint/rules/common_cloud.h"

namespace stoker::lint {

void check_npl001(const File& file, Report& report) {
    each_resource(file, [&](const Resource& resource) {
        if (resource.type != ResourceType::node_pool || !is_gpu_pool(resource, report)) return;
        if (resource.written.starts_with("google_") || is_written(resource, Attr::taint))
            return;  // GKE taints by itself
        const Value& mode = resource.get(Attr::pool_mode);
        if (mode.is_nocase("System") || (mode.unknown() && is_written(resource, Attr::pool_mode)))
            return;  // NPL002 speaks there
        const std::string message =
            "a GPU pool without a taint: pods that need no GPU are placed on it and keep its nodes alive";
        // An empty list is where the taint belongs.
        const Node* list = nullptr;
        for (const std::string_view key : {"node_taints", "nodeTaints"}) {
            if (resource.node && resource.node->find(key)) list = resource.node->find(key);
            if (resource.node && resource.node->at({"properties", key})) list = resource.node->at({"properties", key});
        }
        if (list && (!list->known || !list->is_array())) return;
        Finding* finding = list ? report.add(*list->source, list->span, resource.address, message)
                                : add_at_header(report, resource, message);
        if (finding) finding->advice = "taint it, for example sku=gpu:NoSchedule, and let GPU pods tolerate that";
    });
}

}  // namespace stoker::lint

#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace stoker::lint {

namespace {

// Beside the size, in the words of the file; nothing where that does not stand there as it reads.
std::vector<Edit> npl001_edits(const File& file, const Resource& resource) {
    const Value& size = resource.get(Attr::size);
    if (is_az(resource)) {
        if (resource.written != "az aks nodepool add" || !size.known() || size.source != resource.source ||
            !resource.whole.contains(size.span) ||
            size.source->text(size.span).find(size.text) == std::string_view::npos)
            return {};
        return {{{size.span.end, size.span.end}, " --node-taints sku=gpu:NoSchedule"}};
    }
    const Node* at = nullptr;
    for (const std::string_view key : {"vm_size", "vmSize"}) {
        if (resource.node && resource.node->find(key)) at = resource.node->find(key);
        if (resource.node && resource.node->at({"properties", key})) at = resource.node->at({"properties", key});
    }
    if (!at || at->source != resource.source) return {};
    const Source& source = *at->source;
    const Span line = source.line_at(at->key_span.begin);
    const std::string_view indent = source.text({line.begin, at->key_span.begin});
    const bool own_line = trim(indent).empty() && trim(source.text({at->whole().end, line.end})).size() <= 1;
    const std::string next = fmt::format("{}{}", source.line_end(), indent);
    if (resource.address.starts_with("arm:"))
        return {{{at->key_span.begin, at->key_span.begin},
                 "\"nodeTaints\": [\"sku=gpu:NoSchedule\"]," + (own_line ? next : std::string(" "))}};
    if (!own_line) return {};
    if (file.kinds.has(Kind::bicep)) return {{{line.end, line.end}, next + "nodeTaints: [ 'sku=gpu:NoSchedule' ]"}};
    if (resource.written != "azurerm_kubernetes_cluster_node_pool") return {};
    // As terraform fmt has it: the sign below the one above.
    const std::size_t sign = source.text({at->key_span.begin, line.end}).find('=');
    const std::string_view key = "node_taints";
    if (sign == std::string_view::npos) return {};
    const std::size_t width = std::max(sign, key.size() + 1);
    return {{{line.end, line.end}, fmt::format("{}{:<{}}= [\"sku=gpu:NoSchedule\"]", next, key, width)}};
}

}  // namespace

void check_npl001(const File& file, Report& report) {
    each_resource(file, [&](const Resource& resource) {
        if (resource.type != ResourceType::node_pool || !is_gpu_pool(resource, report) || torn_down_here(resource))
            return;
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
        if (!finding) return;
        finding->advice = "taint it, for example sku=gpu:NoSchedule, and let GPU pods tolerate that";
        if (list || !resource.source) return;
        if (auto edits = npl001_edits(file, resource); !edits.empty())
            report.fix(finding, *resource.source, FixClass::unsafe, "taint it with sku=gpu:NoSchedule",
                       std::move(edits));
    });
}

}  // namespace stoker::lint

#include "lint/rules/common_containers.h"

namespace stoker::lint {

namespace {

void k8s033_fix(const EnvVar& variable, const Container& container, Finding* finding, Report& report) {
    const Node* node = variable.value.node;  // the value of a Kubernetes list item
    const Node* item = node ? node->parent : nullptr;
    const Node* list = item ? item->parent : nullptr;
    if (!list || !list->is_array() || list->key != "env" || list->count() < 2 || list->merged) return;
    const Source& source = *item->source;
    const Span lines = lines_of(source, item->span);
    const std::string_view before = source.text({lines.begin, item->span.begin});
    if (before.find_first_not_of(" -") != std::string_view::npos || before.find('-') == std::string_view::npos) return;
    (void)container;
    report.fix(finding, source, FixClass::safe, "remove NVIDIA_VISIBLE_DEVICES", {{lines, ""}});
}

}  // namespace

void check_k8s033(const File& file, Report& report) {
    each_container(file, [&](const Workload& workload, const Container& container) {
        const EnvVar* variable = container.env("NVIDIA_VISIBLE_DEVICES");
        if (!variable || !variable->value.is("all") || !asks_accelerator(workload) || is_node_agent(workload)) return;
        Finding* finding = report.add(variable->value, container.address,
                                      "NVIDIA_VISIBLE_DEVICES=all gives the container every GPU of the node, not those "
                                      "that the scheduler gave it");
        if (finding) k8s033_fix(*variable, container, finding, report);
    });
    each_service(file, [&](const Container& service) {
        const EnvVar* variable = service.env("NVIDIA_VISIBLE_DEVICES");
        if (!variable || !variable->value.is("all")) return;
        const Quantity* device = accelerator_of(service);
        // With runtime: nvidia and no reservation, or with all devices reserved, "all" is what is meant.
        if (!device || device->amount.unknown() || !device->amount.as_int() || device->amount.is("-1")) return;
        if (service.image.present() &&
            (contains_nocase(service.image.text, "dcgm") || contains_nocase(service.image.text, "exporter")))
            return;
        report.add(variable->value, service.address,
                   "NVIDIA_VISIBLE_DEVICES=all overrides the devices that the service reserves: it gets every GPU");
    });
}

}  // namespace stoker::lint

#include "lint/rules/common_cloud.h"

namespace stoker::lint {

void check_npl016(const Bundle& bundle, Report& report) {
    each_resource(bundle, [&](const Resource& setting) {
        if (setting.type != ResourceType::autoscale_setting) return;
        const auto metrics = setting.all(Attr::metric);
        if (metrics.empty()) return;
        for (const Value* metric : metrics)
            if (!metric->known() || !contains_nocase(metric->text, "cpu")) return;
        const Resource* machine = machine_of(bundle, setting);
        if (!machine || machine->type != ResourceType::scale_set || !has_gpu(*machine, report)) return;
        Finding* finding = report.add(
            *metrics[0], setting.address,
            "a GPU scale set is scaled by CPU alone: a model server that is full of GPU work shows little CPU");
        if (!finding) return;
        report.relate(finding, *machine->source, machine->header, "the GPU scale set");
        finding->advice = "scale by the length of the queue or by GPU utilisation";
    });
}

}  // namespace stoker::lint

#include "lint/rules/common_cloud.h"

namespace stoker::lint {

void check_net001(const File& file, Report& report) {
    each_resource(file, [&](const Resource& resource) {
        if (resource.type != ResourceType::scale_set || !has_rdma(resource, report)) return;
        const Value& capacity = resource.get(Attr::count);
        const std::int64_t count =
            capacity.absent() && is_az(resource) ? 2 : capacity.as_int().value_or(0);  // az makes two
        if (count < 2) return;
        const Value &mode = resource.get(Attr::orchestration), &single = resource.get(Attr::single_placement_group);
        const std::string end = ": its nodes have no InfiniBand between them";
        Finding* finding = nullptr;
        if (mode.is_nocase("Flexible"))
            finding = resource.written.starts_with("azurerm_orchestrated")
                          ? add_at_header(report, resource, "a Flexible scale set of an InfiniBand size" + end)
                          : report.add(mode, resource.address, "a Flexible scale set of an InfiniBand size" + end);
        else if (says_no(single))
            finding = report.add(single, resource.address,
                                 "a scale set of an InfiniBand size without a single placement group" + end);
        else if (mode.absent() && is_az(resource))
            finding = add_at_header(report, resource, "az vmss create makes a Flexible scale set by default" + end);
        if (!finding) return;
        report.relate(finding, *resource.get(Attr::size).source, resource.get(Attr::size).span, "the InfiniBand size");
        finding->advice = "use one Uniform scale set with a single placement group";
        if (says_no(single) && !mode.is_nocase("Flexible"))
            fix_value(report, finding, single, FixClass::unsafe, "use a single placement group", "true");
        else if (mode.is_nocase("Flexible") && !resource.written.starts_with("azurerm_orchestrated"))
            fix_value(report, finding, mode, FixClass::unsafe, "make it Uniform", "Uniform");
        else if (mode.absent() && is_az(resource) && resource.whole.end > 0)
            report.fix(finding, *resource.source, FixClass::unsafe, "make it Uniform",
                       {{{resource.whole.end, resource.whole.end}, " --orchestration-mode Uniform"}});
    });
}

}  // namespace stoker::lint

#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

namespace stoker::lint {

namespace {

std::vector<Edit> cost001_schedule(const Resource& machine) {
    if (!machine.address.starts_with("tf:azurerm_") || !machine.node || machine.get(Attr::count).present() ||
        machine.node->find("for_each") || machine.node->labels.size() != 2 || machine.source != machine.node->source)
        return {};
    const auto end = machine.node->span.end;
    const std::string_view type = machine.node->labels[0], name = machine.node->labels[1],
                           n = machine.source->line_end();
    return {{{end, end},
             fmt::format("{3}{3}resource \"azurerm_dev_test_global_vm_shutdown_schedule\" \"{1}\" {{{3}"
                         "  virtual_machine_id    = {0}.{1}.id{3}  location              = {0}.{1}.location{3}"
                         "  enabled               = true{3}  daily_recurrence_time = \"{2}\"{3}  timezone              "
                         "= \"UTC\"{3}{3}"
                         "  notification_settings {{{3}    enabled = false{3}  }}{3}}}",
                         type, name, "1900", n)}};
}

}  // namespace

void check_cost001(const Bundle& bundle, Report& report) {
    Beside beside(bundle, report.knowledge());
    each_resource(bundle, [&](const Resource& machine) {
        if (machine.type != ResourceType::vm || machine.get(Attr::scale_set).present() || !has_gpu(machine, report))
            return;
        if (machine.written.starts_with("aws_")) return;
        const bool scheduled =
            beside.any(machine, [](const Resource& other) { return other.type == ResourceType::shutdown_schedule; });
        // Scripts that take the machine down again, and other ways to stop it at hours.
        if (scheduled || beside.says(machine, {"auto-shutdown", "vm deallocate", "vm delete", "group delete",
                                               "autoShutdown", "start-stop", "azurerm_automation_"}))
            return;
        const KnownSize* size = size_of(machine, report);
        const std::string price = size && size->usd_per_hour > 0
                                      ? fmt::format(": a forgotten weekend costs {:.0f} USD at the lowest list price",
                                                    60 * size->usd_per_hour)
                                      : "";
        Finding* finding =
            add_at_header(report, machine, fmt::format("a GPU machine without a shutdown schedule{}", price));
        tell_idle_cost(report, finding, machine, machine.get(Attr::count).absent() ? 1 : count_of(machine));
        report.fix(finding, *machine.source, FixClass::safe, "stop it at 19:00 UTC", cost001_schedule(machine));
    });
}

}  // namespace stoker::lint
